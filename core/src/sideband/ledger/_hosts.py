"""Which hosts live, and from where on the lines of a dead one have to be looked at.

A host holds a lock on a file of its own, ``hosts/ID``, for as long as it lives; the operating system releases it
however the host ends. The file says where the oldest effect still running stood in the ledger (its mark), so that
after a crash only what came later is read. A host that ends in order removes its file.
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import time
from contextlib import suppress
from pathlib import Path

from attrs import define, field, frozen

from ..state import try_lock
from ._entries import EffectRecord, LedgerEntry
from ._lines import LineInvalid, parse
from ._segments import lines_from, make_folder

_WIDTH = 64


@frozen(order=True)
class Mark:
    """A place in the ledger: a segment, and a byte in it."""

    segment: int = 1
    offset: int = 0


def new_host_id() -> str:
    """An id that no other host has: seconds since 1970 and 24 random bits, as hexadecimal digits."""
    return f"{int(time.time()):08x}{secrets.token_hex(3)}"


_HOST = re.compile(r"[0-9a-f]{14,}\Z")


@define
class HostFile:
    """The locked file of a living host."""

    path: Path
    _descriptor: int
    _mark: Mark | None = None

    @classmethod
    def create(cls, folder: Path, host: str) -> HostFile:
        """Register a host. The ledger's lock must be held, so that no one takes it for a dead one meanwhile."""
        hosts = folder / "hosts"
        make_folder(hosts)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        file = cls(hosts / host, os.open(hosts / host, flags, 0o600))
        try:
            if not try_lock(file._descriptor):
                raise BlockingIOError(errno.EAGAIN, "another process has locked it")
            file.mark(Mark())
        except OSError:
            file.close(remove=True)
            raise
        return file

    def mark(self, mark: Mark) -> None:
        """Note where the oldest running effect begins."""
        if mark != self._mark:
            text = json.dumps({"segment": mark.segment, "offset": mark.offset})
            os.pwrite(self._descriptor, text.ljust(_WIDTH - 1).encode("ascii") + b"\n", 0)
            self._mark = mark

    def close(self, *, remove: bool) -> None:
        """Release it. ``remove`` says that nothing of this host is left to be looked at."""
        if remove:
            self.path.unlink(missing_ok=True)
        os.close(self._descriptor)


@define
class DeadHost:
    """A host that is gone, adopted by this one: no other host looks after its effects any more."""

    name: str
    file: HostFile
    mark: Mark
    unsettled: dict[str, EffectRecord] = field(factory=dict)

    def take(self, entry: LedgerEntry) -> None:
        """Note what a line says, if it is about an effect of this host."""
        effect = str(entry.fields.get("effect", ""))
        if entry.kind == "intent" and effect.startswith(f"{self.name}-"):
            self.unsettled[effect] = EffectRecord.from_entries((entry,))
        elif entry.kind == "note" and effect in self.unsettled:
            self.unsettled[effect] = EffectRecord.from_entries((*self.unsettled[effect].entries, entry))
        elif entry.kind == "outcome":
            self.settle(effect)

    def settle(self, effect: str) -> bool:
        """Note that an effect got its outcome; whether it was one of this host."""
        return self.unsettled.pop(effect, None) is not None


def is_alive(folder: Path, host: str) -> bool:
    """Whether the host with this id is registered and runs."""
    try:
        descriptor = os.open(folder / "hosts" / host, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        return not try_lock(descriptor, shared=True)
    finally:
        os.close(descriptor)


def adopt_dead_hosts(folder: Path) -> list[DeadHost]:
    """Lock the files of hosts that are gone. The ledger's lock must be held."""
    try:
        paths = sorted((folder / "hosts").iterdir())
    except FileNotFoundError:
        return []
    return [dead for path in paths if _HOST.match(path.name) and (dead := _adopt(path)) is not None]


def find_unsettled(folder: Path, dead: DeadHost) -> None:
    """Read the ledger from the mark of ``dead`` on, and note its intents without outcome."""
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
        said = json.loads(os.pread(descriptor, _WIDTH, 0))
        return Mark(int(said["segment"]), int(said["offset"]))
    except (ValueError, KeyError, TypeError):
        # Lost in a power cut: then everything is read.
        return Mark()
