"""Why the host could not have a process that holds.

    Exception
    ├── ZygoteFailed       a zygote did not start, has ended, or made a worker that could break out
    └── ProgramNotStarted  a step of a command's plan could not be done, or a throw-away command could break out

Neither leaves this package: a caller gets an error of ``sideband.workers``, or a weaker tier with the reason as a hint.
"""

from __future__ import annotations


class ZygoteFailed(Exception):
    """A zygote could not be started, or has ended. The message says why, as far as it is known."""


class ProgramNotStarted(Exception):
    """A step of the plan could not be done. Nothing of the command has run.

    Attributes:
        step: which one.
        number: of the system's error, if there is one.
    """

    def __init__(self, problem: str, *, step: str = "", number: int | None = None) -> None:
        super().__init__(problem)
        self.step = step
        self.number = number
