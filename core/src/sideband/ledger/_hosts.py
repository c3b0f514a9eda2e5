"""Track which hosts are running, and where in the ledger the unsettled effects of a dead host begin.

Each running host holds a lock on its own file, ``hosts/ID``. The kernel releases the lock when the host exits. The file
contains the position of the oldest running effect in the ledger (the mark), so that after a crash only later lines are
read. A host that exits normally removes its file.
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import time
from collections import deque
from contextlib import suppress
from functools import partial
from pathlib import Path

from attrs import define, field

from ..state import try_lock
from ._entries import EffectRecord, LedgerEntry
from ._lines import LineInvalid, parse
from ._segments import Mark, lines_from, make_folder

_WIDTH = 64
_MOST_ENDED = 1_000


def new_host_id() -> str:
    """Return a unique host id: the Unix time in seconds and 24 random bits, in hexadecimal."""
    return f"{int(time.time()):08x}{secrets.token_hex(3)}"


_HOST = re.compile(r"[0-9a-f]{14,}\Z")


@define
class HostFile:
    """The locked file of a running host."""

    path: Path
    _descriptor: int
    _mark: Mark | None = None

    @classmethod
    def create(cls, folder: Path, host: str) -> HostFile:
        """Register a host. The caller must hold the ledger's lock, so that no other host considers this one dead."""
        hosts = folder / "hosts"
        make_folder(hosts)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        file = cls(hosts / host, os.open(hosts / host, flags, 0o600))
        try:
            if not try_lock(file._descriptor):
                raise BlockingIOError(errno.EAGAIN, "the host file is locked by another process")
            file.mark(Mark())
        except OSError:
            file.close(remove=True)
            raise
        return file

    def mark(self, mark: Mark) -> None:
        """Store the position of the oldest running effect."""
        if mark != self._mark:
            text = json.dumps({"segment": mark.segment, "offset": mark.offset})
            os.pwrite(self._descriptor, text.ljust(_WIDTH - 1).encode("ascii") + b"\n", 0)
            self._mark = mark

    def close(self, *, remove: bool) -> None:
        """Release the lock. Remove the file if the host has no unsettled effects."""
        if remove:
            self.path.unlink(missing_ok=True)
        os.close(self._descriptor)


@define
class DeadHost:
    """A dead host whose effects this host has adopted. This host alone settles them.

    Attributes:
        unsettled: its effects without an outcome.
        ended: its last effects with a key and an outcome, which a shared store may not have.
    """

    name: str
    file: HostFile
    mark: Mark
    unsettled: dict[str, EffectRecord] = field(factory=dict)
    ended: deque[EffectRecord] = field(factory=partial(deque, maxlen=_MOST_ENDED))

    def take(self, entry: LedgerEntry) -> None:
        """Update the effects with a line about one of the dead host."""
        effect = str(entry.fields.get("effect", ""))
        if entry.kind == "intent" and effect.startswith(f"{self.name}-"):
            self.unsettled[effect] = EffectRecord.from_entries((entry,))
        elif entry.kind == "note" and effect in self.unsettled:
            self.unsettled[effect] = EffectRecord.from_entries((*self.unsettled[effect].entries, entry))
        elif entry.kind == "outcome":
            begun = self.unsettled.pop(effect, None)
            if begun is not None and begun.key is not None:
                self.ended.append(EffectRecord.from_entries((*begun.entries, entry)))


def is_alive(folder: Path, host: str) -> bool:
    """Return whether the host with this id is registered and running."""
    try:
        descriptor = os.open(folder / "hosts" / host, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        return not try_lock(descriptor, shared=True)
    finally:
        os.close(descriptor)


def adopt_dead_hosts(folder: Path) -> list[DeadHost]:
    """Lock the files of all dead hosts. The caller must hold the ledger's lock."""
    try:
        paths = sorted((folder / "hosts").iterdir())
    except FileNotFoundError:
        return []
    return [dead for path in paths if _HOST.match(path.name) and (dead := _adopt(path)) is not None]


def find_unsettled(folder: Path, dead: DeadHost) -> None:
    """Read the ledger from the mark of ``dead``, and collect its intents without an outcome."""
    needle = b'"effect":"' + dead.name.encode("ascii") + b"-"
    for _, _, raw in lines_from(folder, dead.mark.segment, dead.mark.offset):
        if needle in raw:
            with suppress(LineInvalid):
                dead.take(LedgerEntry.from_line(parse(raw)))


def _adopt(path: Path) -> DeadHost | None:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    if not try_lock(descriptor):
        os.close(descriptor)
        return None
    return DeadHost(path.name, HostFile(path, descriptor), _read_mark(descriptor))


def _read_mark(descriptor: int) -> Mark:
    try:
        stored = json.loads(os.pread(descriptor, _WIDTH, 0))
        return Mark(int(stored["segment"]), int(stored["offset"]))
    except (ValueError, KeyError, TypeError):
        # A power failure may lose the mark. Read the whole ledger then.
        return Mark()
