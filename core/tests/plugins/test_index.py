import json
import os
import shutil
import sys
import time
from binascii import crc32
from pathlib import Path

import importlib_metadata
import packaging.requirements
import pytest
from sideband.plugins import find_entry_points
from sideband.plugins._metadata import index_file

PRELOADED = (importlib_metadata, packaging.requirements)  # cannot be imported later, because tests replace `sys.path`


@pytest.fixture
def alone(site, monkeypatch):
    """Make the site the only entry of the path, so that no other installation changes the key."""
    site.distribution("test-tidal", {"sideband.v1.op": {"tidal": "first"}})
    monkeypatch.setattr(sys, "path", [str(site.folder)])
    settle(site)
    return site


def settle(site, age=3600):
    """Set the mtime of the folder and of all metadata to ``age`` seconds ago."""
    moment = int(time.time()) - age
    for path in (*site.folder.rglob("*"), site.folder):
        os.utime(path, (moment, moment))


def index(home):
    return Path(index_file(home))


def values(home):
    return [found.value for found in find_entry_points("op", home=home)]


def metadata(site, file="entry_points.txt"):
    return site.folder / "test_tidal-1.0.dist-info" / file


def change_unnoticed(site):
    """Change an entry point but neither mtime nor size of its file, so that readers of the index get the old one."""
    file = metadata(site)
    before = file.stat()
    file.write_text(file.read_text().replace("first", "other"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_index_is_used_on_the_second_read(alone, home):
    assert values(home) == ["first"]
    change_unnoticed(alone)
    assert values(home) == ["first"]


def test_nothing_is_cached_without_a_home(alone, home):
    assert values(None) == ["first"]
    change_unnoticed(alone)
    assert values(None) == ["other"]


def test_index_round_trips_all_fields(alone, home):
    assert find_entry_points(home=home) == find_entry_points(home=home)
    assert isinstance(find_entry_points(home=home)[0].requires, tuple)


def test_changed_folder_invalidates_the_index(alone, home):
    values(home)
    change_unnoticed(alone)
    settle(alone, age=1800)
    assert values(home) == ["other"]


def test_installation_with_an_unchanged_mtime_is_found_without_the_index(alone, home):
    values(home)
    before = alone.folder.stat()
    alone.distribution("test-ebb", {"sideband.v1.op": {"ebb": "third"}})
    os.utime(alone.folder, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert values(None) == ["third", "first"]


def test_changed_path_invalidates_the_index(alone, home, tmp_path, monkeypatch):
    values(home)
    change_unnoticed(alone)
    monkeypatch.setattr(sys, "path", [str(alone.folder), str(tmp_path / "more")])
    assert values(home) == ["other"]


def test_new_folder_on_the_path_invalidates_the_index(alone, home, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(alone.folder), str(tmp_path / "more")])
    values(home)
    change_unnoticed(alone)
    (tmp_path / "more").mkdir()
    assert values(home) == ["other"]


def test_edited_entry_point_is_noticed_at_once(alone, home):
    values(home)
    metadata(alone).write_text("[sideband.v1.op]\ntidal = third\n")
    assert values(home) == ["third"]


def test_edited_version_is_noticed_at_once(alone, home):
    values(home)
    metadata(alone, "METADATA").write_text("Metadata-Version: 2.1\nName: test-tidal\nVersion: 2.0\n")
    assert [found.version for found in find_entry_points("op", home=home)] == ["2.0"]


def test_entry_points_that_a_build_adds_to_a_source_folder_are_noticed_at_once(alone, home):
    information = alone.folder / "source.egg-info"
    information.mkdir()
    (information / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: source\nVersion: 1.0\n")
    settle(alone)
    assert values(home) == ["first"]
    (information / "entry_points.txt").write_text("[sideband.v1.op]\nnew = built\n")
    assert values(home) == ["built", "first"]


def test_removed_distribution_is_not_listed(alone, home):
    values(home)
    shutil.rmtree(metadata(alone).parent)
    assert values(home) == []


def test_recently_changed_metadata_is_not_cached(alone, home):
    os.utime(metadata(alone))
    values(home)
    assert not index(home).exists()


def test_recently_changed_folder_is_not_cached(alone, home):
    os.utime(alone.folder)
    values(home)
    change_unnoticed(alone)
    assert values(home) == ["other"]


def with_checksum(body):
    return b"%08x\n%s" % (crc32(body), body)


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: b"",
        lambda content: content[: len(content) // 2],
        lambda content: content.replace(b"first", b"fires"),
        lambda _: b"\x00" * 4096,
        lambda _: with_checksum(b"[" * 200_000),
        lambda content: with_checksum(content.partition(b"\n")[2].replace(b'"format": ', b'"format": 1')),
    ],
    ids=["empty", "truncated", "changed", "zeros", "nested", "of another format"],
)
def test_damaged_index_is_ignored_and_replaced(alone, home, damage):
    values(home)
    index(home).write_bytes(damage(index(home).read_bytes()))
    change_unnoticed(alone)
    assert values(home) == ["other"]
    assert values(home) == ["other"]


@pytest.mark.parametrize(
    "content",
    [
        {"entry_points": [["too", "few"]], "problems": [], "files": []},
        {"entry_points": [], "problems": [], "files": [["too few"]]},
        {"entry_points": [[1, "op", "tidal", {"not": "text"}, "test-tidal", "1.0"]], "problems": [], "files": []},
        {},
        {"entry_points": 3, "problems": [], "files": []},
        [],
    ],
)
def test_index_with_other_fields_is_ignored(alone, home, content):
    values(home)
    body = json.loads(index(home).read_bytes().partition(b"\n")[2])
    body["content"] = content
    index(home).write_bytes(with_checksum(json.dumps(body).encode()))
    assert values(home) == ["first"]


def test_index_writable_by_others_is_ignored(alone, home):
    values(home)
    index(home).chmod(0o666)
    change_unnoticed(alone)
    assert values(home) == ["other"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_index_of_another_user_is_ignored(alone, home):
    values(home)
    os.chown(index(home), 65534, 65534)
    change_unnoticed(alone)
    assert values(home) == ["other"]


def test_index_and_its_folders_are_accessible_to_their_owner_only(alone, home):
    values(home / "new")
    paths = (home / "new", home / "new" / "cache", index(home / "new"))
    assert [path.stat().st_mode & 0o777 for path in paths] == [0o700, 0o700, 0o600]


def test_each_environment_has_its_own_index(alone, home, monkeypatch):
    values(home)
    monkeypatch.setattr(sys, "prefix", "/elsewhere")
    values(home)
    assert len(list((home / "cache").iterdir())) == 2


def test_no_temporary_file_is_left(alone, home):
    values(home)
    assert list((home / "cache").iterdir()) == [index(home)]


def test_unwritable_home_is_not_an_error(alone, tmp_path):
    occupied = tmp_path / "a-file"
    occupied.write_text("")
    assert values(occupied) == ["first"]
    assert values(occupied) == ["first"]


def test_folder_in_place_of_the_index_is_not_an_error(alone, home):
    index(home).mkdir(parents=True)
    assert values(home) == ["first"]
    assert list((home / "cache").iterdir()) == [index(home)]
