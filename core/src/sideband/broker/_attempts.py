"""The records of attempts to run calls: find those of earlier attempts, and keep large answers beside the ledger."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from anyio import CancelScope
from attrs import field, frozen

from ..blobs import BlobError, BlobStore
from ..ledger import Ledger, query
from ..ledger._bytes import bytes_as_json, revive
from ._attempt import Attempt

_MAX_RECORDS = 100_000
_LARGEST = 64 << 20


@frozen
class Attempts:
    """The attempts to run calls of a host.

    Args:
        ledger: the ledger.
        folder: the folder for large answers. Unlike blobs of users, they are deleted with their call.
    """

    _ledger: Ledger
    _answers: BlobStore = field(converter=BlobStore, alias="folder")

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
        return attempt

    async def keep(self, attempt: Attempt, result: Any) -> str:
        """Store a large answer, and return its digest, or an empty string if it cannot be stored."""
        with CancelScope(shield=True), suppress(BlobError):
            blob = await self._answers.put(json.dumps(result, default=bytes_as_json).encode())
            attempt.blobs.add(blob.sha256)
            return blob.sha256
        return ""

    async def kept(self, digest: str) -> Any:
        """Return a large answer.

        Raises:
            LookupError: if it is lost.
        """
        try:
            return revive(json.loads(await self._answers.read(digest, max_bytes=_LARGEST)))
        except (BlobError, ValueError) as error:
            raise LookupError(digest) from error

    async def forget(self, attempt: Attempt) -> None:
        """Delete the large answers of a call whose outcome is recorded."""
        if not attempt.blobs:
            return
        with CancelScope(shield=True):
            await self._ledger.sync()
            for blob in attempt.blobs:
                with suppress(BlobError):
                    await self._answers.delete(blob)
