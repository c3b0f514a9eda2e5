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
from attrs import frozen

from ..blobs import BlobError, BlobStore
from ..errors import SidebandError
from ..ledger import Ledger, query
from ..ledger._bytes import bytes_as_json, revive
from ._attempt import Attempt

_MAX_RECORDS = 100_000
_LARGEST = 64 << 20
_ABANDONED_SECONDS = 7 * 86_400


@frozen
class Attempts:
    """The attempts to run calls of a host.

    Args:
        ledger: the ledger.
        folder: the folder for large answers. It has a folder for each call, which is deleted with the call.
    """

    _ledger: Ledger
    _folder: Path

    async def again(self, key: str, *, principal: str, started: str, seed: str, stops: bool) -> Attempt:
        """Return a further attempt to run a call that was interrupted, with the record of the earlier ones.

        Args:
            key: the key of the call.
            principal: the principal of the call.
            started, seed, stops: see ``Attempt``.
        """
        attempt = Attempt(key=key, started=started, seed=seed, stops=stops)
        found = await query(self._ledger.folder, under=f"{key}:", principal=principal, limit=_MAX_RECORDS)
        attempt.remember(reversed(found))
        attempt.keeps = self._answers(attempt).exists()  # also one that no record names: its host died first
        return attempt

    async def keep(self, attempt: Attempt, result: Any) -> str:
        """Store a large answer, and return its digest, or an empty string if it cannot be stored."""
        attempt.keeps = True
        with CancelScope(shield=True), suppress(BlobError):
            data = json.dumps(result, default=bytes_as_json).encode()
            return (await BlobStore(self._answers(attempt)).put(data)).sha256
        return ""

    async def kept(self, attempt: Attempt, digest: str) -> Any:
        """Return a large answer.

        Raises:
            LookupError: if it is lost.
        """
        try:
            return revive(json.loads(await BlobStore(self._answers(attempt)).read(digest, max_bytes=_LARGEST)))
        except (BlobError, ValueError) as error:
            raise LookupError(digest) from error

    async def forget(self, attempt: Attempt) -> None:
        """Delete the large answers of a call whose outcome is recorded, unless it cannot be brought to disk."""
        if attempt.keeps:
            with CancelScope(shield=True), suppress(SidebandError):
                await self._ledger.sync()
                await to_thread.run_sync(shutil.rmtree, self._answers(attempt), True)

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
