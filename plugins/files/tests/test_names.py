import os

import pytest
from sideband_confined_files import FileChanged, FileMissing, FileRefused, FileTaken

pytestmark = pytest.mark.anyio


async def test_file_is_deleted(files, home, digest):
    (home / "x").write_text("abc")
    with pytest.raises(FileChanged):
        await files.delete("x", expected=digest("other"))
    assert await files.delete("x", expected=digest("abc")) == {"path": "x", "kind": "file", "size": 3}
    assert list(home.iterdir()) == []
    with pytest.raises(FileMissing):
        await files.delete("x")


async def test_only_an_empty_folder_is_deleted(files, home):
    (home / "a/b").mkdir(parents=True)
    (home / "x").write_text("")
    for path in ("a/", "x/", "a", "./"):
        with pytest.raises(FileRefused):
            await files.delete(path)
    assert await files.delete("a/b/") == {"path": "a/b", "kind": "folder", "size": 0}
    await files.delete("a/")
    assert [one.name for one in home.iterdir()] == ["x"]


async def test_link_is_not_deleted(files, home, place):
    (home / "x").symlink_to(place)
    for path in ("x", "x/"):
        with pytest.raises(FileRefused):
            await files.delete(path)


async def test_folder_is_created_once(files, home):
    assert await files.make_folder("a/b") == {"path": "a/b", "made": True}
    assert await files.make_folder("a/b/") == {"path": "a/b", "made": False}
    (home / "x").write_text("")
    with pytest.raises(FileTaken):
        await files.make_folder("x")


async def test_file_is_copied(files, home, digest):
    (home / "x").write_text("abc")
    assert await files.copy("x", target="a/y") == {
        "path": "a/y",
        "size": 3,
        "sha256": digest("abc"),
        "replaced": False,
    }
    assert (home / "x").read_text() == (home / "a/y").read_text() == "abc"
    with pytest.raises(FileTaken):
        await files.copy("x", target="a/y")
    assert (await files.copy("x", target="a/y", overwrite=True))["replaced"]
    with pytest.raises(FileMissing):
        await files.copy("none", target="z")


async def test_file_copied_onto_itself_is_unchanged(files, home):
    (home / "x").write_text("abc")
    await files.copy("x", target="x", overwrite=True)
    assert (home / "x").read_text() == "abc"


async def test_file_is_moved(files, home, digest):
    (home / "x").write_text("abc")
    with pytest.raises(FileChanged):
        await files.move("x", target="y", expected=digest("other"))
    assert await files.move("x", target="a/y", expected=digest("abc")) == {
        "path": "x",
        "target": "a/y",
        "size": 3,
        "sha256": digest("abc"),
        "replaced": False,
    }
    assert (home / "a/y").read_text() == "abc"
    assert not (home / "x").exists()
    with pytest.raises(FileMissing):
        await files.move("x", target="y")


async def test_move_replaces_a_file_only_with_overwrite(files, home):
    (home / "x").write_text("new")
    (home / "y").write_text("old")
    with pytest.raises(FileTaken):
        await files.move("x", target="y")
    assert (home / "y").read_text() == "old"
    assert (await files.move("x", target="y", overwrite=True))["replaced"]
    assert (home / "y").read_text() == "new"


async def test_files_can_be_moved_into_and_out_of_the_hosts_folder(files, home, place):
    (home / "x").write_text("abc")
    await files.move("x", target=f"{place}/x")
    assert (place / "x").read_text() == "abc"
    await files.move(place / "x", target="y")
    assert (home / "y").read_text() == "abc"


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.txt", ["b.txt"]),
        ("**/*.txt", ["b.txt", "a/c.txt", "a/d/e.txt"]),
        ("**", ["a", "b.txt", "a/c.txt", "a/d", "a/d/e.txt"]),
        ("a/*", ["a/c.txt", "a/d"]),
        ("a/**/e.txt", ["a/d/e.txt"]),
        ("a/**/d/**/e.txt", ["a/d/e.txt"]),
        ("?.txt", ["b.txt"]),
        ("**/d", ["a/d"]),
        ("none", []),
        ("../**", []),
        ("/b.txt", ["b.txt"]),
    ],
)
async def test_find_matches_a_pattern(files, home, pattern, found):
    (home / "a/d").mkdir(parents=True)
    for path in ("b.txt", "a/c.txt", "a/d/e.txt", "a/.hidden"):
        (home / path).write_text("")
    assert [one["name"] for one in (await files.find(pattern=pattern))["entries"]] == found


async def test_find_searches_the_given_folder(files, home):
    (home / "a/d").mkdir(parents=True)
    (home / "a/d/x").write_text("")
    found = await files.find("a", pattern="**/x")
    assert (found["path"], found["entries"][0]["name"]) == ("a", "d/x")
    with pytest.raises(FileMissing):
        await files.find("none", pattern="*")


async def test_find_does_not_follow_links(files, home, place):
    (place / "x").write_text("")
    (home / "link").symlink_to(place)
    (home / "again").symlink_to(home)
    found = await files.find(pattern="**")
    assert [(one["name"], one["kind"]) for one in found["entries"]] == [("again", "link"), ("link", "link")]


async def test_depth_of_find_is_limited(files, home):
    folder = os.open(home, os.O_RDONLY)
    for _ in range(100):
        os.mkdir("d", dir_fd=folder)
        deeper = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = deeper
    os.close(folder)
    assert len((await files.find(pattern="**"))["entries"]) == 64


@pytest.mark.parametrize("settings", [{"max_visited": 5}])
async def test_number_of_visited_names_is_limited(files, home):
    for number in range(6):
        (home / str(number)).write_text("")
    with pytest.raises(ValueError, match="limit of 5 names") as caught:
        await files.find(pattern="x")
    assert (caught.value.code, caught.value.nothing_happened) == ("files.too_many", True)
    assert "max_visited" in caught.value.hint
