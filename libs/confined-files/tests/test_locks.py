"""Locks between hosts, which no other process can hold."""

import errno
import fcntl
import os
import stat
import subprocess
import sys

import anyio
import pytest
from sideband_confined_files import ConfinedFolder, FileError, FileRefused, FolderLocks

pytestmark = pytest.mark.anyio

# Locks a folder until its input ends, as any program that may read the folder can.
HOLDER = """
import fcntl, os, sys
fcntl.flock(os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECTORY), fcntl.LOCK_EX)
print("locked", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def foreign_lock(root):
    """Another process holds a lock on the folder until the test ends."""
    words = [sys.executable, "-c", HOLDER, root]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"locked\n"
        yield
        process.stdin.close()


@pytest.fixture
def opened(root):
    descriptor = os.open(root, os.O_RDONLY)
    yield descriptor
    os.close(descriptor)


async def waits(folder):
    """Return whether a change in the folder waits for a lock."""
    with anyio.move_on_after(0.2) as scope:
        await folder.remove("x")
    return scope.cancelled_caught


async def test_lock_of_another_process_on_the_folder_delays_no_change(folder, save, foreign_lock):
    with anyio.fail_after(60):
        await save(folder, "x", b"x")
        await folder.move("x", "y")
        await folder.remove("y")


@pytest.mark.parametrize("home", ["home", "another"])
async def test_hosts_of_one_user_exclude_each_other(folder, save, opened, tmp_path, home):
    await save(folder, "x", b"x")
    with FolderLocks(tmp_path / home).held(opened):
        assert await waits(folder)
    assert not await waits(folder)


async def test_hosts_with_one_home_exclude_each_other_with_different_home_directories(
    folder, save, locks, opened, monkeypatch
):
    await save(folder, "x", b"x")
    with locks.held(opened):
        monkeypatch.setenv("HOME", str(locks.home / "container"))
        assert await waits(folder)


async def test_user_without_a_usable_home_directory_can_write(folder, save, tmp_path):
    (tmp_path / "user").write_text("not a folder")
    await save(folder, "x", b"x")


async def test_unusable_lock_in_the_home_is_reported(folder, save, tmp_path):
    (tmp_path / "home").write_text("not a folder")
    with pytest.raises(FileError):
        await save(folder, "x", b"x")


async def test_file_system_without_locks_can_be_written(folder, save, monkeypatch):
    def refuse(_descriptor, _operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    await save(folder, "x", b"x")


async def test_number_of_lock_files_is_bounded_and_they_are_private(root, locks):
    for number in range(300):
        (root / f"{number}").mkdir()
        descriptor = os.open(root / f"{number}", os.O_RDONLY)
        with locks.held(descriptor, descriptor):
            pass
        os.close(descriptor)
    for private in locks.private:
        assert len(list(private.iterdir())) <= 64
        assert {stat.S_IMODE(one.stat().st_mode) for one in (private, private.parent)} == {0o700}


async def test_lock_files_cannot_be_reached(locks, opened, tmp_path):
    with locks.held(opened):
        pass
    whole = ConfinedFolder(tmp_path, locks=locks)
    for private in locks.private:
        with pytest.raises(FileRefused, match="belongs to the host"):
            await whole.list(str(private.relative_to(tmp_path)), limit=1)
