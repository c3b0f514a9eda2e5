"""Parameters and results of the ops for programs in the background."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field, FiniteFloat
from sideband.ops import OpParams

from ._models import ProgramParams

_MAXIMUM_WAIT = 3_600.0
_MEBIBYTE = 1024 * 1024


class ShellStartParams(ProgramParams):
    """Parameters of `shell.start`."""

    timeout: Annotated[FiniteFloat, Field(gt=0)] | None = Field(
        default=None, description="seconds until the program is killed; by default `max_seconds`"
    )


class ShellStarted(BaseModel):
    """The result of `shell.start`.

    Attributes:
        program: the id of the program, for `shell.output` and `shell.stop`.
    """

    program: str


class ShellOutputParams(OpParams):
    """Parameters of `shell.output`."""

    program: str = Field(min_length=1, max_length=64, description="the id that `shell.start` returned")
    offset: int = Field(
        default=0, description="the first byte to return; a negative number counts from the end of the output so far"
    )
    wait: Annotated[FiniteFloat, Field(ge=0, le=_MAXIMUM_WAIT)] = Field(
        default=0.0, description="seconds to wait for it"
    )
    until: Literal["output", "end"] = Field(
        default="output", description="what to wait for: output after `offset`, or the end of the program"
    )
    max_bytes: Annotated[int, Field(ge=1, le=4 * _MEBIBYTE)] = Field(
        default=65_536, description="the maximum number of bytes to return"
    )


class ShellOutputPart(BaseModel):
    """A part of the output of a program.

    Attributes:
        stream: `stdout` or `stderr`.
        content: text, or bytes if it is not UTF-8.
    """

    stream: str
    content: str | bytes


class ShellProgramState(BaseModel):
    """The state of a program in the background.

    Attributes:
        running: whether it runs.
        exit_code: its exit code; -1 if it was killed; `None` while it runs.
        signal: the name of the signal that killed it, such as `SIGTERM`.
        end: how it ended: by itself (`exit`), by its `timeout`, because it printed too much (`output`), or because it
            was stopped (`stop`).
        seconds: how long it has run.
    """

    running: bool
    exit_code: int | None = None
    signal: str | None = None
    end: Literal["exit", "timeout", "output", "stop"] | None = None
    seconds: float


class ShellProgramOutput(ShellProgramState):
    """The result of `shell.output`.

    Attributes:
        parts: the output, in the order in which it arrived.
        offset: the offset of its first byte.
        next: the offset after its last byte, where the next call continues.
        omitted: the number of bytes before `offset` that were requested but are no longer kept.
        size: the number of bytes that the program has printed so far.
    """

    parts: list[ShellOutputPart] = []
    offset: int
    next: int
    omitted: int = 0
    size: int


class ShellStopParams(OpParams):
    """Parameters of `shell.stop`."""

    program: str = Field(min_length=1, max_length=64, description="the id that `shell.start` returned")
    grace: Annotated[FiniteFloat, Field(ge=0, le=60)] = Field(
        default=5.0, description="seconds that the program gets to exit after SIGTERM, before it is killed"
    )
