"""The head in the store. It reveals a truncated ledger, which the hash chain alone cannot."""

from __future__ import annotations

from pathlib import Path
from secrets import token_hex

from ..errors import StoreConflict
from ..state import write_state_file
from ..store import Document, SharedStore, Store
from ._lines import Head

_KEY = "ledger/head"


def head_key(folder: Path, store: Store, *, create: bool = False) -> str:
    """Return the key of the head. Of the ledgers whose hosts share a store, each has its own, in the file ``id``.

    Args:
        folder: the folder of the ledger.
        store: the store.
        create: whether to create the file if it is missing. The caller must hold the ledger's lock.

    Raises:
        OSError: if the file cannot be read or created.
    """
    if not isinstance(store, SharedStore):
        return _KEY
    file = folder / "id"
    if create and not file.exists():
        write_state_file(file, token_hex(16))
    return f"{_KEY}/{file.read_text('ascii') if file.exists() else ''}"


def identifier_of(key: str) -> str:
    """Return the id of the ledger that has this key."""
    return key.removeprefix(f"{_KEY}/")


async def load_head(store: Store, key: str) -> Head | None:
    """Return the stored head, or ``None``."""
    return _head(await store.get(key))


async def save_head(store: Store, key: str, head: Head, *, replaces: Head | None = None, durable: bool = True) -> None:
    """Store ``head``, unless another host has stored a later one.

    Args:
        store: the store to write to.
        key: its key.
        head: the head after the last line on disk.
        replaces: a stored head that the files no longer contain. It may be replaced by an earlier head.
        durable: whether it must be on disk on return.
    """
    while True:
        document = await store.get(key)
        stored = _head(document)
        if stored is not None and stored.seq >= head.seq and stored != replaces:
            return
        try:
            await store.put(key, head.as_dict(), version=document.version if document else 0, durable=durable)
        except StoreConflict:
            continue
        return


def _head(document: Document | None) -> Head | None:
    return None if document is None else Head.from_dict(document.value)
