"""What is below a folder is opened without following a link, and nothing else is."""

import errno
import os
import stat
from pathlib import Path

import pytest
from sideband.state import open_beneath


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "root"
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / "x").write_text("content")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x").write_text("not yours")
    return folder


@pytest.fixture(autouse=True)
def nothing_stays_open():
    before = sorted(path.name for path in Path("/proc/self/fd").iterdir())
    yield
    assert sorted(path.name for path in Path("/proc/self/fd").iterdir()) == before


def read(descriptor):
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


def test_a_file_is_opened_step_by_step(root):
    assert read(open_beneath(root, ("a", "b", "x"))) == b"content"
    folder = os.open(root, os.O_RDONLY)
    assert read(open_beneath(folder, ("a", "b", "x"))) == b"content"
    os.close(folder)


def test_without_names_it_is_the_folder_itself(root):
    descriptor = open_beneath(root, (), os.O_DIRECTORY)
    with os.scandir(descriptor) as entries:
        assert [entry.name for entry in entries] == ["a"]
    os.close(descriptor)


@pytest.mark.parametrize("names", [("link", "x"), ("a", "file"), ("a", "link", "x")])
def test_no_link_is_followed(root, names):
    (root / "link").symlink_to("../outside")
    (root / "a" / "link").symlink_to("b")
    (root / "a" / "file").symlink_to("../../outside/x")
    with pytest.raises(OSError, match=r".") as caught:
        open_beneath(root, names)
    assert caught.value.errno in {errno.ELOOP, errno.ENOTDIR}


def test_the_folder_must_not_be_a_link_itself(root, tmp_path):
    (tmp_path / "link").symlink_to("root")
    with pytest.raises(NotADirectoryError):
        open_beneath(tmp_path / "link", ("a",))


@pytest.mark.parametrize("names", [("..", "outside", "x"), ("a", "../../outside/x"), ("/etc/passwd",), ("a", "..")])
def test_a_name_that_leads_elsewhere_is_refused(root, names):
    with pytest.raises(PermissionError, match="leads out"):
        open_beneath(root, names)


def test_a_pipe_is_not_waited_for(root):
    os.mkfifo(root / "pipe")
    os.close(open_beneath(root, ("pipe",)))


def test_missing_folders_are_made_for_their_owner_when_asked_for(root):
    with pytest.raises(FileNotFoundError):
        open_beneath(root, ("new", "er", "."))
    os.close(open_beneath(root, ("new", "er", "."), os.O_DIRECTORY, create_folders=True))
    assert stat.S_IMODE((root / "new" / "er").stat().st_mode) == 0o700


def test_each_folder_on_the_way_is_checked(root):
    seen = []
    os.close(open_beneath(root, ("a", "b", "x"), check=lambda folder: seen.append(os.fstat(folder).st_ino)))
    assert seen == [path.stat().st_ino for path in (root, root / "a", root / "a" / "b")]

    def refuse(_folder):
        raise LookupError

    with pytest.raises(LookupError):
        open_beneath(root, ("a", "b", "x"), check=refuse)
