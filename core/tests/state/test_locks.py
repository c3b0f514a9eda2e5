"""File locks between processes and within one process: timeouts, cancellation, and release on exit."""

import errno
import fcntl
import subprocess
import sys
import threading

import anyio
import pytest
from sideband.state import FileLock, try_lock

pytestmark = pytest.mark.anyio

HOLDER = """
import sys
from pathlib import Path
from sideband.state import FileLock
assert FileLock(Path(sys.argv[1])).acquire(10)
print(flush=True)
sys.stdin.read()
"""


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request):
    return request.param


@pytest.fixture
def path(tmp_path):
    return tmp_path / "lock"


def test_second_holder_in_the_same_process_waits(path):
    with FileLock(path) as first, FileLock(path) as second:
        assert first.acquire(0)
        assert not second.try_acquire()
        assert not second.acquire(0.01)
        threading.Timer(0.02, first.release).start()
        assert second.acquire(10)
        assert not first.try_acquire()
    assert path.stat().st_mode & 0o777 == 0o600


def test_lock_is_released_when_its_holder_is_killed(path):
    with subprocess.Popen([sys.executable, "-c", HOLDER, path], stdin=-1, stdout=-1) as holder, FileLock(path) as lock:
        holder.stdout.readline()
        assert not lock.try_acquire()
        holder.kill()
        assert lock.acquire(10)


def test_shared_locks_coexist_and_exclude_an_exclusive_lock(path):
    path.touch()
    with path.open() as one, path.open() as two:
        assert try_lock(one.fileno(), shared=True)
        assert try_lock(two.fileno(), shared=True)
        assert not try_lock(one.fileno())


def test_link_is_not_followed(path):
    path.symlink_to("elsewhere")
    with FileLock(path) as lock, pytest.raises(OSError, match=r".") as caught:
        lock.try_acquire()
    assert caught.value.errno == errno.ELOOP


async def test_acquire_async_waits_for_the_lock(path):
    with FileLock(path) as first, FileLock(path) as second:
        assert await first.acquire_async(0)
        assert not await second.acquire_async(0.01)
        async with anyio.create_task_group() as group:
            group.start_soon(second.acquire_async, 10)
            await anyio.sleep(0.01)
            first.release()
        assert not first.try_acquire()


@pytest.mark.parametrize("in_thread", [True, False])
async def test_waiting_can_be_cancelled(path, in_thread):
    with FileLock(path) as first, FileLock(path) as second:
        first.acquire(0)
        with anyio.move_on_after(0.02) as scope:
            if in_thread:
                await anyio.to_thread.run_sync(second.acquire, 600)
            else:
                await second.acquire_async(600)
        assert scope.cancelled_caught


def test_missing_lock_support_is_reported(tmp_path, monkeypatch):
    def refuse(_descriptor, _operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with FileLock(tmp_path / "lock") as lock, pytest.raises(OSError, match="No locks"):
        lock.acquire(1)
