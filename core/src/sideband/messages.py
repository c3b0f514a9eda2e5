"""Messages between users, models and tools."""

from .models._messages import *  # noqa: F403  re-exports the public names
from .models._messages import __all__  # noqa: F401  limits `import *` from this module
