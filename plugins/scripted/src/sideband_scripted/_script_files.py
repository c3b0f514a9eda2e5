"""Scripts as files: what stands in them, and how they are read."""

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

from ._errors import ScriptInvalid
from ._turns import Broken, Hang, Turn

_LARGEST = 16 << 20
_PASSING = frozenset({408, 409, 425, 429})
_FAILURES: dict[str, type[ProviderError]] = {
    "refused": ProviderRefused,
    "stream": StreamBroken,
    "timeout": ProviderTimeout,
    "unreachable": ProviderUnreachable,
}


class _ScriptData(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ToolCallScript(_ScriptData):
    """A tool that is asked for."""

    name: str
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    id: str | None = None


class FailureScript(_ScriptData):
    """A try that fails."""

    kind: Literal["refused", "stream", "timeout", "unreachable"] = "refused"
    message: str = "failed, as its script says"
    status: int | None = None
    body: str = ""
    headers: dict[str, str] = Field(default_factory=dict)

    def error(self, provider: str) -> ProviderError:
        """The error to raise."""
        passing = self.status is None or self.status in _PASSING or self.status >= 500
        return _FAILURES[self.kind](
            provider, self.message, status=self.status, body=self.body, headers=self.headers, retryable=passing
        )


class TurnScript(_ScriptData):
    """A turn, and what goes wrong before it."""

    text: str = ""
    thinking: str = ""
    tool_calls: tuple[ToolCallScript, ...] = ()
    usage: Usage | None = None
    stop: StopReason | None = None
    failures: tuple[FailureScript, ...] = Field((), description="the tries that fail before this turn is played")
    broken_after: int | None = Field(None, ge=0, description="deltas after which the stream always breaks off")
    hang_after: int | None = Field(None, ge=0, description="deltas after which nothing comes any more")

    def turn(self) -> Turn | Broken | Hang:
        """It, as Python writes it."""
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
    context_window: int = Field(200_000, gt=0)
    prices: Prices = Prices(input=0, output=0)

    def info(self, name: str) -> ModelInfo:
        """What is known about the model."""
        return ModelInfo(id=name, context_window=self.context_window, thinking=True, prices=self.prices)


class _ScriptFile(_ScriptData):
    models: dict[str, ModelScript]


def read_scripts(provider: str, path: Path) -> dict[str, ModelScript]:
    """The scripts in a file, by the name of the model.

    Raises:
        ScriptInvalid: it can't be read, or something else stands in it.
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
        raise ValueError(f"it has more than {_LARGEST >> 20} MiB")
    text = content.decode()
    return tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)


def _problem(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"`{'.'.join(map(str, first['loc'])) or 'file'}`: {first['msg']}"
