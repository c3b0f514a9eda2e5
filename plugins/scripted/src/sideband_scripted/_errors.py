"""What can be wrong with a script. None of it is worth another try.

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
            hint="write more turns, or let it begin again with `repeat`",
            retryable=False,
        )


class ScriptUnknown(ProviderRefused):
    """The file of scripts has none for this model."""

    code = "scripted.unknown"

    def __init__(self, provider: str, model: str, known: Iterable[str]) -> None:
        super().__init__(
            provider,
            f"there is no script `{model}`",
            status=404,
            hint=f"there are: {', '.join(sorted(known))}",
            retryable=False,
        )


class ScriptMissing(ProviderUnconfigured):
    """No file of scripts is configured."""

    code = "scripted.missing"

    def __init__(self, provider: str) -> None:
        super().__init__(
            provider,
            "no script is configured",
            hint=f'name a file: `script = "FILE.json"` (or .toml) in the table `[plugins.{provider}]`',
            retryable=False,
        )


class ScriptInvalid(ProviderUnconfigured, ValueError):
    """The file of scripts can't be read, or is none."""

    code = "scripted.invalid"

    def __init__(self, provider: str, path: Path, problem: str) -> None:
        super().__init__(
            provider,
            f"{path} is no script: {problem}",
            hint="the README of sideband-scripted shows what a script looks like",
            retryable=False,
        )
