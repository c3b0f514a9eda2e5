"""The head in the store. It reveals a truncated ledger, which the hash chain alone cannot."""

from __future__ import annotations

from ..errors import StoreConflict
from ..store import Document, Store
from ._lines import Head

_KEY = "ledger/head"


async def load_head(store: Store) -> Head | None:
    """Return the stored head, or ``None``."""
    return _head(await store.get(_KEY))


async def save_head(store: Store, head: Head, *, replaces: Head | None = None, durable: bool = True) -> None:
    """Store ``head``, unless another host has stored a later one.

    Args:
        store: the store to write to.
        head: the head after the last line on disk.
        replaces: a stored head that the files no longer contain. It may be replaced by an earlier head.
        durable: whether it must be on disk on return.
    """
    while True:
        document = await store.get(_KEY)
        stored = _head(document)
        if stored is not None and stored.seq >= head.seq and stored != replaces:
            return
        try:
            await store.put(_KEY, head.as_dict(), version=document.version if document else 0, durable=durable)
        except StoreConflict:
            continue
        return


def _head(document: Document | None) -> Head | None:
    return None if document is None else Head.from_dict(document.value)
