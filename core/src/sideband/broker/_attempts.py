"""The records of attempts to run calls: find those of earlier attempts, and keep large answers beside the ledger."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from anyio import CancelScope, to_thread
from attrs import field, frozen

from ..errors import StoreError
from ..ledger import Ledger, LedgerError, query
from ..ledger._bytes import bytes_as_json, revive
from ._attempt import Attempt

_MAX_RECORDS = 100_000
_MOST_ENDED = 64
_ABANDONED_SECONDS = 7 * 86_400


@frozen(eq=False)
class Attempts:
    """The attempts to run calls of a host.

    Args:
        ledger: the ledger.
        folder: the folder for large answers. It has a folder for each call, which is deleted with the call.
    """

    _ledger: Ledger
    _folder: Path
    # The folders of calls that have ended. Deleting them waits for a sync that is due anyway, since reads need none.
    _ended: list[Path] = field(factory=list, init=False)

    async def again(self, key: str, *, principal: str | None, started: str, seed: str, stops: bool) -> Attempt:
        """Return a further attempt to run a call that was interrupted, with the record of the earlier ones.

        Args:
            key: the key of the call.
            principal: the principal of the call; ``None`` for any, to read the record only.
            started, seed, stops: see ``Attempt``.
        """
        attempt = Attempt(key=key, started=started, seed=seed, stops=stops)
        found = await query(self._ledger.folder, under=f"{key}:", principal=principal, limit=_MAX_RECORDS)
        attempt.remember(reversed(found))
        attempt.keeps = self._answers(attempt).exists()  # also one that no record names: its host died first
        return attempt

    async def keep(self, attempt: Attempt, result: Any) -> str:
        """Store a large answer, and return its digest, or an empty string if it cannot be stored.

        It survives the end of the process. After a power failure it may be lost, and is requested again.
        """
        attempt.keeps = True
        content = json.dumps(result, default=bytes_as_json).encode()
        path = self._answers(attempt) / hashlib.sha256(content).hexdigest()
        with CancelScope(shield=True), suppress(OSError):
            await to_thread.run_sync(_write, path, content)
            return path.name
        return ""

    async def kept(self, attempt: Attempt, digest: str) -> Any:
        """Return a large answer.

        Raises:
            LookupError: if it is lost.
        """
        with suppress(OSError, ValueError):
            content = await to_thread.run_sync((self._answers(attempt) / digest).read_bytes)
            if hashlib.sha256(content).hexdigest() == digest:
                return revive(json.loads(content))
        raise LookupError(digest)

    async def forget(self, attempt: Attempt) -> None:
        """Delete the large answers of a call whose outcome is recorded, as soon as that is on disk."""
        if attempt.keeps:
            self._ended.append(self._answers(attempt))
        if len(self._ended) > _MOST_ENDED:
            await self.aclose()

    async def sync(self) -> None:
        """Sync the ledger, and delete the answers of calls that had ended before."""
        ended = self._ended[:]
        await self._ledger.sync()
        for folder in ended:
            if folder in self._ended:  # not deleted by another task meanwhile
                self._ended.remove(folder)
                await to_thread.run_sync(shutil.rmtree, folder, True)

    async def aclose(self) -> None:
        """Delete the answers of calls that have ended, unless their outcomes cannot be synced."""
        if self._ended:
            with suppress(LedgerError, StoreError):
                await self.sync()

    def forget_abandoned(self) -> None:
        """Delete the large answers of calls that have not run for a week: they were interrupted, and not resumed."""
        before = time.time() - _ABANDONED_SECONDS
        for folder in self._folder.glob("*"):
            with suppress(OSError):
                if folder.lstat().st_mtime < before:
                    shutil.rmtree(folder)

    def _answers(self, attempt: Attempt) -> Path:
        """Return the folder for the large answers of a call, which all its attempts share."""
        return self._folder / hashlib.sha256(attempt.seed.encode()).hexdigest()[:32]


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_bytes(content)  # a file that is written in part has another digest
