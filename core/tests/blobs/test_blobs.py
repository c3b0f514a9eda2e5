"""Blobs are stored atomically, under the digest of their content, and are readable by their owner only."""

import hashlib
import os
import signal
import stat
import sys
import time

import anyio
import pytest
from sideband.blobs import Blob, BlobDamaged, BlobMissing, BlobStorage, BlobStore, BlobTooLarge
from sideband.ops import OpFailed
from sideband_testing.chaos import file_size_limit

pytestmark = pytest.mark.anyio

WORDS = b"the content of a blob"
DIGEST = hashlib.sha256(WORDS).hexdigest()


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def store(tmp_path):
    return BlobStore(tmp_path / "blobs")


def files(store):
    return [path for path in store.folder.rglob("*") if path.is_file()]


async def test_stored_blob_is_found_by_its_digest(store):
    assert await store.put(WORDS) == Blob(DIGEST, len(WORDS))
    assert await store.find(DIGEST) == Blob(DIGEST, len(WORDS))
    assert await store.read(DIGEST, max_bytes=1_000) == WORDS


async def test_equal_content_is_stored_once(store):
    await store.put(WORDS)
    await store.put(WORDS)
    assert await store.list() == (Blob(DIGEST, len(WORDS)),)


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_content_is_written_and_read_in_chunks(store):
    pieces = [bytes([number]) * 700_000 for number in range(5)]
    async with store.create(max_bytes=10_000_000) as new:
        for piece in pieces:
            await new.write(piece)
        blob = await new.commit()
    assert blob == Blob(hashlib.sha256(b"".join(pieces)).hexdigest(), 3_500_000)
    async with store.open(blob.sha256) as reader:
        read = [piece async for piece in reader]
    assert reader.blob.size == 3_500_000
    assert len(read) > 1
    assert b"".join(read) == b"".join(pieces)


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_reader_that_stops_early_leaves_no_file_open(store):
    blob = await store.put(b"x" * 3_000_000)
    async with store.open(blob.sha256) as reader:
        async for piece in reader:
            assert len(piece) < 3_000_000
            break


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_uncommitted_blob_is_removed(store):
    async with store.create(max_bytes=100) as new:
        await new.write(WORDS)
    assert files(store) == []


async def test_oversized_blob_is_rejected_and_removed(store):
    with pytest.raises(BlobTooLarge) as caught:
        async with store.create(max_bytes=8) as new:
            await new.write(WORDS)
    assert (caught.value.code, isinstance(caught.value, OpFailed)) == ("blob.too_large", True)
    assert "8 bytes" in str(caught.value)
    assert caught.value.hint
    assert files(store) == []


async def test_read_of_a_too_large_blob_is_rejected(store):
    await store.put(WORDS)
    with pytest.raises(BlobTooLarge):
        await store.read(DIGEST, max_bytes=len(WORDS) - 1)


@pytest.mark.parametrize(
    "name", ["0" * 64, "", "../../etc/passwd", DIGEST.upper(), DIGEST + "\n", "g" * 64, "/" + DIGEST[1:]]
)
async def test_unknown_or_invalid_digest_is_missing(store, name):
    await store.put(WORDS)
    with pytest.raises(BlobMissing) as caught:
        await store.read(name, max_bytes=100)
    assert caught.value.code == "blob.missing"
    assert "64" in caught.value.hint
    assert await store.find(name) is None
    assert not await store.delete(name)


async def test_damaged_blob_is_rejected_and_repaired_by_put(store):
    await store.put(WORDS)
    store.path(DIGEST).write_bytes(WORDS[::-1])
    with pytest.raises(BlobDamaged) as caught:
        await store.read(DIGEST, max_bytes=100)
    assert caught.value.code == "blob.damaged"
    assert caught.value.hint
    await store.put(WORDS)
    assert await store.read(DIGEST, max_bytes=100) == WORDS


async def test_symlink_in_place_of_a_blob_is_not_followed(store, tmp_path):
    await store.put(WORDS)
    (tmp_path / "elsewhere").write_bytes(WORDS)
    store.path(DIGEST).unlink()
    store.path(DIGEST).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BlobStorage):
        await store.read(DIGEST, max_bytes=100)


async def test_pipe_in_place_of_a_blob_does_not_block(store):
    await store.put(WORDS)
    store.path(DIGEST).unlink()
    os.mkfifo(store.path(DIGEST))
    with pytest.raises(BlobDamaged):
        await store.read(DIGEST, max_bytes=100)


async def test_delete_returns_whether_the_blob_existed(store):
    await store.put(WORDS)
    assert await store.delete(DIGEST)
    assert not await store.delete(DIGEST)
    assert await store.list() == ()


async def test_list_is_sorted_and_limited(store):
    blobs = sorted([await store.put(bytes([number])) for number in range(20)], key=lambda blob: blob.sha256)
    assert await store.list() == tuple(blobs)
    assert await store.list(limit=3) == tuple(blobs[:3])


async def test_blobs_are_accessible_to_their_owner_only(store):
    await store.put(WORDS)
    assert stat.S_IMODE(store.path(DIGEST).stat().st_mode) == 0o600
    assert {stat.S_IMODE(path.stat().st_mode) for path in (store.folder, store.path(DIGEST).parent)} == {0o700}


async def test_uncreatable_folder_is_a_typed_error(tmp_path):
    (tmp_path / "blobs").write_text("a file")
    with pytest.raises(BlobStorage) as caught:
        await BlobStore(tmp_path / "blobs").put(WORDS)
    assert caught.value.code == "blob.storage"
    assert "free space" in caught.value.hint


async def test_full_disk_is_a_typed_error(store):
    with file_size_limit(10_000), pytest.raises(BlobStorage):
        await store.put(b"x" * 20_000)
    assert files(store) == []


KILLED = """
import os, signal, sys
from pathlib import Path
import anyio
from sideband.blobs import BlobStore

async def main():
    async with BlobStore(Path(sys.argv[1])).create(max_bytes=10_000_000) as new:
        await new.write(b"x" * 2_000_000)
        os.kill(os.getpid(), signal.SIGKILL)

anyio.run(main)
"""


async def test_partial_blob_of_a_killed_host_is_removed_after_a_day(store):
    done = await anyio.run_process([sys.executable, "-c", KILLED, str(store.folder)], check=False)
    assert done.returncode == -signal.SIGKILL
    (partial,) = files(store)
    assert await store.list() == ()
    await store.put(WORDS)
    assert partial.exists()
    os.utime(partial, (time.time() - 100_000, time.time() - 100_000))
    await BlobStore(store.folder).put(WORDS)
    assert not partial.exists()
