"""Opening files below a folder without following links."""

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
    (tmp_path / "outside" / "x").write_text("outside")
    return folder


@pytest.fixture(autouse=True)
def no_leaked_descriptors():
    before = sorted(path.name for path in Path("/proc/self/fd").iterdir())
    yield
    assert sorted(path.name for path in Path("/proc/self/fd").iterdir()) == before


def read(descriptor):
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


def test_file_is_opened_below_a_path_or_a_descriptor(root):
    assert read(open_beneath(root, ("a", "b", "x"))) == b"content"
    folder = os.open(root, os.O_RDONLY)
    assert read(open_beneath(folder, ("a", "b", "x"))) == b"content"
    os.close(folder)


def test_empty_names_open_the_folder_itself(root):
    descriptor = open_beneath(root, (), os.O_DIRECTORY)
    with os.scandir(descriptor) as entries:
        assert [entry.name for entry in entries] == ["a"]
    os.close(descriptor)


@pytest.mark.parametrize("names", [("link", "x"), ("a", "file"), ("a", "link", "x")])
def test_links_are_not_followed(root, names):
    (root / "link").symlink_to("../outside")
    (root / "a" / "link").symlink_to("b")
    (root / "a" / "file").symlink_to("../../outside/x")
    with pytest.raises(OSError, match=r".") as caught:
        open_beneath(root, names)
    assert caught.value.errno in {errno.ELOOP, errno.ENOTDIR}


def test_start_folder_that_is_a_link_is_rejected(root, tmp_path):
    (tmp_path / "link").symlink_to("root")
    with pytest.raises(NotADirectoryError):
        open_beneath(tmp_path / "link", ("a",))


@pytest.mark.parametrize("names", [("..", "outside", "x"), ("a", "../../outside/x"), ("/etc/passwd",), ("a", "..")])
def test_name_that_leads_outside_is_rejected(root, names):
    with pytest.raises(PermissionError, match="leads outside"):
        open_beneath(root, names)


def test_opening_a_pipe_does_not_block(root):
    os.mkfifo(root / "pipe")
    os.close(open_beneath(root, ("pipe",)))


def test_missing_folders_are_created_for_their_owner_on_request(root):
    with pytest.raises(FileNotFoundError):
        open_beneath(root, ("new", "er", "."))
    os.close(open_beneath(root, ("new", "er", "."), os.O_DIRECTORY, create_folders=True))
    assert stat.S_IMODE((root / "new" / "er").stat().st_mode) == 0o700


def test_check_is_called_with_each_folder_on_the_path(root):
    seen = []
    os.close(open_beneath(root, ("a", "b", "x"), check=lambda folder: seen.append(os.fstat(folder).st_ino)))
    assert seen == [path.stat().st_ino for path in (root, root / "a", root / "a" / "b")]

    def refuse(_folder):
        raise LookupError

    with pytest.raises(LookupError):
        open_beneath(root, ("a", "b", "x"), check=refuse)
