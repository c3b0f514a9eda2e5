"""Copies of ledgers in a store that hosts of several machines share, so that each of them can read those of the others.

A host adds what its ledger has gained with each write of the head. A copy is a stream of parts of the segments, and a
document with the last line that it contains. If the ledger no longer contains that line, another copy begins; what was
copied before remains in the store.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from anyio import to_thread

from ..errors import StoreConflict
from ..state import write_state_file
from ..store import SharedStore, Store
from ._chain import EMPTY
from ._lines import Head
from ._segments import contains, lines, make_folder, open_segment, segment_numbers

_COPIES = "ledger/copies/"
_PART_BYTES = 256 * 1024


async def copy_lines(folder: Path, store: Store, identifier: str, head: Head) -> None:
    """Add the lines up to ``head`` to the copy of a ledger, unless another host of the same home does.

    Args:
        folder: the folder of the ledger.
        store: the store. Unless it is shared, this does nothing.
        identifier: the id of the ledger.
        head: a head that is on disk.
    """
    if not isinstance(store, SharedStore):
        return
    key = _COPIES + identifier
    document = await store.get(key)
    number, copied = (0, EMPTY) if document is None else _state(document.value)
    if not await to_thread.run_sync(contains, folder, copied):
        number, copied = number + 1, EMPTY
    if copied.seq >= head.seq:
        return
    parts = await to_thread.run_sync(lambda: list(_parts(folder, copied, head)))
    try:
        async with store.transaction(durable=False) as transaction:
            state = {"number": number, "head": head.as_dict()}
            await transaction.put(key, state, version=0 if document is None else document.version)
            await transaction.append(_stream(identifier, number), parts)
    except StoreConflict:
        return


async def fetch_copies(store: Store, ledger: Path) -> tuple[Path, ...]:
    """Fetch the ledgers of other homes whose hosts share the store, and return their folders.

    They are folders of ledgers as of the last write of their heads, which ``query``, ``tail``, ``find`` and ``verify``
    read. They lie beside the own ledger, and only what is new is fetched.

    Args:
        store: the store of the host, ``host.store``. Unless it is shared, the result is empty.
        ledger: the folder of the own ledger, ``host.ledger.folder``.

    Raises:
        StoreError: if the store cannot be read.
        OSError: if the copies cannot be written.

    Example:
        >>> async with Host() as host:
        ...     for folder in await fetch_copies(host.store, host.ledger.folder):
        ...         print(await query(folder, status="unknown"))
    """
    if not isinstance(store, SharedStore):
        return ()
    own = ledger / "id"
    mine = own.read_text("ascii") if own.exists() else ""
    others = [key.removeprefix(_COPIES) for key in await store.keys(_COPIES)]
    return tuple([await _fetch(store, ledger.parent / "ledgers", one) for one in others if one != mine])


async def _fetch(store: Store, copies: Path, identifier: str) -> Path:
    document = await store.get(_COPIES + identifier)
    number, _ = (0, EMPTY) if document is None else _state(document.value)
    folder = copies / f"{quote(identifier, safe='')}-{number}"
    make_folder(folder)
    fetched = folder / "fetched"
    start = int(fetched.read_text("ascii")) if fetched.exists() else 0
    records = await store.read(_stream(identifier, number), start=start)
    if records:
        await to_thread.run_sync(_write_parts, folder, [one.value for one in records])
        write_state_file(folder / "id", identifier)
        write_state_file(fetched, str(start + len(records)))
    return folder


def _parts(folder: Path, copied: Head, head: Head) -> Iterator[dict[str, Any]]:
    """Yield the lines between two heads, in parts of limited size."""
    for number in segment_numbers(folder):
        if not copied.segment <= number <= head.segment:
            continue
        begin = copied.size if number == copied.segment else 0
        texts: list[str] = []
        size = 0
        for offset, raw in lines(folder, number, begin, head.size if number == head.segment else None):
            if size + len(raw) > _PART_BYTES and texts:
                yield {"segment": number, "offset": begin, "lines": texts}
                begin, texts, size = offset, [], 0
            texts.append(raw.decode("ascii"))
            size += len(raw) + 1
        if texts:
            yield {"segment": number, "offset": begin, "lines": texts}


def _write_parts(folder: Path, parts: list[Mapping[str, Any]]) -> None:
    for part in parts:
        descriptor = open_segment(folder, int(part["segment"]), os.O_WRONLY | os.O_CREAT)
        with os.fdopen(descriptor, "wb") as file:
            file.seek(int(part["offset"]))
            file.write("".join(f"{line}\n" for line in part["lines"]).encode("ascii"))


def _state(value: Mapping[str, Any]) -> tuple[int, Head]:
    return int(value["number"]), Head.from_dict(value["head"])


def _stream(identifier: str, number: int) -> str:
    return f"{_COPIES}{identifier}/{number}"
