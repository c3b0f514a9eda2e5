"""Checkpoints, saved by skills in real workers, and by the user."""

from textwrap import dedent

import pytest
import sideband_checkpoint.plugin
import sideband_skills.plugin
import sideband_store_sqlite.plugin
from sideband import Host, Plugin
from sideband.calls import CallRequest
from sideband.ops import EgressRefused, OpDenied, OpError
from sideband_checkpoint import CheckpointError, CheckpointTooLarge, TooManyCheckpoints

pytestmark = pytest.mark.anyio

SKILL = '''
    from sideband.skill import checkpoint, tool


    @tool
    async def advance(until: int, fail_at: int = -1) -> list[int]:
        """Count from where the last call stopped."""
        done = await checkpoint.load() or {"next": 0}
        for number in range(done["next"], until):
            if number == fail_at:
                raise RuntimeError(f"stopped at {number}")
            await checkpoint.save({"next": number + 1})
        return [done["next"], until]


    @tool
    async def forget() -> bool:
        """Forget it."""
        return await checkpoint.clear()
'''


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def open_host(tmp_path):
    def open_one(**settings):
        plugins = [
            Plugin("store", "sqlite", sideband_store_sqlite.plugin),
            Plugin("loader", "skills", sideband_skills.plugin),
            Plugin("op", "checkpoint", sideband_checkpoint.plugin),
        ]
        tables = {
            "policy": {"isolation": "none"},
            "grants": {"first": ["checkpoint"], "second": ["checkpoint"]},
            "plugins": {"checkpoint": settings},
        }
        return Host(
            home=tmp_path / "home",
            settings=tables,
            plugins=plugins,
            autoload=False,
            skill_dirs=[tmp_path / "skills"],
        )

    return open_one


@pytest.fixture
def skills(tmp_path):
    for name in ("first", "second"):
        folder = tmp_path / "skills" / name
        folder.mkdir(parents=True)
        folder.joinpath("SKILL.md").write_text(
            f"---\nname: {name}\ndescription: Counts.\nmetadata:\n  sideband.capabilities: checkpoint\n---\n"
        )
        folder.joinpath("tools.py").write_text(dedent(SKILL))


async def test_next_call_continues_after_the_host_was_restarted(open_host, skills):
    async with open_host() as host:
        with pytest.raises(Exception, match="stopped at 3"):
            await host.call("first.advance", until=5, fail_at=3)
    async with open_host() as host:
        assert await host.call("first.advance", until=5) == [3, 5]
        assert await host.call("first.forget") is True
        assert await host.call("first.forget") is False
        assert await host.call("first.advance", until=2) == [0, 2]


async def test_each_skill_and_principal_has_its_own_checkpoints(open_host, skills):
    async with open_host() as host:
        assert await host.call("first.advance", until=4) == [0, 4]
        assert await host.call("second.advance", until=3) == [0, 3]
        other = await host.run(CallRequest("first.advance", {"until": 2}, principal="first"))
        assert other.output == [0, 2]
        assert await host.call("first.advance", until=4) == [4, 4]
        with pytest.raises(OpDenied):
            await host.op("checkpoint.load", {"name": "b"}, grants=["checkpoint:name=a"])


async def test_every_json_value_is_returned_as_it_was_saved_and_names_are_separate(open_host):
    async with open_host() as host:
        for value in (None, 0, "ü", [1.5, {"password": "plain", "": []}], {}):
            await host.op("checkpoint.save", {"data": value})
            assert await host.op("checkpoint.load", {}) == value
        await host.op("checkpoint.save", {"data": 1, "name": "a"})
        await host.op("checkpoint.save", {"data": 2, "name": "A.b-c_1"})
        assert [await host.op("checkpoint.load", {"name": name}) for name in ("a", "A.b-c_1", "b")] == [1, 2, None]


@pytest.mark.parametrize("name", ["", "a/b", "..", "a b", "x" * 101, "-a"])
async def test_invalid_name_is_refused(open_host, name):
    async with open_host() as host:
        with pytest.raises(OpError, match="name"):
            await host.op("checkpoint.save", {"data": 1, "name": name})


async def test_data_that_is_too_large_or_not_json_is_refused_and_the_old_data_stays(open_host):
    async with open_host(size=50, number=2) as host:
        await host.op("checkpoint.save", {"data": "old"})
        with pytest.raises(CheckpointTooLarge, match=r"52 bytes as JSON; a checkpoint has at most 50"):
            await host.op("checkpoint.save", {"data": "x" * 50})
        await host.op("checkpoint.save", {"data": "x" * 48, "name": "fits"})
        for value in (b"bytes", float("nan")):
            with pytest.raises((CheckpointError, OpError)):
                await host.op("checkpoint.save", {"data": value})
        with pytest.raises(TooManyCheckpoints, match="2 checkpoints"):
            await host.op("checkpoint.save", {"data": 1, "name": "third"})
        await host.op("checkpoint.clear", {"name": "fits"})
        await host.op("checkpoint.save", {"data": 1, "name": "third"})
        assert await host.op("checkpoint.load", {}) == "old"


async def test_data_with_a_known_secret_is_refused(open_host):
    async with open_host() as host:
        host.redactor.protect("hunter2-hunter2", "login")
        with pytest.raises(EgressRefused, match="login"):
            await host.op("checkpoint.save", {"data": {"note": ["see hunter2-hunter2"]}})
        assert await host.op("checkpoint.load", {}) is None
