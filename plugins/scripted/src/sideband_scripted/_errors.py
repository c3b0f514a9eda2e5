"""Errors of scripts. None of them is retryable.

ProviderError
├── ProviderRefused
│   ├── ScriptEnded      scripted.ended
│   └── ScriptUnknown    scripted.unknown
└── ProviderUnconfigured
    ├── ScriptMissing    scripted.missing
    └── ScriptInvalid    scripted.invalid
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from sideband.providers import ProviderRefused, ProviderUnconfigured


class ScriptEnded(ProviderRefused):
    """The script has no turn for this request."""

    code = "scripted.ended"

    def __init__(self, provider: str, turns: int, last: str) -> None:
        super().__init__(
            provider,
            f"the script has no turn {turns + 1} (the last message begins {last!r})",
            status=400,
            hint="add turns, or start the script again with `repeat`",
            retryable=False,
        )


class ScriptUnknown(ProviderRefused):
    """The script file does not contain this model."""

    code = "scripted.unknown"

    def __init__(self, provider: str, model: str, known: Iterable[str]) -> None:
        super().__init__(
            provider,
            f"unknown script `{model}`",
            status=404,
            hint=f"available scripts: {', '.join(sorted(known))}",
            retryable=False,
        )


class ScriptMissing(ProviderUnconfigured):
    """No script file is configured."""

    code = "scripted.missing"

    def __init__(self, provider: str) -> None:
        super().__init__(
            provider,
            "no script is configured",
            hint=f'set `script = "FILE.json"` (or .toml) in the table `[plugins.{provider}]`',
            retryable=False,
        )


class ScriptInvalid(ProviderUnconfigured, ValueError):
    """The script file cannot be read or is invalid."""

    code = "scripted.invalid"

    def __init__(self, provider: str, path: Path, problem: str) -> None:
        super().__init__(
            provider,
            f"invalid script {path}: {problem}",
            hint="see the README of sideband-scripted for an example",
            retryable=False,
        )
