"""Internal errors of the sandbox.

    Exception
    ├── ZygoteFailed       a zygote did not start, has exited, or forked a worker that could break out
    └── ProgramNotStarted  a step of a program's plan failed, or a probe program could break out

Neither leaves this package: a caller gets an error of ``sideband.workers``, or a weaker tier with the reason as a hint.
"""

from __future__ import annotations


class ZygoteFailed(Exception):
    """A zygote could not be started, or has exited. The message contains the reason if it is known."""


class ProgramNotStarted(Exception):
    """A step of the plan failed. No code of the program has run.

    Attributes:
        step: the name of the step.
        number: the ``errno`` of the system's error, if there is one.
    """

    def __init__(self, problem: str, *, step: str = "", number: int | None = None) -> None:
        super().__init__(problem)
        self.step = step
        self.number = number
