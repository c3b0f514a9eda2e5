"""The head as the store keeps it: a chain alone can't show that its end was cut off."""

from __future__ import annotations

from ..errors import StoreConflict
from ..store import Document, Store
from ._lines import Head

_KEY = "ledger/head"


async def load_head(store: Store) -> Head | None:
    """The head that was stored last, or ``None``."""
    return _head(await store.get(_KEY))


async def save_head(store: Store, head: Head, *, replaces: Head | None = None) -> None:
    """Store ``head``, unless another host has stored a later one.

    Args:
        store: where to.
        head: the last line that is on disk.
        replaces: a head that is known to be lost, which an earlier one may replace.
    """
    while True:
        document = await store.get(_KEY)
        stored = _head(document)
        if stored is not None and stored.seq >= head.seq and stored != replaces:
            return
        try:
            await store.put(_KEY, head.as_dict(), version=document.version if document else 0)
        except StoreConflict:
            continue
        return


def _head(document: Document | None) -> Head | None:
    return None if document is None else Head.from_dict(document.value)
