"""The states of installed plugins at the last start of a host in a home folder, for ``sideband plugins list``.

They are only shown. Whether a plugin may load is decided by its present metadata and policy.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import NamedTuple

from ._cache import cache_file, read_cache, write_cache
from ._records import PluginRecord, State, Transition

__all__ = ["LastStart", "read_last_start", "write_last_start"]

_NAME = "last-start"


class LastStart(NamedTuple):
    """The plugins that the last start of a host loaded, or failed to load.

    Attributes:
        time: the time of the start, as in ``2026-11-23T04:46:57Z``.
        states: the final state of each plugin.
    """

    time: str
    states: dict[tuple[str, ...], Transition]

    def state_of(self, record: PluginRecord) -> Transition | None:
        """Return the state of a plugin, or ``None`` if it was not loaded, or is now refused or another version."""
        return self.states.get(_identity(record)) if record.state is State.FOUND else None


def read_last_start(home: str | os.PathLike[str]) -> LastStart | None:
    """Return the states, or ``None`` if no host has started in this home folder and Python environment."""
    content = read_cache(cache_file(home, _NAME), None)
    try:
        found = {
            tuple(map(str, one)): Transition(State(state), str(why), str(by)) for one, state, why, by in content[1]
        }
        return LastStart(str(content[0]), found)
    except (IndexError, KeyError, TypeError, ValueError):
        return None


def write_last_start(home: str | os.PathLike[str], records: Iterable[PluginRecord]) -> None:
    """Write the states of these plugins, except for those that were passed as objects."""
    installed = [record for record in records if record.location]
    states = [(_identity(one), one.state.value, one.reason, one.decided_by) for one in installed]
    write_cache(cache_file(home, _NAME), None, [time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), states])


def _identity(record: PluginRecord) -> tuple[str, ...]:
    return (record.kind, record.name, record.distribution, record.version, record.value, record.location)
