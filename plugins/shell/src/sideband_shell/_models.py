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

_MOST_ARGUMENTS = 10_000
_LONGEST_INPUT = 8 * 1024 * 1024


def _check_argument(text: str) -> str:
    if "\x00" in text:
        raise ValueError("an argument holds no NUL")
    return text


Argument = Annotated[str, AfterValidator(_check_argument)]
PlaceText = Annotated[str, AfterValidator(check_place)]


class ShellRunParams(OpParams):
    """Parameters of `shell.run`."""

    binary: Annotated[str, AfterValidator(check_binary)] = Field(
        description="a name such as `git`, or an absolute path"
    )
    args: Annotated[list[Argument], Field(max_length=_MOST_ARGUMENTS)] = Field([], description="one item an argument")
    timeout: Annotated[FiniteFloat, Field(gt=0)] = Field(30.0, description="seconds, after which it is ended")
    cwd: PlaceText | None = Field(None, description="where it works; without it, in a folder of its own")
    input: Annotated[str | bytes | None, Field(max_length=_LONGEST_INPUT)] = Field(
        None, description="its standard input"
    )
    env: Annotated[dict[str, str], Field(max_length=64)] = Field({}, description="variables, each of which is granted")
    read: Annotated[list[PlaceText], Field(max_length=64)] = Field([], description="folders and files that it may read")
    write: Annotated[list[PlaceText], Field(max_length=64)] = Field(
        [], description="folders and files that it may change"
    )
    network: bool = Field(default=False, description="whether it may use the network of the machine")
    stream: bool = Field(default=False, description="whether to answer what it printed if it is not done in time")

    @field_validator("env")
    @classmethod
    def _check_env(cls, variables: dict[str, str]) -> dict[str, str]:
        for name, value in variables.items():
            check_variable(name, value)
        return variables

    @property
    def places(self) -> dict[str, str]:
        """Each place, with `read` or `write`."""
        return places_of(self.read, self.write, self.cwd)

    @property
    def input_bytes(self) -> bytes | None:
        """Its standard input, text as UTF-8."""
        return self.input.encode() if isinstance(self.input, str) else self.input

    def scopes(self) -> Iterator[ShellScope]:
        """What the grant must cover."""
        variables = sorted(self.env)
        return scopes_of(self.binary, self.args, network=self.network, places=self.places, variables=variables)


class ShellRunResult(BaseModel):
    """How a command ended.

    Attributes:
        exit_code: as it said; -1 if a signal ended it.
        signal: the name of that signal, `SIGSEGV`.
        stdout: what it printed, as text, or as bytes if it is not UTF-8. Of very much, the beginning and the end.
        stderr: the same of its standard error.
        timed_out: whether it was ended since it was not done in time.
        truncated: whether something of its output is left out.
        stdout_omitted: how many bytes of its output are left out.
        stderr_omitted: how many bytes of its standard error are left out.
        duration: seconds.
    """

    exit_code: int
    signal: str | None = None
    stdout: str | bytes = ""
    stderr: str | bytes = ""
    timed_out: bool = False
    truncated: bool = False
    stdout_omitted: int = 0
    stderr_omitted: int = 0
    duration: float = 0.0
