"""The parameters of the tools for commands."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

_PROGRAM = Field(min_length=1, max_length=64, description="The id that `command` returned.")


class CommandParams(BaseModel):
    """The parameters of ``command``."""

    model_config = ConfigDict(extra="forbid")

    command: str = Field(min_length=1, max_length=100_000, description="The command line, as for `bash -c`.")
    folder: str = Field(
        default=".",
        min_length=1,
        max_length=4_096,
        description="The folder in which it runs, relative to the working directory or absolute.",
    )
    timeout: float = Field(
        default=120.0,
        gt=0,
        le=3_600,
        allow_inf_nan=False,
        description="Seconds until it is killed. A command in the background may run for an hour.",
    )
    background: bool = Field(
        default=False,
        description="Whether to return at once with an id for `command_output` and `command_stop`. Use it for servers, "
        "and for commands that run for minutes.",
    )


class CommandOutputParams(BaseModel):
    """The parameters of ``command_output``."""

    model_config = ConfigDict(extra="forbid")

    program: str = _PROGRAM
    offset: int = Field(
        default=0,
        description="The first byte to return: the offset at which the last result ended. A negative number counts "
        "from the end.",
    )
    wait: float = Field(
        default=10.0, ge=0, le=600, allow_inf_nan=False, description="How many seconds to wait at most."
    )
    until: Literal["output", "end"] = Field(
        default="output", description="What to wait for: output after `offset`, or the end of the command."
    )


class CommandStopParams(BaseModel):
    """The parameters of ``command_stop``."""

    model_config = ConfigDict(extra="forbid")

    program: str = _PROGRAM
