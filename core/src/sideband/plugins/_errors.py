"""What can go wrong with a plugin. Each error names it, its distribution, and what to do.

PluginError(SidebandError)                               plugin.failed
├── PluginNotFound(LookupError)                          plugin.unknown
├── PluginDenied(PermissionError)                        plugin.denied
├── PluginIncompatible(RuntimeError)                     plugin.incompatible
├── PluginConflict(RuntimeError)                         plugin.conflict
├── PluginImportFailed(ImportError)                      plugin.import
├── PluginInvalid(TypeError)                             plugin.invalid
├── PluginMisconfigured(ConfigurationError)              config.invalid
├── LifespanFailed(RuntimeError)                         plugin.lifespan
├── PluginHostClosed(RuntimeError)                       plugin.closed
└── StrictPluginError(RuntimeError)                      plugin.strict
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ..errors import ConfigurationError, SidebandError
from ..suggestions import did_you_mean

if TYPE_CHECKING:
    from ._records import PluginRecord

from ..exit_codes import ExitCode

__all__ = [
    "LifespanFailed",
    "PluginConflict",
    "PluginDenied",
    "PluginError",
    "PluginHostClosed",
    "PluginImportFailed",
    "PluginIncompatible",
    "PluginInvalid",
    "PluginMisconfigured",
    "PluginNotFound",
    "StrictPluginError",
    "described",
]


def described(record: PluginRecord) -> str:
    """How messages name a plugin: ``op `http` (sideband-http 1.2)``."""
    return f"{record.kind} `{record.name}` ({record.distribution} {record.version})"


class PluginError(SidebandError):
    """A plugin can't be used.

    Attributes:
        record: what is known about it; ``None`` if there is no such plugin, or more than one.
        reason: what is wrong, without naming the plugin again: for lists and trails.
    """

    code = "plugin.failed"
    exit_code = ExitCode.CONFIGURATION

    def __init__(
        self,
        message: str,
        *,
        record: PluginRecord | None = None,
        name: str | None = None,
        reason: str = "",
        hint: str = "",
    ) -> None:
        plugin = record.name if record is not None else name
        # Named, not `super()`: one of the errors is also a ConfigurationError, which takes other arguments.
        SidebandError.__init__(self, message, hint=hint, plugin=plugin)
        self.record = record
        self.reason = reason or message


class PluginNotFound(PluginError, LookupError):
    """No plugin of this kind and name is installed."""

    code = "plugin.unknown"

    def __init__(self, kind: str, name: str, *, known: Iterable[str] = ()) -> None:
        super().__init__(
            f"there is no {kind} `{name}`{did_you_mean(name, known)}",
            name=name,
            hint="`sideband plugins list` shows what is installed; install the package that has it",
        )


class PluginDenied(PluginError, PermissionError):
    """The policy does not let this plugin load. It was not imported."""

    code = "plugin.denied"
    exit_code = ExitCode.DENIED

    def __init__(self, record: PluginRecord) -> None:
        super().__init__(
            f"{described(record)} is denied by {record.decided_by}: {record.reason}",
            record=record,
            hint="change that line if the plugin is wanted",
        )


class PluginIncompatible(PluginError, RuntimeError):
    """The plugin is made for another version of the core, another Python environment, or another event loop."""

    code = "plugin.incompatible"

    def __init__(self, record: PluginRecord) -> None:
        super().__init__(
            f"{described(record)} does not fit: {record.reason}",
            record=record,
            hint=f"install a version of {record.distribution} that fits",
        )


class PluginConflict(PluginError, RuntimeError):
    """Several distributions have a plugin of the same kind and name, so that none of them is used.

    Attributes:
        distributions: all of them, sorted.
    """

    code = "plugin.conflict"

    def __init__(self, kind: str, name: str, distributions: Sequence[str]) -> None:
        choice = f'"{kind}.{name}" = "{distributions[0]}"'
        super().__init__(
            f"{kind} `{name}` is provided by {' and by '.join(distributions)}",
            name=name,
            hint=f"uninstall all but one, or choose one under `[policy.conflicts]`: {choice}",
        )
        self.distributions = tuple(distributions)


class PluginImportFailed(PluginError, ImportError):
    """Importing the plugin raised. The error that it raised is this one's cause."""

    code = "plugin.import"

    def __init__(self, record: PluginRecord, problem: str) -> None:
        super().__init__(
            f"{described(record)} can't be imported: {problem}",
            record=record,
            reason=f"it can't be imported: {problem}",
            hint=f"it is an error of the plugin or of what it needs: reinstall or update {record.distribution}",
        )


class PluginInvalid(PluginError, TypeError):
    """The plugin was imported, but is not what its entry point promises."""

    code = "plugin.invalid"

    def __init__(self, record: PluginRecord, problem: str) -> None:
        super().__init__(
            f"{described(record)}: {problem}",
            record=record,
            reason=problem,
            hint=f"report it to the author of {record.distribution}",
        )


class PluginMisconfigured(PluginError, ConfigurationError):
    """A value in the plugin's table can't be used. The message names the key, the value and the file."""

    code = "config.invalid"

    def __init__(self, record: PluginRecord, key: str, problem: str, *, source: str = "") -> None:
        where = f" ({source})" if source else ""
        super().__init__(
            f"configuration `{key}`{where}: {problem}",
            record=record,
            hint=f"correct `{key}`; the plugin is not used until then",
        )
        self.key = key
        self.source = source


class LifespanFailed(PluginError, RuntimeError):
    """The plugin's ``lifespan`` raised, took too long, or ended while the host was running."""

    code = "plugin.lifespan"

    def __init__(self, record: PluginRecord, problem: str) -> None:
        super().__init__(
            f"the lifespan of {described(record)} {problem}",
            record=record,
            reason=f"its lifespan {problem}",
            hint=f'see what it needs, or leave it out with a line under `[policy.deny]`: "{record.label}" = "…"',
        )


class PluginHostClosed(PluginError, RuntimeError):
    """A plugin was asked for before the plugin host was entered, or after it was left."""

    code = "plugin.closed"

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"{kind} `{name}` was asked for outside `async with PluginHost(…)`", name=name)


class StrictPluginError(PluginError, RuntimeError):
    """The host is strict, and something about its plugins is not in order. The message lists all of it.

    Attributes:
        problems: one sentence each.
    """

    code = "plugin.strict"

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__(
            "not all plugins are in order, and `strict` is set: " + "; ".join(problems),
            hint="`sideband plugins list` shows each with its reason",
        )
        self.problems = tuple(problems)
