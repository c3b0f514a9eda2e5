"""Why there is no summary. The next plugin is asked then, and in the end the older messages are left out without one.

SidebandError
└── CompactionError(RuntimeError)     compaction.failed
    └── SummaryUnusable(ValueError)   compaction.unusable
"""

from __future__ import annotations

from sideband import SidebandError


class CompactionError(SidebandError, RuntimeError):
    """A conversation could not be summarised."""

    code = "compaction.failed"


class SummaryUnusable(CompactionError, ValueError):
    """What the model wrote can't stand for the messages."""

    code = "compaction.unusable"

    def __init__(self, model: str, problem: str) -> None:
        super().__init__(
            f"the summary that {model} wrote is not used: {problem}",
            hint="name another model under `[plugins.compaction] model`",
        )
