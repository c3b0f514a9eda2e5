import contextlib
import hashlib
import os
import resource
import stat
import tempfile
import threading
from pathlib import Path

import anyio
import pytest
from sideband_confined_files import ConfinedFolder, FileChanged, FileFailed, FileRefused, FileTaken, FileTooLarge

pytestmark = pytest.mark.anyio


def descriptors():
    return sorted(one.name for one in Path("/proc/self/fd").iterdir())


def digest(data):
    return hashlib.sha256(data).hexdigest()


async def test_file_appears_complete_with_its_digest(folder, root, names):
    async with folder.writing("a/b/x.bin") as file:
        await file.write(b"one")
        await file.write(b"two" * 1_000_000)
        assert await file.complete() == digest(b"one" + b"two" * 1_000_000)
        # not even a temporary name, which would remain if the process were killed now
        assert names(root / "a/b") == []
        await file.commit()
    content = (root / "a/b/x.bin").read_bytes()
    assert content == b"one" + b"two" * 1_000_000
    assert (file.sha256, file.size) == (digest(content), len(content))
    assert names(root / "a/b") == ["x.bin"]


async def test_written_files_and_folders_are_private_to_the_owner(tmp_path, save):
    await save(ConfinedFolder(tmp_path / "new/root"), "a/x", b"")
    modes = [stat.S_IMODE((tmp_path / one).stat().st_mode) for one in ("new/root", "new/root/a", "new/root/a/x")]
    assert modes == [0o700, 0o700, 0o600]


async def test_uncommitted_file_leaves_nothing(folder, root, names):
    async with folder.writing("x.bin") as file:
        await file.write(b"x" * 2_000_000)
    assert names(root) == []


async def test_existing_file_is_not_replaced(folder, root):
    (root / "x").write_text("mine")
    with pytest.raises(FileTaken) as caught:
        async with folder.writing("x"):
            pass
    assert (caught.value.code, caught.value.nothing_happened) == ("file.taken", True)
    assert (root / "x").read_text() == "mine"


async def test_file_created_before_the_commit_is_not_replaced(folder, root, names):
    async with folder.writing("x") as file:
        (root / "x").write_text("mine")
        with pytest.raises(FileTaken):
            await file.commit()
    assert (root / "x").read_text() == "mine"
    assert names(root) == ["x"]


async def test_overwrite_replaces_the_file_and_keeps_its_mode(folder, root, names, save):
    (root / "x").write_text("old")
    (root / "x").chmod(0o6754)
    await save(folder, "x", b"new", overwrite=True)
    assert (root / "x").read_text() == "new"
    assert stat.S_IMODE((root / "x").stat().st_mode) == 0o754
    assert names(root) == ["x"]


@pytest.fixture
def shared_folder():
    """A world-writable folder."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        root.chmod(0o777)
        yield root


async def test_replaced_file_grants_no_rights_to_another_group(as_nobody, shared_folder, save):
    (shared_folder / "x").write_text("old")
    (shared_folder / "x").chmod(0o664)
    with as_nobody() as other_user:
        await save(ConfinedFolder(shared_folder), "x", b"new", overwrite=True)
    assert stat.S_IMODE((shared_folder / "x").stat().st_mode) == (0o604 if other_user else 0o664)


async def test_permissions_set_the_mode(folder, root, save):
    await save(folder, "x", b"", permissions=0o4750)
    assert stat.S_IMODE((root / "x").stat().st_mode) == 0o750


async def test_overwrite_does_not_change_other_hard_links(folder, root, outside, save):
    os.link(outside / "secret", root / "x")
    await save(folder, "x", b"new", overwrite=True)
    assert (outside / "secret").read_text() == "not yours"


async def test_file_with_the_expected_digest_is_replaced(folder, root, save):
    (root / "x").write_text("old")
    await save(folder, "x", b"new", expected=digest(b"old"))
    assert (root / "x").read_text() == "new"


async def test_changed_file_is_not_replaced(folder, root, names, save):
    (root / "x").write_text("changed")
    with pytest.raises(FileChanged) as caught:
        await save(folder, "x", b"new", expected=digest(b"old"))
    assert (caught.value.code, caught.value.nothing_happened) == ("file.changed", True)
    assert (root / "x").read_text() == "changed"
    assert names(root) == ["x"]


async def test_missing_file_does_not_match_an_expected_digest(folder, root, names, save):
    with pytest.raises(FileChanged, match="no longer exists"):
        await save(folder, "x", b"new", expected=digest(b"old"))
    assert names(root) == []


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_one_of_several_writers_expecting_the_same_digest_succeeds(folder, root, save):
    (root / "x").write_text("old")
    outcomes = []

    async def replace(data):
        try:
            await save(folder, "x", data, expected=digest(b"old"))
            outcomes.append(data)
        except FileChanged:
            outcomes.append(None)

    async with anyio.create_task_group() as group:
        for number in range(8):
            group.start_soon(replace, b"%d" % number)
    (won,) = [one for one in outcomes if one is not None]
    assert (root / "x").read_bytes() == won


async def test_symbolic_links_are_not_followed(folder, root, outside, names):
    (root / "folder").symlink_to(outside)
    (root / "file").symlink_to(outside / "target")
    for path in ("folder/x", "file", "folder/secret"):
        with pytest.raises(FileRefused):
            async with folder.writing(path, overwrite=True):
                pass
    assert names(outside) == ["secret"]


async def test_link_created_before_the_commit_is_not_followed(folder, root, outside, names):
    async with folder.writing("x", overwrite=True) as file:
        (root / "x").symlink_to(outside / "secret")
        with pytest.raises(FileRefused):
            await file.commit(overwrite=True)
    assert (outside / "secret").read_text() == "not yours"


async def test_root_that_is_a_link_is_rejected(tmp_path, outside, names):
    (tmp_path / "link").symlink_to(outside)
    with pytest.raises(FileRefused):
        async with ConfinedFolder(tmp_path / "link").writing("x"):
            pass
    assert names(outside) == ["secret"]


async def test_file_as_parent_folder_is_rejected(folder, root):
    (root / "a").write_text("")
    with pytest.raises(FileRefused):
        async with folder.writing("a/x"):
            pass


async def test_folder_as_target_is_rejected(folder, root):
    (root / "a").mkdir()
    for path in ("a", "."):
        with pytest.raises(FileRefused):
            async with folder.writing(path, overwrite=True):
                pass


async def test_write_over_the_limit_is_rejected(folder, root, names):
    async with folder.writing("x", max_bytes=10) as file:
        await file.write(b"0123456789")
        with pytest.raises(FileTooLarge):
            await file.write(b"0")
    assert names(root) == []


async def test_failed_write_leaves_no_file(folder, root, names):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_500_000, hard))
    try:
        async with folder.writing("x") as file:
            await file.write(b"x" * 1_100_000)
            with pytest.raises(FileFailed) as caught:
                await file.write(b"x" * 1_100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (caught.value.code, caught.value.nothing_happened) == ("file.failed", True)
    assert names(root) == []


@pytest.fixture
def lock_holder(root, locks):
    """Hold the folder's lock for 20 seconds, longer than any test should wait. Yields an event set on release."""
    holder = os.open(root, os.O_RDONLY)
    held = contextlib.ExitStack()
    held.enter_context(locks.held(holder))
    released = threading.Event()

    def release():
        released.set()
        held.close()

    timer = threading.Timer(20, release)
    timer.start()
    yield released
    timer.cancel()
    timer.join()
    held.close()
    os.close(holder)


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_waiting_for_another_writer_can_be_cancelled(folder, root, names, lock_holder):
    ready = anyio.Event()

    async def write():
        async with folder.writing("x") as file:
            ready.set()
            await file.commit()

    async with anyio.create_task_group() as group:
        group.start_soon(write)
        await ready.wait()
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    assert not lock_holder.is_set()
    assert names(root) == []


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_cancelled_writer_leaves_no_descriptor_and_no_file(folder, root, names):
    await folder.list(limit=1)
    before = descriptors()
    with anyio.CancelScope() as scope:
        async with folder.writing("x") as file:
            await file.write(b"x")
            scope.cancel()
            await file.commit()
    assert scope.cancelled_caught
    assert descriptors() == before
    assert names(root) == []


async def test_descriptors_are_closed(folder, root, save):
    await save(folder, "x", b"first")
    before = descriptors()
    await save(folder, "x", b"second", overwrite=True)
    await folder.read("x", max_bytes=10)
    await folder.list(limit=1)
    await folder.move("x", "y")
    with pytest.raises(FileRefused):
        await folder.read("y/z/z", max_bytes=1)
    with pytest.raises(FileTaken):
        await save(folder, "y", b"")
    assert descriptors() == before
