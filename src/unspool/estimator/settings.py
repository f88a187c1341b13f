"""Estimators whose keyword arguments are open: what they do not know themselves is a setting of the model they train."""

from __future__ import annotations

import difflib
from typing import Any

from sklearn.base import BaseEstimator
from torch import nn

from unspool.errors import UNSHOWN, InputError
from unspool.models import find_model
from unspool.settings import Schema, schema_of


class OpenSettings(BaseEstimator):
    """A scikit-learn estimator that hands unknown keyword arguments on to its ``model``.

    ``get_params``, ``set_params`` and ``clone`` treat a setting of the model (``depth``, ``dropout``) as they treat an
    argument of the estimator, so a grid search can walk over both. Names are checked when fitting starts: only then is
    it known for which model they are meant.

    Subclasses keep the settings of their constructor in ``_settings``.
    """

    model: Any
    _settings: dict[str, Any]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All arguments with their values: the estimator's own, and the model's as far as they were given."""
        return {**super().get_params(deep), **self._settings}

    def set_params(self, **params: Any) -> Any:
        """Change arguments of the estimator and settings of the model."""
        own = set(self._get_param_names())
        mine = {name: value for name, value in params.items() if name.partition("__")[0] in own}
        self._settings = {**self._settings, **{name: value for name, value in params.items() if name not in mine}}
        return super().set_params(**mine)

    def _model_class(self) -> type[nn.Module]:
        """The class of the model, with its settings checked, or one sentence about what does not fit."""
        if isinstance(self.model, nn.Module):
            kind = type(self.model).__name__
            raise TypeError(f"model is a {kind} already made: give the class {kind}, so that every fit starts again")
        model = find_model(self.model) if isinstance(self.model, str) else self.model
        if not (isinstance(model, type) and issubclass(model, nn.Module)):
            raise TypeError(f"model={self.model!r}: expected a class such as unspool.models.APPNP, or its name")
        schema = schema_of(model)
        taken = [name for name in self._get_param_names() if name in schema]
        if taken:  # models that declare their settings cannot have one of such a name
            raise InputError(
                taken[0],
                UNSHOWN,
                f"a name of one thing, and it is an argument of {model.__name__} and of {type(self).__name__}",
                "rename that of the model",
            )
        for name in self._settings:
            if not schema.takes(name):
                self._say_unknown(name, schema)
        schema.complete(self._settings)
        return model

    def _say_unknown(self, name: str, schema: Schema) -> None:
        own = self._get_param_names()
        near = difflib.get_close_matches(name, [*schema, *own], n=1)
        raise InputError(
            name,
            UNSHOWN,
            f"a setting of {schema.owner}, which takes {', '.join(schema) or 'none'}, or of {type(self).__name__}, which takes {', '.join(own)}",
            f"did you mean {near[0]}?" if near else None,
            owner=schema.owner,
        )
