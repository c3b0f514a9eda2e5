import json
import os
import sys
import time
from binascii import crc32
from pathlib import Path

import importlib_metadata
import packaging.requirements
import pytest
from sideband.plugins import find_entry_points
from sideband.plugins._metadata import index_file

PRELOADED = (importlib_metadata, packaging.requirements)  # these tests leave nothing else on the path


@pytest.fixture
def alone(site, monkeypatch):
    """The site is the whole path, so that nobody else's installations change the key."""
    site.distribution("test-tidal", {"sideband.v1.op": {"tidal": "first"}})
    monkeypatch.setattr(sys, "path", [str(site.folder)])
    settle(site)
    return site


def settle(site, age=3600):
    """Let the folder look as if it had been changed ``age`` seconds ago."""
    moment = int(time.time()) - age
    os.utime(site.folder, (moment, moment))


def kept(home):
    return Path(index_file(home))


def values(home):
    return [found.value for found in find_entry_points("op", home=home)]


def change_unseen(site):
    """Change an entry point without changing its folder: who still sees the old one, saw the index."""
    (site.folder / "test_tidal-1.0.dist-info" / "entry_points.txt").write_text("[sideband.v1.op]\ntidal = second\n")


def test_what_was_found_is_kept(alone, home):
    assert values(home) == ["first"]
    change_unseen(alone)
    assert values(home) == ["first"]


def test_without_a_home_nothing_is_kept(alone, home):
    assert values(None) == ["first"]
    change_unseen(alone)
    assert values(None) == ["second"]


def test_all_fields_survive_being_kept(alone, home):
    assert find_entry_points(home=home) == find_entry_points(home=home)
    assert isinstance(find_entry_points(home=home)[0].requires, tuple)


def test_a_folder_that_changed_makes_the_index_untrue(alone, home):
    values(home)
    change_unseen(alone)
    settle(alone, age=1800)
    assert values(home) == ["second"]


def test_what_was_installed_within_one_tick_of_the_clock_is_seen(alone, home):
    values(home)
    before = alone.folder.stat()
    alone.distribution("test-ebb", {"sideband.v1.op": {"ebb": "third"}})
    os.utime(alone.folder, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert values(None) == ["third", "first"]


def test_another_path_makes_the_index_untrue(alone, home, tmp_path, monkeypatch):
    values(home)
    change_unseen(alone)
    monkeypatch.setattr(sys, "path", [str(alone.folder), str(tmp_path / "more")])
    assert values(home) == ["second"]


def test_a_folder_of_the_path_that_appears_makes_the_index_untrue(alone, home, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(alone.folder), str(tmp_path / "more")])
    values(home)
    change_unseen(alone)
    (tmp_path / "more").mkdir()
    assert values(home) == ["second"]


def test_a_folder_that_changed_just_now_is_not_kept(alone, home):
    settle(alone, age=0)
    values(home)
    change_unseen(alone)
    assert values(home) == ["second"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: b"",
        lambda content: content[: len(content) // 2],
        lambda content: content.replace(b"first", b"fires"),
        lambda _: b"\x00" * 4096,
        lambda _: b"[" * 200_000,
    ],
    ids=["empty", "torn", "changed", "zeros", "nested"],
)
def test_a_damaged_index_counts_as_missing_and_is_replaced(alone, home, damage):
    values(home)
    kept(home).write_bytes(damage(kept(home).read_bytes()))
    change_unseen(alone)
    assert values(home) == ["second"]
    assert values(home) == ["second"]


@pytest.mark.parametrize("content", [{"entry_points": [["too", "few"]], "problems": []}, {}, {"entry_points": 3}])
def test_an_index_with_other_fields_counts_as_missing(alone, home, content):
    values(home)
    body = json.loads(kept(home).read_bytes().partition(b"\n")[2])
    body["content"] = content
    text = json.dumps(body).encode()
    kept(home).write_bytes(b"%08x\n%s" % (crc32(text), text))
    assert values(home) == ["first"]


def test_an_index_that_others_could_have_written_is_not_believed(alone, home):
    values(home)
    kept(home).chmod(0o666)
    change_unseen(alone)
    assert values(home) == ["second"]


def test_the_index_is_for_its_owner_only(alone, home):
    values(home)
    assert kept(home).stat().st_mode & 0o777 == 0o600


def test_nothing_but_the_index_is_left_behind(alone, home):
    values(home)
    assert list((home / "cache").iterdir()) == [kept(home)]


def test_a_home_that_can_not_be_written_costs_only_time(alone, tmp_path):
    occupied = tmp_path / "a-file"
    occupied.write_text("")
    assert values(occupied) == ["first"]
    assert values(occupied) == ["first"]


def test_a_folder_in_the_place_of_the_index_costs_only_time(alone, home):
    kept(home).mkdir(parents=True)
    assert values(home) == ["first"]
    assert list((home / "cache").iterdir()) == [kept(home)]
