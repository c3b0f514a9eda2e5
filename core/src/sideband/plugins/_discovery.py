"""Decisions about plugins before they are imported: policy, compatibility and conflicts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from fnmatch import fnmatchcase
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

from ..errors import ConfigurationError
from ..suggestions import closest, did_you_mean
from ._entry_point import EntryPoint, Installed
from ._kinds import API, KINDS
from ._lock import Lock, environment_lock
from ._metadata import read_installed
from ._policy import PluginPolicy
from ._records import PluginRecord, State

if TYPE_CHECKING:
    import os

__all__ = ["decide", "discover", "list_plugins", "rivals", "survey"]

_NAME = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*\Z")
_FAMILY = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*\Z")


def discover(home: str | os.PathLike[str], policy: PluginPolicy) -> tuple[PluginRecord, ...]:
    """Return the records of all installed plugins, decided by metadata and policy only. Imports no plugin.

    Args:
        home: the host's state folder, which contains the index of installed plugins.
        policy: the policy about plugins.
    """
    return list_plugins(home, policy)[0]


def list_plugins(
    home: str | os.PathLike[str], policy: PluginPolicy
) -> tuple[tuple[PluginRecord, ...], tuple[str, ...]]:
    """Return the records of all installed plugins, as ``discover`` does, and the problems that belong to none of them.

    Args:
        home: the host's state folder, which contains the index of installed plugins.
        policy: the policy about plugins.

    Example:
        >>> records, problems = list_plugins(home, PluginPolicy())
    """
    return survey(read_installed(home=home), (), policy, home)


def survey(
    installed: Installed, inline: Iterable[PluginRecord], policy: PluginPolicy, home: str | os.PathLike[str]
) -> tuple[tuple[PluginRecord, ...], tuple[str, ...]]:
    """Return the records of all plugins, see ``decide``, and the problems that belong to none of them.

    These are unreadable metadata, a damaged ``trust.toml``, configuration of unknown plugins, and patterns of the
    policy that match no plugin. Local files are read. If the environment has a lock, only what it contains may be used,
    and the problems are the differences that metadata shows.

    Raises:
        LockInvalid: if the environment has a lock that cannot be used.
    """
    local, problems = _local(policy, home)
    lock = environment_lock()
    records = decide(installed.entry_points, inline, policy, local, lock)
    if lock is not None:
        from ._locked_plugins import missing_packages

        return records, (*installed.problems, *missing_packages(lock))
    return records, (
        *installed.problems,
        *problems,
        *_unknown_tables(records, policy),
        *_unmatched_patterns(records, policy),
    )


def _local(policy: PluginPolicy, home: str | os.PathLike[str]) -> tuple[list[tuple[PluginRecord, str]], list[str]]:
    """Return the records of local files, each with why it must not be loaded, and what is wrong with ``trust.toml``."""
    if not policy.files:
        return [], []
    from pathlib import Path

    from ..settings._trust import trusted_digests
    from ._local_files import local_records

    trusted, problems = {}, []
    try:
        trusted = trusted_digests(Path(home), "plugins")
    except ConfigurationError as error:
        problems.append(error.message)
    return list(local_records(policy.files, trusted)), problems


def decide(
    installed: Iterable[EntryPoint],
    inline: Iterable[PluginRecord],
    policy: PluginPolicy,
    local: Iterable[tuple[PluginRecord, str]] = (),
    lock: Lock | None = None,
) -> tuple[PluginRecord, ...]:
    """Create the records of all plugins, decide them by metadata and policy, and return them by kind and name.

    Args:
        installed: the entry points of installed plugins.
        inline: new records of plugins that were passed as objects.
        policy: the policy about plugins.
        local: new records of local files, each with why it must not be loaded, or an empty string.
        lock: the lock of the environment. Of what it does not contain, only objects are used, since they are code of
            the program, and none that has the name of a locked plugin.
    """
    records = list(inline)
    for record in records:
        _decide_one(record, _incompatibility(record), policy, only=None)
        if lock is not None and (locked := lock.plugin(record.kind, record.name)) is not None:
            record.move(State.DENIED, f"the lock gives this name to {locked.package}", decided_by="lock")
    for entry_point in installed:
        record = _record(entry_point)
        if lock is not None:
            from ._locked_plugins import decide_locked

            decide_locked(record, lock)
        if record.state is State.FOUND:
            _decide_one(record, _incompatibility(record) or entry_point.unmet, policy, only=policy.only)
        records.append(record)
    for record, problem in local:
        if lock is not None:
            record.move(State.DENIED, lock.denial([record.label, record.name]), decided_by="lock")
            records.append(record)
            continue
        _decide_one(record, _incompatibility(record), policy, only=policy.only)
        if problem and record.state is State.FOUND:
            record.move(State.FAILED, problem, decided_by="trust")
        records.append(record)
    records.sort(key=attrgetter("kind", "name", "distribution"))
    for _, group in groupby(records, key=attrgetter("kind", "name")):
        _decide_conflict(rivals(group), policy)
    return tuple(records)


def rivals(records: Iterable[PluginRecord]) -> list[PluginRecord]:
    """Return the plugins of one kind and name that are not denied.

    Incompatible plugins are included; otherwise another distribution's plugin could silently replace one after an
    update.
    """
    return [record for record in records if record.state is not State.DENIED]


def _unknown_tables(records: Sequence[PluginRecord], policy: PluginPolicy) -> Iterator[str]:
    """Yield a problem for each configured plugin that is not installed."""
    known = sorted({record.name for record in records})
    for name in policy.config:
        if name not in known:
            problem = f"no plugin with this name is installed{did_you_mean(name, known)}"
            yield ConfigurationError(f"plugins.{name}", problem, source=policy.config_source.get(name, "")).message


def _unmatched_patterns(records: Sequence[PluginRecord], policy: PluginPolicy) -> Iterator[str]:
    """Yield a problem for each pattern of the policy that matches no plugin, since a typo there is a security risk."""
    names = {name for record in records for name in (record.label, record.name, record.distribution)}
    for key, patterns in (("deny", policy.deny), ("only", policy.only or ()), ("conflicts", policy.conflicts)):
        for pattern in patterns:
            if not any(fnmatchcase(name, pattern) for name in names):
                yield f"`{pattern}` in [policy.{key}] matches no installed plugin{did_you_mean(pattern, names)}"


def _record(entry_point: EntryPoint) -> PluginRecord:
    fields = entry_point._asdict()
    del fields["requires"], fields["unmet"]
    return PluginRecord(**fields)


def _decide_one(
    record: PluginRecord, incompatibility: str, policy: PluginPolicy, *, only: AbstractSet[str] | None
) -> None:
    for pattern, reason in policy.deny.items():
        if _matches(record, pattern):
            record.move(State.DENIED, reason, decided_by=f"policy.deny `{pattern}`")
            return
    if only is not None and not any(_matches(record, pattern) for pattern in only):
        record.move(State.DENIED, policy.only_reason, decided_by="policy.only")
    elif incompatibility:
        record.move(State.INCOMPATIBLE, incompatibility, decided_by="metadata")


def _matches(record: PluginRecord, pattern: str) -> bool:
    return any(fnmatchcase(name, pattern) for name in (record.label, record.name, record.distribution))


def _incompatibility(record: PluginRecord) -> str:
    """Return why the group or name of a plugin is not supported by this core, or an empty string."""
    if record.kind not in KINDS:
        near = closest(record.kind, KINDS)
        suggestion = f"; did you mean `sideband.v{API}.{near}`?" if near else ""
        return f"unknown kind of plugin `{record.kind}`{suggestion}"
    if record.api != API:
        version = f"version {record.api}" if record.api else "no version"
        return f"its group names {version} of the plugin API, but this core has version {API}"
    pattern, joined = (_FAMILY, "`_`") if record.kind == "op" else (_NAME, "`-` or `_`")
    if not pattern.match(record.name):
        return f"its name {record.name!r} must consist of lower-case words and digits, joined by {joined}"
    return ""


def _decide_conflict(group: Sequence[PluginRecord], policy: PluginPolicy) -> None:
    if len(group) < 2:
        return
    label = group[0].label
    chosen = policy.conflicts.get(label)
    if chosen is not None and [record.distribution for record in group].count(chosen) == 1:
        for record in group:
            if record.distribution != chosen:
                reason = f"it is also provided by {chosen}, which was chosen"
                record.move(State.DENIED, reason, decided_by=f"policy.conflicts `{label}`")
        return
    reason = f"it is claimed by {' and by '.join(record.claim for record in group)}"
    if chosen is not None:
        reason += f"; `{chosen}`, chosen in policy.conflicts, is not one of them"
    for record in group:
        if record.state.usable:
            record.move(State.FAILED, reason, decided_by="metadata")
