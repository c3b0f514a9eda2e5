"""A line that can't be written stops the effect with a clear error, leaves nothing behind, and later ones work."""

import errno
import os
import resource
import shutil
import subprocess

import pytest
from sideband.ledger import Ledger, LedgerUnwritable, tail, verify
from sideband_store_sqlite import open_sqlite

pytestmark = pytest.mark.anyio


@pytest.fixture
def full_disk(tmp_path):
    """A real file system of 256 KiB."""
    mount = tmp_path / "small"
    mount.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(mount)]
    if (
        os.geteuid()
        or not shutil.which("mount")
        or subprocess.run(command, capture_output=True, check=False).returncode
    ):
        assert not os.environ.get("CI"), "CI runs as root where file systems can be mounted"
        pytest.skip("mounting a file system needs root")
    yield mount
    subprocess.run(["umount", "--lazy", str(mount)], check=True)


@pytest.fixture
def file_limit():
    """Let no file grow beyond so many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size or soft, hard))
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def lines(folder):
    return b"".join(path.read_bytes() for path in sorted(folder.glob("*.jsonl")))


async def write_until_full(ledger, write):
    for _ in range(10_000):
        await write(ledger, 1)


async def test_a_full_disk_stops_effects_and_room_lets_them_go_on(full_disk, store, write):
    folder = full_disk / "ledger"
    ballast = full_disk / "ballast"
    ballast.write_bytes(b"x" * 100_000)
    async with Ledger(folder, store, rotate_bytes=40_000) as ledger:
        with pytest.raises(LedgerUnwritable) as caught:
            await write_until_full(ledger, write)
        assert (caught.value.errno, caught.value.code) == (errno.ENOSPC, "ledger.unwritable")
        assert "No space left" in str(caught.value)
        assert "free some space" in caught.value.hint
        assert lines(folder).endswith(b"\n")
        ballast.unlink()
        await write(ledger, 5)
    verdict = await verify(folder, store)
    assert verdict.ok, verdict.problems
    assert verdict.notices == ()


async def test_a_disk_that_is_full_from_the_start_is_a_clear_error(full_disk, store, write):
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


async def test_a_line_that_was_written_in_part_is_taken_back(folder, store, write, file_limit):
    async with Ledger(folder, store) as ledger:
        await write(ledger, 2)
        before = lines(folder)
        file_limit(len(before) + 100)
        for _ in range(3):
            with pytest.raises(LedgerUnwritable) as caught:
                await write(ledger, 1)
            assert lines(folder) == before
        assert caught.value.errno == errno.EFBIG
        file_limit(None)
        await write(ledger, 1)
    verdict = await verify(folder, store)
    assert (verdict.ok, verdict.entries, verdict.notices) == (True, 8, ())


async def test_an_effect_whose_intent_could_not_be_written_is_no_orphan(folder, store, write, file_limit):
    async with Ledger(folder, store) as ledger:
        await write(ledger, 1)
        file_limit(len(lines(folder)))
        with pytest.raises(LedgerUnwritable):
            await write(ledger, 1)
        file_limit(None)
    assert list((folder / "hosts").iterdir()) == []
    async with Ledger(folder, store) as ledger:
        assert await ledger.orphans() == ()


async def test_a_close_that_cannot_be_written_raises_nothing(folder, store, write, file_limit, caplog):
    async with Ledger(folder, store) as ledger:
        await write(ledger, 1)
        file_limit(len(lines(folder)))
    file_limit(None)
    assert "could not be written" in caplog.text
    assert [entry.kind for entry in await tail(folder, 1)] == ["outcome"]
    assert (await verify(folder, store)).ok


async def test_a_folder_that_cannot_be_made_is_a_clear_error(tmp_path, store, write):
    (tmp_path / "file").write_text("in the way")
    async with Ledger(tmp_path / "file" / "ledger", store) as ledger:
        with pytest.raises(LedgerUnwritable, match="can't be written"):
            await write(ledger, 1)


@pytest.fixture
def no_rights(tmp_path):
    """A folder that this user may not write to. Root may write everywhere, so root becomes somebody else."""
    owner = os.geteuid()
    tmp_path.chmod(0o500)
    if owner == 0:
        os.seteuid(65534)
    yield
    os.seteuid(owner)
    tmp_path.chmod(0o700)


async def test_a_folder_without_rights_is_a_clear_error(folder, store, write, no_rights):
    async with Ledger(folder, store) as ledger:
        with pytest.raises(LedgerUnwritable, match="Permission denied") as caught:
            await write(ledger, 1)
    assert "SIDEBAND_HOME" in caught.value.hint


async def test_a_store_that_fails_does_not_stop_effects(folder, write, tmp_path, caplog):
    async with open_sqlite(tmp_path) as store:
        ledger = Ledger(folder, store, head_interval=0)
        await ledger.__aenter__()
        await write(ledger, 1)
    await write(ledger, 1)
    await ledger.__aexit__(None, None, None)
    assert "could not be stored" in caplog.text
    assert len(lines(folder).splitlines()) == 6
