import asyncio
import json
from binascii import crc32
from pathlib import Path

import pytest
from sideband.plugins import Plugin, PluginHost, PluginPolicy, State, discover, read_last_start
from sideband.plugins._cache import cache_file

from .test_hooks_and_guards import HOOK

pytestmark = pytest.mark.anyio

FAILING = "raise RuntimeError('no luck')"


@pytest.fixture
def sea(site, monkeypatch):
    site.plugin("hook", "surf", HOOK)
    site.plugin("hook", "storm", FAILING)
    site.plugin("op", "tidal", FAILING)
    return site


async def start(home, **policy):
    async with PluginHost(PluginPolicy(**policy), home=home):
        pass


def states(home, **policy):
    """Return the states of the last start for the plugins that are installed now."""
    last = read_last_start(home)
    found = {
        one.name: last.state_of(one) for one in discover(home, PluginPolicy(**policy)) if "test-" in one.distribution
    }
    return {name: step and step.state for name, step in found.items()}


def file_of(home):
    return Path(cache_file(home, "last-start"))


async def test_start_of_a_host_leaves_the_states_of_the_plugins_that_it_loaded(sea, home):
    await start(home)
    assert states(home) == {"surf": State.ACTIVE, "storm": State.FAILED, "tidal": None}


async def test_failure_at_the_last_start_keeps_its_reason(sea, home):
    await start(home)
    (storm,) = (one for one in discover(home, PluginPolicy()) if one.name == "storm")
    assert "no luck" in read_last_start(home).state_of(storm).reason


async def test_next_start_replaces_the_states(sea, home):
    await start(home)
    await start(home, only=frozenset({"surf"}))
    assert states(home)["storm"] is None


async def test_plugin_that_is_now_denied_has_no_state_of_the_last_start(sea, home):
    await start(home)
    assert states(home, deny={"surf": "not now"})["surf"] is None


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("METADATA", "Metadata-Version: 2.1\nName: test-surf\nVersion: 1.0.1\n"),
        ("entry_points.txt", "[sideband.v1.hook]\nsurf = another_module\n"),
    ],
    ids=["version", "value"],
)
async def test_plugin_of_another_version_or_value_has_no_state_of_the_last_start(sea, home, file, content):
    await start(home)
    (path,) = sea.folder.glob(f"test_surf*/{file}")
    path.write_text(content)
    assert states(home)["surf"] is None


async def test_removed_plugin_is_not_listed_because_of_the_last_start(sea, home):
    await start(home)
    (folder,) = sea.folder.glob("test_surf*.dist-info")
    folder.rename(sea.folder / "gone")
    assert "surf" not in states(home)


async def test_plugins_passed_as_objects_leave_no_state(home):
    class Inline:
        pass

    async with PluginHost(home=home, inline=[Plugin("hook", "inline", Inline())], autoload=False):
        pass
    assert read_last_start(home).states == {}


async def test_listing_plugins_does_not_count_as_a_start(sea, home):
    async with PluginHost(home=home, load_at_start=False):
        pass
    assert read_last_start(home) is None


@pytest.mark.parametrize(
    "content", [[], ["2026", [["identity"]]], ["2026", [[["hook"], "flying", "", ""]]], ["2026", 3], {"time": 1}, None]
)
async def test_damaged_states_are_ignored(home, content):
    file_of(home).parent.mkdir()
    body = json.dumps({"format": 2, "key": None, "content": content}).encode()
    file_of(home).write_bytes(b"%08x\n%s" % (crc32(body), body))
    file_of(home).chmod(0o600)
    assert read_last_start(home) is None


async def test_states_that_others_can_write_are_ignored(sea, home):
    await start(home)
    file_of(home).chmod(0o666)
    assert read_last_start(home) is None


async def test_several_hosts_that_start_at_once_leave_the_states_of_one_of_them(sea, home):
    await asyncio.gather(*(start(home) for _ in range(8)))
    assert states(home)["surf"] is State.ACTIVE
    assert [one.name for one in file_of(home).parent.glob("last-start*")] == [file_of(home).name]


async def test_home_that_cannot_be_written_does_not_keep_a_host_from_starting(sea, tmp_path):
    occupied = tmp_path / "a-file"
    occupied.write_text("")
    await start(occupied)
    assert read_last_start(occupied) is None
