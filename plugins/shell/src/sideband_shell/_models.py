"""Parameters and result of the op."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field, FiniteFloat, field_validator
from sideband.ops import OpParams

from ._places import check_place, places_of
from ._programs import check_binary
from ._scope import ShellScope, scopes_of
from ._variables import check_variable

_MAXIMUM_ARGUMENTS = 10_000
_LONGEST_INPUT = 8 * 1024 * 1024


def _check_argument(text: str) -> str:
    if "\x00" in text:
        raise ValueError("an argument must not contain NUL")
    return text


Argument = Annotated[str, AfterValidator(_check_argument)]
PlaceText = Annotated[str, AfterValidator(check_place)]


class ProgramParams(OpParams):
    """Parameters of all ops that start a program."""

    binary: Annotated[str, AfterValidator(check_binary)] = Field(
        description="a name such as `git`, or an absolute path"
    )
    args: Annotated[list[Argument], Field(max_length=_MAXIMUM_ARGUMENTS)] = Field(
        default=[], description="the arguments, one per item"
    )
    cwd: PlaceText | None = Field(
        default=None, description="the working directory; without it, a temporary folder of the program"
    )
    input: Annotated[str | bytes | None, Field(max_length=_LONGEST_INPUT)] = Field(
        default=None, description="the standard input"
    )
    env: Annotated[dict[str, str], Field(max_length=64)] = Field(
        default={}, description="environment variables; each requires a grant"
    )
    read: Annotated[list[PlaceText], Field(max_length=64)] = Field(
        default=[], description="folders and files that the program may read"
    )
    write: Annotated[list[PlaceText], Field(max_length=64)] = Field(
        default=[], description="folders and files that the program may change"
    )
    execute: Annotated[list[PlaceText], Field(max_length=64)] = Field(
        default=[], description="folders that the program may change, and in which it may execute files"
    )
    network: bool = Field(default=False, description="whether the program may use the network of the machine")
    timeout: Annotated[FiniteFloat, Field(gt=0)] | None = Field(
        default=None, description="seconds until the program is killed"
    )

    @field_validator("env")
    @classmethod
    def _check_env(cls, variables: dict[str, str]) -> dict[str, str]:
        for name, value in variables.items():
            check_variable(name, value)
        return variables

    @property
    def places(self) -> dict[str, str]:
        """The places, each with `read`, `write` or `execute`."""
        return places_of(self.read, self.write, self.execute, self.cwd)

    @property
    def input_bytes(self) -> bytes | None:
        """The standard input, with text encoded as UTF-8."""
        return self.input.encode() if isinstance(self.input, str) else self.input

    def scopes(self) -> Iterator[ShellScope]:
        """Yield the scopes that the grant must cover."""
        variables = sorted(self.env)
        return scopes_of(self.binary, self.args, network=self.network, places=self.places, variables=variables)


class ShellRunParams(ProgramParams):
    """Parameters of `shell.run`."""

    timeout: Annotated[FiniteFloat, Field(gt=0)] = Field(
        default=30.0, description="seconds until the program is killed"
    )
    stream: bool = Field(default=False, description="whether to return the output so far if the timeout expires")


class ShellRunResult(BaseModel):
    """The result of a program.

    Attributes:
        exit_code: the exit code; -1 if a signal killed the program.
        signal: the name of that signal, such as `SIGSEGV`.
        stdout: the standard output as text, or as bytes if it is not UTF-8. Long output keeps its beginning and end.
        stderr: the standard error, like `stdout`.
        timed_out: whether the program was killed because its timeout expired.
        truncated: whether a part of the output was left out.
        stdout_omitted: the number of bytes left out of `stdout`.
        stderr_omitted: the number of bytes left out of `stderr`.
        seconds: how long it ran.
    """

    exit_code: int
    signal: str | None = None
    stdout: str | bytes = ""
    stderr: str | bytes = ""
    timed_out: bool = False
    truncated: bool = False
    stdout_omitted: int = 0
    stderr_omitted: int = 0
    seconds: float = 0.0
