import hashlib
import resource

import pytest
from sideband_http import FileFailed, FileRefused
from sideband_http._files import normal_file_path, writing

pytestmark = pytest.mark.anyio


def names(folder):
    return [path.name for path in folder.iterdir()]


@pytest.mark.parametrize(
    "path",
    [
        *("", "/", "/etc/passwd", "../x", "a/../../x", "a/./x", ".hidden", "a/.git/x", "a/", "a\\b", "a\0b", "a\nb"),
        *("c:x", "x.", "x ", "a" * 300, "/".join("abcdefghijklmnopqrstuvwxyz"), "\ud800"),
    ],
)
def test_a_path_that_leads_elsewhere_is_refused(path):
    with pytest.raises(FileRefused) as caught:
        normal_file_path(path)
    assert caught.value.code == "http.file"


def test_a_path_has_one_normal_form():
    assert normal_file_path("a//b c/ü.txt") == "a/b c/ü.txt"


async def test_a_file_appears_whole_with_its_digest(tmp_path):
    async with writing(tmp_path / "files", "a/b/x.bin", overwrite=False) as file:
        await file.write(b"one")
        await file.write(b"two" * 1_000_000)
        assert list((tmp_path / "files").rglob("x.bin")) == []
        await file.commit(overwrite=False)
    content = (tmp_path / "files/a/b/x.bin").read_bytes()
    assert content == b"one" + b"two" * 1_000_000
    assert file.sha256 == hashlib.sha256(content).hexdigest()
    assert names(tmp_path / "files/a/b") == ["x.bin"]


async def test_without_a_commit_nothing_is_left(tmp_path):
    async with writing(tmp_path, "x.bin", overwrite=False) as file:
        await file.write(b"x" * 2_000_000)
    assert names(tmp_path) == []


async def test_a_file_that_is_there_is_kept(tmp_path):
    (tmp_path / "x").write_text("mine")
    with pytest.raises(FileRefused):
        async with writing(tmp_path, "x", overwrite=False):
            pass
    assert (tmp_path / "x").read_text() == "mine"


async def test_a_file_that_comes_meanwhile_is_kept(tmp_path):
    async with writing(tmp_path, "x", overwrite=False) as file:
        (tmp_path / "x").write_text("mine")
        with pytest.raises(FileRefused):
            await file.commit(overwrite=False)
    assert (tmp_path / "x").read_text() == "mine"
    assert names(tmp_path) == ["x"]


async def test_a_file_may_be_replaced_when_asked_for(tmp_path):
    (tmp_path / "x").write_text("old")
    async with writing(tmp_path, "x", overwrite=True) as file:
        await file.write(b"new")
        await file.commit(overwrite=True)
    assert (tmp_path / "x").read_text() == "new"


async def test_no_symbolic_link_is_followed(tmp_path):
    outside, root = tmp_path / "outside", tmp_path / "files"
    outside.mkdir()
    root.mkdir()
    (root / "folder").symlink_to(outside)
    (root / "file").symlink_to(outside / "target")
    for path in ("folder/x", "file"):
        with pytest.raises(FileRefused):
            async with writing(root, path, overwrite=True):
                pass
    assert names(outside) == []


async def test_a_link_as_root_is_refused(tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "files").symlink_to(tmp_path / "outside")
    with pytest.raises(FileRefused):
        async with writing(tmp_path / "files", "x", overwrite=True):
            pass


async def test_a_file_where_a_folder_should_be_is_refused(tmp_path):
    (tmp_path / "a").write_text("")
    with pytest.raises(FileRefused):
        async with writing(tmp_path, "a/x", overwrite=False):
            pass


async def test_a_folder_where_the_file_should_be_is_refused(tmp_path):
    (tmp_path / "a").mkdir()
    with pytest.raises(FileRefused):
        async with writing(tmp_path, "a", overwrite=True):
            pass


async def test_a_disk_that_takes_no_more_leaves_no_file(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_500_000, hard))
    try:
        async with writing(tmp_path, "x", overwrite=False) as file:
            await file.write(b"x" * 1_100_000)
            with pytest.raises(FileFailed) as caught:
                await file.write(b"x" * 1_100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.code == "http.disk"
    assert names(tmp_path) == []
