"""Installed metadata of plugins, as data."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["EntryPoint", "Installed"]


class EntryPoint(NamedTuple):
    """One entry point of an installed distribution, in a group ``sideband.vN.KIND``.

    Attributes:
        api: the version in the group's name, such as ``1``; 0 if the name has no version.
        kind: the last part of the group's name, such as ``op``.
        name: the name of the entry point and the plugin.
        value: the module or object: ``sideband_http.plugin`` or ``package.module:object``.
        distribution: the name of the distribution, not normalized.
        version: the version of the distribution.
        requires: the requirements on ``sideband-core``, unparsed.
        unmet: why the core does not satisfy one of these requirements, or which extra is missing; empty if all is met.
        editable: whether it is an editable installation, whose files can change at any time.
        installer: the tool that installed it, according to the metadata; empty if unknown.
        location: the folder that contains the distribution.
        hashed: whether hashes of its modules were recorded at installation.
        digest: the SHA-256 of that record, which has the hash of each file; empty if not ``hashed``.
        url: the address that it was installed from, without credentials; empty if it came from a package index.
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
    digest: str = ""
    url: str = ""


class Installed(NamedTuple):
    """The installed entry points, and one message for each distribution that could not be read."""

    entry_points: tuple[EntryPoint, ...] = ()
    problems: tuple[str, ...] = ()
