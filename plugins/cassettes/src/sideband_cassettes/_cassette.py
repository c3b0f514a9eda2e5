"""The cassette that a host is opened with."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from attrs import field, frozen

from ._file import read_cassette
from ._tape import Tape
from ._text import ValuePlaces

if TYPE_CHECKING:
    from sideband.broker import Redaction

Mode = Literal["record", "replay", "missing"]
"""``record`` writes the file again, ``replay`` answers all effects from it, ``missing`` records those not in it."""

_MODES = ("record", "replay", "missing")


@frozen
class Cassette:
    """A file with the effects of a host, for ``Host(cassette=…)``.

    A host that replays runs no handler of an op and no provider, and opens no connection. The first effect that the
    file does not have stops it with ``CassetteDivergence``; so do recorded effects that were not requested when the
    host is closed. A host that records writes the file when it is closed, unless an exception other than a
    ``SidebandError`` closes it.

    Args:
        path: the file.
        mode: ``replay`` (default), ``record`` or ``missing``.
        places: more folders that differ between machines or runs, by a name of lower-case letters and ``_``. Those of
            the project, of the host's state and of the user are known.

    Raises:
        TypeError: if the path is not a ``Path``.
        ValueError: if the mode or a name is invalid.

    Example:
        >>> from sideband import Host
        >>> async def offline() -> object:
        ...     async with Host(cassette=Cassette(Path("cassettes/stars.json"))) as host:
        ...         return await host.call("github.stars", repo="pytest-dev/pluggy")
    """

    path: Path
    mode: Mode = "replay"
    places: Mapping[str, Path] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.path, Path):
            raise TypeError(f"`path`: expected a Path, got a {type(self.path).__name__}: write `Path({self.path!r})`")
        if self.mode not in _MODES:
            raise ValueError(f"`mode`: expected {', '.join(_MODES)}, got {self.mode!r}")
        for name in self.places:
            if not name.replace("_", "").isalpha() or name != name.lower() or name in _RESERVED:
                raise ValueError(f"`places`: expected a name of lower-case letters and `_`, got {name!r}")

    def load(self, *, home: Path, redactor: Redaction) -> Tape:
        """Return the state of the cassette for one host, which does this itself.

        Args:
            home: the folder with the state of the host.
            redactor: the secrets that the host knows.

        Raises:
            CassetteInvalid: if the file cannot be replayed.
        """
        known = None
        if self.mode == "replay" or (self.mode == "missing" and self.path.exists()):
            known = read_cassette(self.path)
        folders = {
            "user": Path.home(),
            "temporary": Path(tempfile.gettempdir()),
            "project": Path.cwd(),
            "state": home,
            **self.places,
        }
        places = ValuePlaces({name: str(folder) for name, folder in folders.items()})
        return Tape(self.path, self.mode, places, redactor, known)


_RESERVED = frozenset({"call", "effect", "parent", "run", "session", "text"})
