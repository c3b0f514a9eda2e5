"""Errors of plugins. Each names the plugin, its distribution, and what to do.

PluginError(SidebandError)                               plugin.failed
├── PluginNotFound(LookupError)                          plugin.unknown
├── PluginDenied(PermissionError)                        plugin.denied
├── PluginIncompatible(RuntimeError)                     plugin.incompatible
├── PluginFileInvalid(ImportError)                       plugin.file
├── PluginUntrusted(PermissionError)                     plugin.untrusted
├── PluginDrifted(RuntimeError)                          plugin.drifted
├── GuardMissing(RuntimeError)                           plugin.guard
├── PluginConflict(RuntimeError)                         plugin.conflict
├── PluginImportFailed(ImportError)                      plugin.import
├── PluginInvalid(TypeError)                             plugin.invalid
├── PluginMisconfigured(ConfigurationError)              config.invalid
├── LifespanFailed(RuntimeError)                         plugin.lifespan
├── PluginHostClosed(RuntimeError)                       plugin.closed
├── PluginReloadRefused(RuntimeError)                    plugin.reload.refused
├── PluginReloadFailed(RuntimeError)                     plugin.reload.failed
└── StrictPluginError(RuntimeError)                      plugin.strict

ConfigurationError
└── LockInvalid                                          lock.invalid
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
    "GuardMissing",
    "LifespanFailed",
    "LockInvalid",
    "PluginConflict",
    "PluginDenied",
    "PluginDrifted",
    "PluginError",
    "PluginFileInvalid",
    "PluginHostClosed",
    "PluginImportFailed",
    "PluginIncompatible",
    "PluginInvalid",
    "PluginMisconfigured",
    "PluginNotFound",
    "PluginReloadFailed",
    "PluginReloadRefused",
    "PluginUntrusted",
    "StrictPluginError",
    "described",
    "unusable",
]


_SHOWN = 5


def described(record: PluginRecord) -> str:
    """Return a plugin's name for messages: ``op `http` (sideband-http 1.2)``."""
    name = f"{record.kind} `{record.name}`"
    return f"{name} ({record.package})" if record.package else name


def _reinstall(record: PluginRecord, problem: str) -> str:
    module = record.value.partition(":")[0].strip()
    missing = {module.rsplit(".", number)[0] for number in range(module.count(".") + 1)}
    if any(f"No module named '{one}'" in problem for one in missing):
        return f'correct the entry point `{record.name} = "{record.value}"` of {record.distribution}, or reinstall it'
    return f"reinstall or update {record.distribution} and its dependencies"


def _correct(record: PluginRecord) -> str:
    if record.file:
        return f"correct {record.file}, and trust it again"
    if record.distribution == "inline":
        return "correct the plugin that is passed to the host"
    return f"report it to the author of {record.distribution}"


class PluginError(SidebandError):
    """A plugin is unusable.

    Attributes:
        record: the record of the plugin; ``None`` if the plugin is unknown or ambiguous.
        reason: the problem without the name of the plugin, for lists and trails.
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
        # Not `super()`: a subclass also inherits from ConfigurationError, whose arguments differ.
        SidebandError.__init__(self, message, hint=hint, plugin=plugin)
        self.record = record
        self.reason = reason or message


class PluginNotFound(PluginError, LookupError):
    """No plugin of this kind and name is installed."""

    code = "plugin.unknown"

    def __init__(self, kind: str, name: str, *, known: Iterable[str] = (), provides: Sequence[str] = ()) -> None:
        missing = "list installed plugins with `sideband plugins list`, or install the package that provides this one"
        package = f"this is a package; name one of its plugins: {', '.join(provides)}"
        super().__init__(
            f"unknown {kind} `{name}`{did_you_mean(name, known)}", name=name, hint=package if provides else missing
        )


class PluginDenied(PluginError, PermissionError):
    """The policy does not allow the plugin. It was not imported."""

    code = "plugin.denied"
    exit_code = ExitCode.DENIED

    def __init__(self, record: PluginRecord) -> None:
        super().__init__(
            f"{described(record)} is denied by {record.decided_by}: {record.reason}",
            record=record,
            hint="add its package to the distribution, lock and sync it"
            if record.decided_by == "lock"
            else "change the policy to allow the plugin",
        )


class PluginIncompatible(PluginError, RuntimeError):
    """The plugin requires another version of the core, another Python environment, or another event loop."""

    code = "plugin.incompatible"

    def __init__(self, record: PluginRecord) -> None:
        super().__init__(
            f"{described(record)} is incompatible: {record.reason}",
            record=record,
            hint=f"install a compatible version of {record.distribution}, with the extras that it requires",
        )


class PluginDrifted(PluginError, RuntimeError):
    """The plugin, or a package that it needs, differs from the lock of the environment. It was not imported.

    Attributes:
        differences: one message for each difference, which names the file and both hashes.
    """

    code = "plugin.drifted"

    def __init__(self, record: PluginRecord, differences: Sequence[str]) -> None:
        shown = "; ".join(differences[:_SHOWN])
        if len(differences) > _SHOWN:
            shown += f"; and {len(differences) - _SHOWN} more"
        super().__init__(
            f"{described(record)} differs from sideband.lock and was not imported: {shown}",
            record=record,
            reason=f"it differs from the lock of this environment: {shown}",
            hint="list all differences with `sideband dist check`, and restore the environment with "
            "`sideband dist sync`",
        )
        self.differences = tuple(differences)


class GuardMissing(PluginError, RuntimeError):
    """A required guard is not active, so the host did not start.

    Attributes:
        guard: the name of the guard.
    """

    code = "plugin.guard"

    def __init__(self, guard: str, record: PluginRecord | None) -> None:
        problem = f"is {record.state.value}: {record.reason}" if record else "is not installed"
        super().__init__(
            f"the required guard `{guard}` {problem}",
            record=record,
            name=guard,
            hint="install or repair it, or run `sideband dist sync` if the environment is locked; a host starts only "
            "with all guards in `[policy] guards`",
        )
        self.guard = guard


class LockInvalid(ConfigurationError):
    """The environment has a ``sideband.lock`` that cannot be used. No plugin is loaded.

    Attributes:
        file: the path of the file.
    """

    code = "lock.invalid"

    def __init__(self, file: str, problem: str) -> None:
        hint = "restore the environment with `sideband dist sync`, run from another environment"
        super().__init__("sideband.lock", problem, source=file, hint=hint)
        self.file = file


class PluginFileInvalid(PluginError, ImportError):
    """A local file cannot be used as a plugin.

    Attributes:
        problem: the problem, without the path.
    """

    code = "plugin.file"

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(
            f"{path} cannot be used as a plugin: {problem}",
            reason=f"its file {path}: {problem}",
            hint="correct it or its path in `[policy.files]`, and trust it with `sideband plugins trust`",
        )
        self.problem = problem


class PluginUntrusted(PluginError, PermissionError):
    """The plugin is a local file that is not trusted with its current content. It was not imported."""

    code = "plugin.untrusted"

    def __init__(self, record: PluginRecord) -> None:
        super().__init__(
            f"{described(record)} was not imported: {record.reason}",
            record=record,
            reason=record.reason,
            hint="a plugin has your rights: trust only code that you have read",
        )


class PluginConflict(PluginError, RuntimeError):
    """Several distributions provide a plugin of the same kind and name. None of them is used.

    Attributes:
        distributions: the distributions, sorted.
    """

    code = "plugin.conflict"

    def __init__(self, kind: str, name: str, records: Sequence[PluginRecord]) -> None:
        # The hint names no package: the first one may be the one that was installed to replace the others.
        distributions = [record.distribution for record in records]
        select = "inline" if distributions.count("inline") == 1 else "DISTRIBUTION"
        super().__init__(
            f"{kind} `{name}` is claimed by {' and by '.join(record.claim for record in records)}; none is used",
            name=name,
            hint="remove the one that should not provide it, or name the distribution or path that you trust under "
            f'`[policy.conflicts]`: "{kind}.{name}" = "{select}"'
            + (" for the plugin that is passed to the host" if select == "inline" else ""),
        )
        self.distributions = tuple(distributions)


class PluginImportFailed(PluginError, ImportError):
    """Importing the plugin raised an exception, which is the ``__cause__``."""

    code = "plugin.import"

    def __init__(self, record: PluginRecord, problem: str) -> None:
        super().__init__(
            f"{described(record)} cannot be imported: {problem}",
            record=record,
            reason=f"it cannot be imported: {problem}",
            hint=(_correct(record) + "; it cannot import its neighbors" if record.file else _reinstall(record, problem))
            + f"; `sideband plugins why {record.label}` shows the traceback",
        )


class PluginInvalid(PluginError, TypeError):
    """The plugin was imported, but does not match the interface of its kind."""

    code = "plugin.invalid"

    def __init__(self, record: PluginRecord, problem: str) -> None:
        super().__init__(
            f"{described(record)}: {problem}",
            record=record,
            reason=problem,
            hint=_correct(record),
        )


class PluginMisconfigured(PluginError, ConfigurationError):
    """A value in the plugin's table is invalid. The message names the key, the value and the file."""

    code = "config.invalid"

    def __init__(self, record: PluginRecord, key: str, problem: str, *, source: str = "") -> None:
        where = f" ({source})" if source else ""
        super().__init__(
            f"configuration `{key}`{where}: {problem}",
            record=record,
            hint=f"correct `{key}`; until then, the plugin is not loaded",
        )
        self.key = key
        self.source = source


class LifespanFailed(PluginError, RuntimeError):
    """The plugin's ``lifespan`` raised an exception, timed out, or ended while the host was running."""

    code = "plugin.lifespan"

    def __init__(self, record: PluginRecord, problem: str, *, cause: BaseException | None = None) -> None:
        remedy = cause.hint if isinstance(cause, SidebandError) else ""
        super().__init__(
            f"the lifespan of {described(record)} {problem}",
            record=record,
            reason=f"its lifespan {problem}",
            hint=f"{remedy or 'check the requirements of the plugin'}, or deny it in `[policy.deny]`: "
            f'"{record.label}" = "…"',
        )


class PluginHostClosed(PluginError, RuntimeError):
    """A plugin was requested before the plugin host was entered, or after it was exited."""

    code = "plugin.closed"

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"{kind} `{name}` was requested outside `async with PluginHost(…)`", name=name)


class PluginReloadRefused(PluginError, RuntimeError):
    """A plugin was not reloaded, because it would not be safe. Nothing has changed."""

    code = "plugin.reload.refused"

    def __init__(self, record: PluginRecord, reason: str, *, hint: str = "") -> None:
        super().__init__(
            f"{described(record)} cannot be reloaded: {reason}",
            record=record,
            reason=reason,
            hint=hint or "restart the program to use the changed plugin",
        )


class PluginReloadFailed(PluginError, RuntimeError):
    """A plugin was not reloaded, because the candidate is unusable. Nothing has changed.

    The ``__cause__`` is the error of the candidate, if there is one.
    """

    code = "plugin.reload.failed"

    def __init__(self, record: PluginRecord, problem: str) -> None:
        super().__init__(
            f"{described(record)} was not reloaded: {problem}",
            record=record,
            reason=f"it was not reloaded: {problem}",
            hint=("correct and trust its file" if record.file else "correct the plugin")
            + ", and reload it again; the one that was loaded before stays in use",
        )


class StrictPluginError(PluginError, RuntimeError):
    """The host is strict and there are problems with its plugins. The message lists all of them.

    Attributes:
        problems: one message for each problem.
    """

    code = "plugin.strict"

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__(
            "`strict` is set and there are problems with plugins: " + "; ".join(problems),
            hint="list all plugins with their reasons with `sideband plugins list`",
        )
        self.problems = tuple(problems)


def unusable(record: PluginRecord) -> PluginError:
    """Return the error for a plugin that metadata or trust made unusable, without an import."""
    if record.decided_by == "lock" and record.state.value == "failed":
        return PluginDrifted(record, [record.reason])
    if record.state.value == "incompatible" or not record.file:
        return PluginIncompatible(record)
    return PluginUntrusted(record) if record.digest else PluginFileInvalid(record.file, record.reason)
