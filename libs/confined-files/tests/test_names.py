import contextlib
import hashlib
import os
import stat
from pathlib import Path

import anyio
import pytest
from sideband_confined_files import FileChanged, FileMissing, FileRefused, FileTaken

pytestmark = pytest.mark.anyio
EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


async def test_list_is_sorted_and_paginated(folder, root):
    for name in ("c", "a", "b", ".hidden"):
        (root / name).write_text(name)
    first = await folder.list(limit=2)
    assert [one.name for one in first.entries] == ["a", "b"]
    assert (first.truncated, first.left_out) == (True, 1)
    rest = await folder.list(limit=2, after="b")
    assert [one.name for one in rest.entries] == ["c"]
    assert not rest.truncated


async def test_hidden_names_are_listed_on_request(folder, root):
    (root / ".hidden").write_text("")
    assert [one.name for one in (await folder.list(limit=2, hidden=True)).entries] == [".hidden"]


async def test_entries_have_kind_size_and_permissions(folder, root, outside):
    (root / "file").write_text("abc")
    (root / "file").chmod(0o640)
    (root / "folder").mkdir()
    (root / "link").symlink_to(outside / "secret")
    os.mkfifo(root / "pipe")
    found = {one.name: one for one in (await folder.list(limit=9)).entries}
    assert {name: one.kind for name, one in found.items()} == {
        "file": "file",
        "folder": "folder",
        "link": "link",
        "pipe": "other",
    }
    assert (found["file"].size, found["file"].permissions) == (3, 0o640)
    assert found["file"].modified == (root / "file").stat().st_mtime
    assert found["folder"].size == found["link"].size == 0
    assert await folder.entry("link") == found["link"]
    assert (await folder.entry(".")).kind == "folder"


async def test_name_that_is_not_utf8_is_omitted(folder, root):
    (root / os.fsdecode(b"\xff")).write_text("")
    listing = await folder.list(limit=9)
    assert (listing.entries, listing.left_out) == ((), 1)


async def test_one_page_of_a_large_folder_is_listed(folder, root):
    for number in range(500):
        os.close(os.open(root / f"{number:03}", os.O_CREAT | os.O_WRONLY))
    listing = await folder.list(limit=3, after="099")
    assert [one.name for one in listing.entries] == ["100", "101", "102"]
    assert listing.truncated


async def test_links_are_not_followed(folder, root, outside):
    (root / "link").symlink_to(outside)
    for attempt in (folder.list("link", limit=1), folder.entry("link/secret"), folder.make("link/x")):
        with pytest.raises(FileRefused):
            await attempt
    assert sorted(one.name for one in outside.iterdir()) == ["secret"]


async def test_folder_is_created_once_for_its_owner_only(folder, root):
    assert await folder.make("a/b")
    assert not await folder.make("a/b")
    assert stat.S_IMODE((root / "a").stat().st_mode) == stat.S_IMODE((root / "a/b").stat().st_mode) == 0o700


async def test_folder_does_not_replace_a_file(folder, root):
    (root / "x").write_text("")
    with pytest.raises(FileTaken):
        await folder.make("x")
    with pytest.raises(FileRefused):
        await folder.make("x/y")
    with pytest.raises(FileRefused):
        await folder.make(".")


async def test_file_is_removed(folder, root, names):
    (root / "x").write_text("")
    await folder.remove("x", expected=EMPTY)
    assert names(root) == []
    with pytest.raises(FileMissing):
        await folder.remove("x")


async def test_changed_file_is_not_removed(folder, root, names):
    (root / "x").write_text("new")
    with pytest.raises(FileChanged) as caught:
        await folder.remove("x", expected=EMPTY)
    assert caught.value.code == "file.changed"
    assert names(root) == ["x"]


async def test_only_regular_files_are_removed(folder, root, outside, names):
    (root / "link").symlink_to(outside / "secret")
    (root / "sub").mkdir()
    (root / "way").symlink_to(outside)
    for path in ("link", "sub", "way/secret", "."):
        with pytest.raises(FileRefused):
            await folder.remove(path)
    assert names(root) == ["link", "sub", "way"]
    assert names(outside) == ["secret"]


async def test_only_an_empty_folder_is_removed(folder, root, outside, names):
    (root / "a/b").mkdir(parents=True)
    (root / "x").write_text("")
    (root / "link").symlink_to(outside)
    for path in ("a", "x", "link"):
        with pytest.raises(FileRefused):
            await folder.remove_folder(path)
    await folder.remove_folder("a/b")
    await folder.remove_folder("a")
    assert names(root) == ["link", "x"]


async def test_file_is_renamed_into_a_new_folder(folder, root, names):
    (root / "x").write_text("content")
    await folder.move("x", "a/y")
    assert (root / "a/y").read_text() == "content"
    assert names(root) == ["a"]


async def test_move_replaces_a_file_only_with_overwrite(folder, root):
    (root / "x").write_text("new")
    (root / "y").write_text("old")
    with pytest.raises(FileTaken):
        await folder.move("x", "y")
    assert (root / "y").read_text() == "old"
    await folder.move("x", "y", overwrite=True)
    assert (root / "y").read_text() == "new"
    assert not (root / "x").exists()


async def test_only_regular_files_are_moved_and_replaced(folder, root, outside, names):
    (root / "x").write_text("")
    (root / "sub").mkdir()
    (root / "link").symlink_to(outside / "secret")
    (root / "way").symlink_to(outside)
    for path, target in (("link", "y"), ("sub", "y"), ("x", "sub"), ("x", "link"), ("x", "way/y"), ("way/secret", "y")):
        with pytest.raises(FileRefused):
            await folder.move(path, target, overwrite=True)
    assert names(root) == ["link", "sub", "way", "x"]
    assert names(outside) == ["secret"]


async def test_changed_file_is_not_moved(folder, root):
    (root / "x").write_text("new")
    with pytest.raises(FileChanged):
        await folder.move("x", "y", expected=EMPTY)
    assert (root / "x").read_text() == "new"


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_concurrent_moves_in_opposite_directions_do_not_deadlock(folder, root, tmp_path):
    other = type(folder)(tmp_path / "other")
    (root / "x").write_text("x")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/y").write_text("y")

    async def there_and_back(source, target, name):
        for _ in range(30):
            await source.move(name, name, into=target)
            await target.move(name, name, into=source)

    async with anyio.create_task_group() as group:
        group.start_soon(there_and_back, folder, other, "x")
        group.start_soon(there_and_back, other, folder, "y")
    assert ((root / "x").read_text(), (tmp_path / "other/y").read_text()) == ("x", "y")


async def test_file_does_not_move_to_another_file_system(folder, root):
    (root / "x").write_text("content")
    memory = type(folder)(Path("/dev/shm"))
    with pytest.raises(FileRefused, match="another file system"):
        await folder.move("x", f"sideband-{os.getpid()}", into=memory)
    assert (root / "x").read_text() == "content"


def is_open(path):
    """Return whether this process has a file open."""
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            if link.readlink() == path:
                return True
    return False


@pytest.mark.parametrize("overwrite", [False, True])
async def test_link_that_replaces_a_file_while_its_digest_is_checked_is_not_moved(folder, root, outside, overwrite):
    with (root / "x").open("w+b") as file:
        # large enough that computing the digest takes longer than replacing the file
        file.truncate(256 * 1024 * 1024)
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    changed = []

    async def move():
        try:
            await folder.move("x", "moved", expected=digest, overwrite=overwrite)
        except FileChanged as error:
            changed.append(error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(move)
        while not is_open(root / "x"):
            await anyio.lowlevel.checkpoint()
        (root / "x").rename(root / "elsewhere")
        (root / "x").symlink_to(outside / "secret")
    assert not (root / "moved").is_symlink()
    assert changed if overwrite else (root / "moved").samefile(root / "elsewhere")
