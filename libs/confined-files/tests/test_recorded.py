"""Access through recorded folders: a path that leads to another folder is refused by every method."""

import pytest
from sideband_confined_files import ConfinedFolder, FileMissing, FileReplaced, RecordedFolders

pytestmark = pytest.mark.anyio


@pytest.fixture
async def recorded(folder, root, tmp_path):
    """The folder, restricted to the recorded `a/b`, which contains a file and an empty folder."""
    (root / "a/b/empty").mkdir(parents=True)
    (root / "a/b/x").write_text("content")
    (root / "other").mkdir()
    return folder.through(RecordedFolders(await folder.folders("a/b/x"), tmp_path / "replacements"))


@pytest.fixture
def attempts(recorded, folder, save):
    """Return one function for each method that accesses a file or a folder."""

    async def read_in_chunks():
        async with recorded.reading("a/b/x") as reader:
            await reader.read()

    return {
        "read": lambda: recorded.read("a/b/x", max_bytes=100),
        "reading": read_in_chunks,
        "writing": lambda: save(recorded, "a/b/new", b"new"),
        "entry": lambda: recorded.entry("a/b/x"),
        "digest": lambda: recorded.digest("a/b/x"),
        "list": lambda: recorded.list("a/b", limit=10),
        "make": lambda: recorded.make("a/b/new folder"),
        "remove": lambda: recorded.remove("a/b/x"),
        "remove_folder": lambda: recorded.remove_folder("a/b/empty"),
        "move": lambda: recorded.move("a/b/x", "moved", into=folder),
        "move into": lambda: folder.move("other/y", "a/b/y", into=recorded),
        "folders": lambda: recorded.folders("a/b/x"),
    }


def tree(root):
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


@pytest.mark.parametrize("kind", ["link", "folder", "file"])
async def test_every_method_refuses_what_replaced_the_folder(attempts, root, kind):
    (root / "a/b").rename(root / "moved away")
    (root / "other/x").write_text("content")
    (root / "other/y").write_text("content")
    (root / "other/empty").mkdir()
    if kind == "link":
        (root / "a/b").symlink_to(root / "other")
    elif kind == "folder":
        (root / "other").rename(root / "a/b")
        (root / "other").mkdir()
        (root / "other/y").write_text("content")
    else:
        (root / "a/b").write_text("")
    before = tree(root)
    for attempt in attempts.values():
        with pytest.raises(FileReplaced) as caught:
            await attempt()
        assert f"`a/b` is now {'a symbolic link to' if kind == 'link' else 'a'}" in caught.value.message
    assert tree(root) == before


async def test_folder_itself_is_removed_only_if_it_is_the_recorded_one(folder, root, tmp_path):
    (root / "a").mkdir()
    recorded = folder.through(RecordedFolders(await folder.folders("a", itself=True), tmp_path / "replacements"))
    (root / "a").rename(root / "moved away")
    (root / "a").mkdir()
    with pytest.raises(FileReplaced):
        await recorded.remove_folder("a")
    (root / "a").rmdir()
    (root / "moved away").rename(root / "a")
    await recorded.remove_folder("a")
    assert tree(root) == []


async def test_only_writing_creates_missing_recorded_folders(recorded, root, save):
    for path in ("a/b/x", "a/b/empty", "a/b"):
        (root / path).unlink() if path.endswith("x") else (root / path).rmdir()
    (root / "takes the inode").mkdir()
    for attempt in (recorded.remove("a/b/x"), recorded.entry("a/b/x"), recorded.list("a/b", limit=1)):
        with pytest.raises(FileMissing):
            await attempt
    assert tree(root / "a") == []
    await save(recorded, "a/b/x", b"again")
    assert await recorded.read("a/b/x", max_bytes=100) == b"again"


async def test_missing_root_is_created_again(recorded, root, save, tmp_path):
    root.rename(tmp_path / "moved away")
    await save(recorded, "a/b/x", b"again")
    assert await recorded.read("a/b/x", max_bytes=100) == b"again"


async def test_path_below_the_recorded_folders_is_refused(recorded):
    with pytest.raises(FileReplaced):
        await recorded.entry("a/b/empty/x")


async def test_no_folder_matches_without_recorded_folders(folder, root, tmp_path):
    (root / "x").write_text("")
    with pytest.raises(FileReplaced):
        await folder.through(RecordedFolders((), tmp_path)).read("x", max_bytes=1)


async def test_identities_depend_on_the_folder_and_not_on_its_path(folder, root):
    (root / "a/b").mkdir(parents=True)
    before = await folder.folders("a/b/x")
    (root / "a/b").rename(root / "b")
    assert (await folder.folders("b/x"))[-1] == before[-1]
    assert len(set(before)) == len(before) == 3
    assert await ConfinedFolder(root / "b").folders("x") == before[-1:]
