"""Messages between users, models and tools."""

from .models._messages import *  # noqa: F403  its names are what is public here
from .models._messages import __all__  # noqa: F401  what `import *` takes from here
