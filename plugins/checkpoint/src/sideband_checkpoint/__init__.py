"""The op family `checkpoint`: a skill keeps small data for a later call."""

from ._errors import CheckpointError, CheckpointTooLarge, TooManyCheckpoints
from ._scope import CheckpointScope
from ._version import __version__

__all__ = ["CheckpointError", "CheckpointScope", "CheckpointTooLarge", "TooManyCheckpoints", "__version__"]
