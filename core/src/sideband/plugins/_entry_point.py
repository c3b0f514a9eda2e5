"""What installed metadata says about plugins, as data."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["EntryPoint", "Installed"]


class EntryPoint(NamedTuple):
    """One entry point of an installed distribution, in a group ``sideband.vN.KIND``.

    Attributes:
        api: the version in the group's name, ``1``; 0 if the group has none.
        kind: the last part of the group's name: ``op``.
        name: the entry point's name, which is the plugin's.
        value: what it names: ``sideband_http.plugin`` or ``package.module:object``.
        distribution: the distribution's name, as its author writes it.
        version: the distribution's version.
        requires: its requirements on ``sideband-core``, as written.
        unmet: why one of them does not fit the core that is running; empty if all do.
        editable: whether it is installed from a working folder, whose files can change at any time.
        installer: the tool that installed it, as it says itself; empty if not known.
        location: the folder that holds the distribution.
        hashed: whether the hashes of its modules were recorded at installation.
    """

    api: int
    kind: str
    name: str
    value: str
    distribution: str
    version: str
    requires: tuple[str, ...] = ()
    unmet: str = ""
    editable: bool = False
    installer: str = ""
    location: str = ""
    hashed: bool = False


class Installed(NamedTuple):
    """What is installed: the entry points, and what could not be read, one sentence each."""

    entry_points: tuple[EntryPoint, ...] = ()
    problems: tuple[str, ...] = ()
