"""Errors of summaries. If one is raised, the next plugin is called; without one, the older messages are dropped.

SidebandError
└── CompactionError(RuntimeError)     compaction.failed
    └── SummaryUnusable(ValueError)   compaction.unusable
"""

from __future__ import annotations

from sideband import SidebandError


class CompactionError(SidebandError, RuntimeError):
    """A conversation could not be summarized."""

    code = "compaction.failed"


class SummaryUnusable(CompactionError, ValueError):
    """The summary that the model wrote cannot replace the messages."""

    code = "compaction.unusable"

    def __init__(self, model: str, problem: str) -> None:
        super().__init__(
            f"rejected the summary written by {model}: {problem}",
            hint="set another model in `[plugins.compaction] model`",
        )
