"""Estimators whose keyword arguments are open: what they do not know themselves is a setting of the model they train."""

from __future__ import annotations

import inspect
from typing import Any

from sklearn.base import BaseEstimator
from torch import nn


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

    def _build(self, in_features: int, out_features: int) -> nn.Module:
        """The model of this estimator, untrained, or one sentence about a setting that does not fit it."""
        if isinstance(self.model, nn.Module):
            kind = type(self.model).__name__
            raise TypeError(f"model is a {kind} already made: give the class {kind}, so that every fit starts anew")
        if not callable(self.model):
            raise TypeError(f"model={self.model!r}: expected a class such as unspool.models.APPNP")
        self._check_settings()
        make: Any = self.model
        return make(in_features, out_features, **self._settings)

    def _check_settings(self) -> None:
        taken = list(inspect.signature(self.model).parameters.values())[2:]  # after in_features and out_features
        if any(p.kind is p.VAR_KEYWORD for p in taken):
            return
        known = [p.name for p in taken if p.kind is not p.VAR_POSITIONAL]
        model, me = getattr(self.model, "__name__", "the model"), type(self).__name__
        for name in self._settings:
            if name not in known:
                raise TypeError(
                    f"{model} has no setting {name!r}: it takes {', '.join(known) or 'none'}, and {me} itself takes "
                    f"{', '.join(self._get_param_names())}"
                )
        for parameter in taken:
            needed = parameter.name in known and parameter.default is parameter.empty
            if needed and parameter.name not in self._settings:
                raise TypeError(f"{model} needs the setting {parameter.name!r}: give it to {me}")
