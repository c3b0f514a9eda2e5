"""Script files: their format and how they are read."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError
from sideband.messages import StopReason, Usage
from sideband.providers import (
    ModelInfo,
    Prices,
    ProviderError,
    ProviderRefused,
    ProviderTimeout,
    ProviderUnreachable,
    StreamBroken,
)
from sideband.validation import problem_text

from ._errors import ScriptInvalid
from ._turns import Broken, Hang, Turn

_LARGEST = 16 << 20
_TEMPORARY = frozenset({408, 409, 425, 429})
_FAILURES: dict[str, type[ProviderError]] = {
    "refused": ProviderRefused,
    "stream": StreamBroken,
    "timeout": ProviderTimeout,
    "unreachable": ProviderUnreachable,
}


class _ScriptData(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ToolCallScript(_ScriptData):
    """A tool call."""

    name: str
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    id: str | None = None


class FailureScript(_ScriptData):
    """An attempt that fails."""

    kind: Literal["refused", "stream", "timeout", "unreachable"] = "refused"
    message: str = "failed, as scripted"
    status: int | None = None
    body: str = ""
    headers: dict[str, str] = Field(default_factory=dict)

    def error(self, provider: str) -> ProviderError:
        """Return the error to raise."""
        temporary = self.status is None or self.status in _TEMPORARY or self.status >= 500
        return _FAILURES[self.kind](
            provider, self.message, status=self.status, body=self.body, headers=self.headers, retryable=temporary
        )


class TurnScript(_ScriptData):
    """A turn, and the failures before it."""

    text: str = ""
    thinking: str = ""
    tool_calls: tuple[ToolCallScript, ...] = ()
    usage: Usage | None = None
    stop: StopReason | None = None
    failures: tuple[FailureScript, ...] = Field(
        default=(), description="the attempts that fail before this turn is played"
    )
    broken_after: int | None = Field(
        default=None, ge=0, description="the number of deltas before the stream breaks off"
    )
    hang_after: int | None = Field(default=None, ge=0, description="the number of deltas before the stream hangs")

    def turn(self) -> Turn | Broken | Hang:
        """Convert it to a turn of a Python script."""
        calls = [(call.name, call.arguments, call.id) for call in self.tool_calls]
        turn = Turn(self.text, self.thinking, calls, self.usage, self.stop)
        if self.broken_after is not None:
            return Broken(self.broken_after, turn)
        if self.hang_after is not None:
            return Hang(self.hang_after, turn)
        return turn


class ModelScript(_ScriptData):
    """The script of one model."""

    turns: tuple[TurnScript | str, ...]
    repeat: bool = False
    context_window: int = Field(default=200_000, gt=0)
    prices: Prices = Prices(input=0, output=0)

    def info(self, name: str) -> ModelInfo:
        """Return the model's metadata."""
        return ModelInfo(id=name, context_window=self.context_window, thinking=True, prices=self.prices)


class _ScriptFile(_ScriptData):
    models: dict[str, ModelScript]


def read_scripts(provider: str, path: Path) -> dict[str, ModelScript]:
    """Read the scripts in a file, by model name.

    Raises:
        ScriptInvalid: if the file cannot be read or is not a script.
    """
    try:
        data = _parsed(path)
        if isinstance(data, dict) and "turns" in data:
            data = {"models": {path.stem: data}}
        return _ScriptFile.model_validate(data).models
    except OSError as error:
        raise ScriptInvalid(provider, path, error.strerror or str(error)) from error
    except ValidationError as error:
        raise ScriptInvalid(provider, path, _problem(error)) from error
    except (ValueError, RecursionError) as error:
        raise ScriptInvalid(provider, path, str(error)) from error


def _parsed(path: Path) -> Any:
    with path.expanduser().open("rb") as file:
        content = file.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise ValueError(f"larger than {_LARGEST >> 20} MiB")
    text = content.decode()
    return tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)


def _problem(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"`{'.'.join(map(str, first['loc'])) or 'file'}`: {problem_text(first)}"
