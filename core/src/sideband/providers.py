"""The protocol that a model provider implements, its requests and its errors."""

from .models._providers import *  # noqa: F403  re-exports the public names
from .models._providers import __all__  # noqa: F401  limits `import *` from this module
