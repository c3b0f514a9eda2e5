"""Lines that cannot be written: the error is typed, no part of the line is left, and later writes succeed."""

import errno
import os
import shutil
import subprocess
from contextlib import ExitStack

import pytest
from sideband.ledger import Ledger, LedgerUnwritable, tail, verify
from sideband_store_sqlite import open_sqlite
from sideband_testing.chaos import file_size_limit

pytestmark = pytest.mark.anyio


@pytest.fixture
def full_disk(tmp_path):
    """Mount a file system of 256 KiB, and yield its folder."""
    mount = tmp_path / "small"
    mount.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(mount)]
    if (
        os.geteuid()
        or not shutil.which("mount")
        or subprocess.run(command, capture_output=True, check=False).returncode
    ):
        assert not os.environ.get("CI"), "CI runs as root where file systems can be mounted"
        pytest.skip("mounting a file system requires root")
    yield mount
    subprocess.run(["umount", "--lazy", str(mount)], check=True)


def lines(folder):
    return b"".join(path.read_bytes() for path in sorted(folder.glob("*.jsonl")))


async def write_until_full(ledger, write):
    for _ in range(10_000):
        await write(ledger, 1)


async def test_full_disk_blocks_effects_until_there_is_space(full_disk, store, write):
    folder = full_disk / "ledger"
    ballast = full_disk / "ballast"
    ballast.write_bytes(b"x" * 100_000)
    async with Ledger(folder, store, rotate_bytes=40_000) as ledger:
        with pytest.raises(LedgerUnwritable) as caught:
            await write_until_full(ledger, write)
        assert (caught.value.errno, caught.value.code) == (errno.ENOSPC, "ledger.unwritable")
        assert "No space left" in str(caught.value)
        assert "free some disk space" in caught.value.hint
        assert lines(folder).endswith(b"\n")
        ballast.unlink()
        await write(ledger, 5)
    verdict = await verify(folder, store)
    assert verdict.ok, verdict.problems
    assert verdict.notices == ()


async def test_initially_full_disk_raises(full_disk, store, write):
    (full_disk / "ledger").mkdir()
    ballast = full_disk / "ballast"
    with pytest.raises(OSError, match="No space left"):
        ballast.write_bytes(b"x" * 1_000_000)
    async with Ledger(full_disk / "ledger", store) as ledger:
        for _ in range(2):
            with pytest.raises(LedgerUnwritable):
                await write(ledger, 1)
        ballast.unlink()
        await write(ledger, 1)
    verdict = await verify(full_disk / "ledger", store)
    assert (verdict.ok, verdict.entries) == (True, 4)


async def test_partially_written_line_is_removed(folder, store, write):
    async with Ledger(folder, store) as ledger:
        await write(ledger, 2)
        before = lines(folder)
        with file_size_limit(len(before) + 100):
            for _ in range(3):
                with pytest.raises(LedgerUnwritable) as caught:
                    await write(ledger, 1)
                assert lines(folder) == before
        assert caught.value.errno == errno.EFBIG
        await write(ledger, 1)
    verdict = await verify(folder, store)
    assert (verdict.ok, verdict.entries, verdict.notices) == (True, 8, ())


async def test_effect_with_an_unwritten_intent_is_not_an_orphan(folder, store, write):
    async with Ledger(folder, store) as ledger:
        await write(ledger, 1)
        with file_size_limit(len(lines(folder))), pytest.raises(LedgerUnwritable):
            await write(ledger, 1)
    assert list((folder / "hosts").iterdir()) == []
    async with Ledger(folder, store) as ledger:
        assert await ledger.orphans() == ()


async def test_unwritable_close_line_is_only_logged(folder, store, write, caplog):
    with ExitStack() as limited:
        async with Ledger(folder, store) as ledger:
            await write(ledger, 1)
            limited.enter_context(file_size_limit(len(lines(folder))))
    assert "could not write the `close` line" in caplog.text
    assert [entry.kind for entry in await tail(folder, 1)] == ["outcome"]
    assert (await verify(folder, store)).ok


async def test_folder_that_cannot_be_created_raises(tmp_path, store, write):
    (tmp_path / "file").write_text("in the way")
    async with Ledger(tmp_path / "file" / "ledger", store) as ledger:
        with pytest.raises(LedgerUnwritable, match="cannot write ledger"):
            await write(ledger, 1)


@pytest.fixture
def no_rights(tmp_path):
    """Make the folder read-only. Root ignores permissions, so switch to another user if running as root."""
    owner = os.geteuid()
    tmp_path.chmod(0o500)
    if owner == 0:
        os.seteuid(65534)
    yield
    os.seteuid(owner)
    tmp_path.chmod(0o700)


async def test_folder_without_write_permission_raises(folder, store, write, no_rights):
    async with Ledger(folder, store) as ledger:
        with pytest.raises(LedgerUnwritable, match="Permission denied") as caught:
            await write(ledger, 1)
    assert "SIDEBAND_HOME" in caught.value.hint


async def test_failing_store_does_not_block_effects(folder, write, tmp_path, caplog):
    async with open_sqlite(tmp_path) as store:
        ledger = Ledger(folder, store, head_interval=0)
        await ledger.__aenter__()
        await write(ledger, 1)
    await write(ledger, 1)
    await ledger.__aexit__(None, None, None)
    assert "could not store the head" in caplog.text
    assert len(lines(folder).splitlines()) == 6
