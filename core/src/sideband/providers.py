"""What a provider of models promises, what it is asked, and how it fails."""

from .models._providers import *  # noqa: F403  its names are what is public here
from .models._providers import __all__  # noqa: F401  what `import *` takes from here
