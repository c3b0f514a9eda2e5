"""Errors of checkpoints. The stored data is unchanged.

CheckpointError(OpFailed)              checkpoint.failed
├── CheckpointTooLarge(ValueError)     checkpoint.size
└── TooManyCheckpoints(RuntimeError)   checkpoint.number
"""

from __future__ import annotations

from sideband.ops import OpFailed


class CheckpointError(OpFailed):
    """A checkpoint cannot be saved."""

    code = "checkpoint.failed"
    nothing_happened = True


class CheckpointTooLarge(CheckpointError, ValueError):
    """The data of a checkpoint is too large."""

    code = "checkpoint.size"

    def __init__(self, size: int, most: int) -> None:
        super().__init__(
            f"the data has {size:,} bytes as JSON; a checkpoint has at most {most:,}",
            hint="save less, such as the position instead of the results, or keep the results with `files` or `sql`",
        )


class TooManyCheckpoints(CheckpointError, RuntimeError):
    """The skill has too many checkpoints."""

    code = "checkpoint.number"

    def __init__(self, most: int) -> None:
        super().__init__(
            f"the skill has {most:,} checkpoints, which is the limit",
            hint="remove those that are not needed with `checkpoint.clear(name=…)`, or use one name for all of them",
        )


ERRORS = (CheckpointError, CheckpointTooLarge, TooManyCheckpoints)
"""The errors that skills can catch by class."""
