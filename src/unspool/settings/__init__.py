"""Settings declared once: from one line come checks, command-line options, search spaces, files and documentation.

>>> import unspool as us
>>> for one in us.models.SGC.schema.values():
...     print(f"{one.name}: {one.meaning}; {one.typed}")
depth: K, the number of hops; a whole number from 1 to 10000
bias: whether there is a b; true or false
weights: where W stands: before the hops (few channels travel) or after them; one of pre, pos
"""

from unspool.settings.declaration import REQUIRED, Setting, setting
from unspool.settings.ranges import Range, choice, integers, log_uniform, uniform
from unspool.settings.schema import Declared, Schema, schema_of

__all__ = [
    "REQUIRED", "Declared", "Range", "Schema", "Setting", "choice", "integers", "log_uniform", "schema_of", "setting", "uniform",
]  # fmt: skip
