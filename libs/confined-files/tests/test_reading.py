import contextlib
import hashlib
import os
import socket
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from sideband_confined_files import ConfinedFolder, FileFailed, FileMissing, FileRefused, FileTooLarge

pytestmark = pytest.mark.anyio


async def test_file_is_read_completely(folder, root):
    (root / "a").mkdir()
    (root / "a" / "x").write_bytes(b"content")
    assert await folder.read("a/x", max_bytes=7) == b"content"


async def test_file_over_the_limit_is_not_read(folder, root):
    (root / "x").write_bytes(b"content")
    with pytest.raises(FileTooLarge, match="7 bytes") as caught:
        await folder.read("x", max_bytes=6)
    assert (caught.value.code, caught.value.nothing_happened) == ("file.too_large", True)
    assert "offset" in caught.value.hint


async def test_limit_is_checked_before_a_sparse_terabyte_is_read(folder, root):
    with (root / "x").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(FileTooLarge):
        await folder.read("x", max_bytes=2**20)
    with pytest.raises(FileTooLarge):
        await folder.digest("x", max_bytes=2**20)
    async with folder.reading("x") as reader:
        assert reader.entry.size == 2**40
        reader.seek(2**40 - 1)
        assert await reader.read() == b"\0"
        assert await reader.read() == b""


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_cancelled_digest_stops(folder, root):
    with (root / "x").open("wb") as file:
        file.truncate(2**40)
    with anyio.move_on_after(0.05) as scope:
        await folder.digest("x")
    assert scope.cancelled_caught


async def test_digest_does_not_move_the_read_position(folder, root):
    (root / "x").write_bytes(b"0123456789")
    async with folder.reading("x") as reader:
        assert await reader.read(4) == b"0123"
        assert await reader.digest() == hashlib.sha256(b"0123456789").hexdigest()
        assert await reader.read(4) == b"4567"
        assert (reader.path, reader.entry.name, reader.entry.kind) == ("x", "x", "file")
    assert await folder.digest("x") == hashlib.sha256(b"0123456789").hexdigest()


async def test_path_that_does_not_exist_is_missing(folder):
    for path in ("x", "a/x"):
        with pytest.raises(FileMissing) as caught:
            await folder.read(path, max_bytes=1)
        assert caught.value.code == "file.missing"
        assert caught.value.hint


async def test_reading_does_not_create_the_root(tmp_path):
    with pytest.raises(FileMissing):
        await ConfinedFolder(tmp_path / "none").read("x", max_bytes=1)
    assert not (tmp_path / "none").exists()


async def test_symbolic_links_are_not_followed(folder, root, outside):
    (root / "file").symlink_to(outside / "secret")
    (root / "folder").symlink_to(outside)
    (root / "inside").symlink_to("target")
    (root / "target").write_text("")
    for path in ("file", "folder/secret", "inside"):
        with pytest.raises(FileRefused):
            await folder.read(path, max_bytes=100)


async def test_root_that_is_a_link_is_rejected(tmp_path, outside):
    (tmp_path / "link").symlink_to(outside)
    with pytest.raises(FileRefused):
        await ConfinedFolder(tmp_path / "link").read("secret", max_bytes=100)


async def test_pipe_does_not_block_its_reader(folder, root):
    os.mkfifo(root / "pipe")
    with pytest.raises(FileRefused, match="not a regular file"):
        await folder.read("pipe", max_bytes=1)


async def test_socket_and_folder_are_rejected_as_files(folder, root):
    with socket.socket(socket.AF_UNIX) as one:
        with contextlib.chdir(root):
            one.bind("socket")
        with pytest.raises(FileRefused):
            await folder.read("socket", max_bytes=1)
    (root / "sub").mkdir()
    for path in ("sub", "."):
        with pytest.raises(FileRefused):
            await folder.read(path, max_bytes=1)


@pytest.mark.parametrize("path", ["dev/zero", "dev/null", "proc/{pid}/environ", "proc/version", "sys/kernel/notes"])
async def test_devices_and_kernel_files_are_rejected(path):
    with pytest.raises(FileRefused, match=r"not a regular file|kernel"):
        await ConfinedFolder(Path("/")).read(path.format(pid=os.getpid()), max_bytes=100)


async def test_kernel_file_systems_are_not_listed():
    with pytest.raises(FileRefused, match="kernel"):
        await ConfinedFolder(Path("/")).list(f"proc/{os.getpid()}", limit=1)


async def test_excluded_folder_is_not_entered_by_any_path(tmp_path, root, outside):
    whole = ConfinedFolder(tmp_path, excluded=(outside, tmp_path / "none"))
    for path in ("outside/secret", "outside/deeper/secret"):
        with pytest.raises(FileRefused, match="belongs to the host"):
            await whole.read(path, max_bytes=100)
    with pytest.raises(FileRefused, match="belongs to the host"):
        await whole.list("outside", limit=10)
    with pytest.raises(FileRefused, match="belongs to the host"):
        await ConfinedFolder(outside, excluded=(outside,)).list(limit=10)


@pytest.fixture
def swapping(root):
    """Run a process that swaps several files under one name as fast as it can."""

    @contextlib.contextmanager
    def swap(name, *others):
        command = [sys.executable, "-c", SWAPPER, root / name, *(root / one for one in others)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            try:
                yield
            finally:
                process.kill()

    return swap


SWAPPER = """
import os, sys
name, *others = sys.argv[1:]
print("begun", flush=True)
while True:
    for one in others:
        os.rename(one, name)
        os.rename(name, one)
"""


async def test_folder_swapped_for_a_link_does_not_lead_out(folder, root, outside, swapping):
    (root / "real").mkdir()
    (root / "real" / "secret").write_text("mine")
    (root / "link").symlink_to(outside)
    seen = set()
    with swapping("sub", "real", "link"):
        while not {b"mine", FileRefused} <= seen:
            with recording(seen):
                seen.add(await folder.read("sub/secret", max_bytes=100))
        for _ in range(300):
            with recording(seen):
                seen.add(await folder.read("sub/secret", max_bytes=100))
    assert seen <= {b"mine", FileRefused, FileMissing}


async def test_file_swapped_for_a_link_or_pipe_is_not_read(folder, root, outside, swapping):
    (root / "real").write_text("mine")
    (root / "link").symlink_to(outside / "secret")
    os.mkfifo(root / "pipe")
    seen = set()
    with swapping("x", "real", "link", "real", "pipe"), anyio.fail_after(60):
        while not {b"mine", FileRefused} <= seen:
            with recording(seen):
                seen.add(await folder.read("x", max_bytes=100))
        for _ in range(2_000):
            with recording(seen):
                seen.add(await folder.read("x", max_bytes=100))
    assert seen <= {b"mine", FileRefused, FileMissing}


@contextlib.contextmanager
def recording(seen):
    try:
        yield
    except (FileRefused, FileMissing) as error:
        seen.add(type(error))


async def test_system_error_is_reported(folder, root, as_nobody):
    (root / "x").write_text("")
    (root / "x").chmod(0)
    with as_nobody(), pytest.raises(FileFailed, match="ermission") as caught:
        await folder.read("x", max_bytes=1)
    assert (caught.value.code, caught.value.nothing_happened) == ("file.failed", True)


async def test_listed_file_that_was_replaced_is_not_opened(folder, root):
    for name in ("link", "pipe", "gone", "kept"):
        (root / name).write_text("content")

    def visit(opened):
        listed, _ = opened.names(hidden=False, limit=10)
        for name in ("link", "pipe", "gone"):
            (root / name).unlink()
        (root / "link").symlink_to("kept")
        os.mkfifo(root / "pipe")
        seen = {}
        for name in listed:
            try:
                descriptor, status = opened.open_listed(name)
            except OSError as error:
                seen[name] = type(error)
            else:
                seen[name] = status.st_size
                os.close(descriptor)
        return seen

    found = await folder.visit(".", visit)
    assert found == {"gone": FileMissing, "kept": 7, "link": FileRefused, "pipe": FileRefused}
