"""What hosts publish, and what followers get, also while the server is slow, gone or used by others."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
import sideband_http.plugin
import sideband_redis.events
import sideband_store_sqlite.plugin
from anyio import to_thread
from sideband import Host, Plugin
from sideband.hooks import ApprovalEnd, ApprovalStart, Effect, Event
from sideband.ops import Origin
from sideband_redis import RedisBusy, RedisUnreachable, follow_events

pytestmark = pytest.mark.anyio

COMMAND = Path(sys.executable).with_name("sideband")
CANARY = "canary-4711"


def open_host(tmp_path, config, **table):
    """Open a host with the embedded store that publishes."""
    plain = {"address": config.address.get_secret_value(), "prefix": config.prefix, "publish": True, **table}
    plugins = [
        Plugin("hook", "redis", sideband_redis.events),
        Plugin("store", "sqlite", sideband_store_sqlite.plugin),
        Plugin("op", "http", sideband_http.plugin),
    ]
    settings = {"plugins": {"redis": plain}}
    return Host(home=tmp_path / "home", settings=settings, plugins=plugins, autoload=False)


async def use(host, count=1):
    for _ in range(count):
        with pytest.raises(Exception, match="http"):
            await host.op("http.get", {"url": f"http://127.0.0.1:1/{CANARY}"}, grants=["http:host=127.0.0.1"])


async def first(events, count):
    with anyio.fail_after(20):
        return [await anext(events) for _ in range(count)]


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_follower_gets_the_effects_of_a_host_without_their_content(tmp_path, config):
    async with follow_events(config()) as events, open_host(tmp_path, config()) as host:
        await use(host, 3)
        found = await first(events, 3)
    assert {(one.event, one.op, one.status, one.process) for one in found} == {
        ("effect", "http.get", "failed", os.getpid())
    }
    assert len({one.effect for one in found}) == 3
    assert all(one.ms > 0 and one.code.startswith("http.") and one.dropped == 0 for one in found)
    assert CANARY not in repr(found)


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_last_events_of_a_host_that_is_closed_are_sent(tmp_path, own_server, config):
    async with follow_events(config(own_server)) as events, anyio.create_task_group() as tasks:
        noted = anyio.Event()
        own_server.pause()

        async def use_and_close():
            async with open_host(tmp_path, config(own_server)) as host:
                plugin = await host.plugins.load("hook", "redis")
                for number in range(300):
                    await dispatch_effect(plugin, f"{number}")
                noted.set()

        tasks.start_soon(use_and_close)
        await noted.wait()
        await anyio.wait_all_tasks_blocked()
        own_server.go_on()
        assert [one.effect for one in await first(events, 300)] == [f"{number}" for number in range(300)]


async def test_long_names_are_cut(tmp_path, config):
    async with follow_events(config()) as events, open_host(tmp_path, config()) as host:
        plugin = await host.plugins.load("hook", "redis")
        await dispatch_effect(plugin, "é" * 1_000)
        (found,) = await first(events, 1)
        assert found.effect == "é" * 200


async def test_nothing_is_published_without_the_setting(tmp_path, config):
    async with follow_events(config()) as events:
        async with open_host(tmp_path, config(), publish=False) as host:
            await use(host)
        async with open_host(tmp_path, config()) as host:
            await use(host)
        (found,) = await first(events, 1)
        with anyio.move_on_after(0.1):
            pytest.fail(f"published {await anext(events)}")
    assert found.event == "effect"


@pytest.fixture
def machine(server, prefix, tmp_path):
    """Return a function that returns the words and the environment of a command on a machine."""
    (tmp_path / "turns.toml").write_text(f'[models.test]\nturns = ["{CANARY}"]\n')
    home = tmp_path / "machine"
    home.mkdir()
    table = {"ADDRESS": server.address, "PREFIX": prefix, "PUBLISH": "true"}
    return {
        "cwd": home,
        "env": {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "SIDEBAND_HOME": str(home / "state"),
            "SIDEBAND_PLUGINS__SCRIPTED__SCRIPT": str(tmp_path / "turns.toml"),
            **{f"SIDEBAND_PLUGINS__REDIS__{name}": value for name, value in table.items()},
        },
    }


# A test run in the background ignores interrupts, and so would what it starts.
INTERRUPTIBLE = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])
"""


def test_command_prints_what_a_run_on_another_machine_does_and_ends_at_an_interrupt(machine, server, prefix):
    follow = [sys.executable, "-c", INTERRUPTIBLE, COMMAND, "events"]
    with subprocess.Popen(follow, stdout=subprocess.PIPE, text=True, **machine) as following:
        try:
            channel = f"{{{prefix}}}:events"
            while not server.send("PUBSUB", "NUMSUB", channel).endswith(b":1\r\n"):
                assert following.poll() is None
            words = ["run", f"say {CANARY}", "--model", "scripted:test"]
            assert (
                CANARY
                in subprocess.run([COMMAND, *words], check=True, capture_output=True, text=True, **machine).stdout
            )
            lines = []
            for line in following.stdout:
                lines.append(json.loads(line))
                if lines[-1]["event"] == "session_shutdown":
                    break
            following.send_signal(signal.SIGINT)
            assert following.wait(30) in (130, -signal.SIGINT)
        finally:
            following.kill()
    names = [one["event"] for one in lines]
    assert names[0] == "session_start"
    start, end = names.index("agent_start"), names.index("agent_end")
    assert "effect" in names[start:end]
    assert {one["status"] for one in lines if one["event"] == "agent_end"} == {"completed"}
    assert len({one["session"] for one in lines if "session" in one}) == 1
    assert CANARY not in json.dumps(lines)


def test_command_escapes_control_characters_and_says_that_the_connection_broke(machine, own_server, prefix):
    machine["env"]["SIDEBAND_PLUGINS__REDIS__ADDRESS"] = own_server.address
    channel = f"{{{prefix}}}:events"
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([COMMAND, "events"], **pipes, **machine) as following:
        try:
            for name in ("first \x9b31m \u202e \u2028", "second"):
                while not own_server.send("PUBSUB", "NUMSUB", channel).endswith(b":1\r\n"):
                    assert following.poll() is None
                good = json.dumps({"event": name, "time": "2026-01-01T00:00:00Z"}, ensure_ascii=False)
                own_server.send("PUBLISH", channel, good)
                line = following.stdout.readline()
                assert line.isascii()
                assert json.loads(line)["event"] == name
                own_server.send("CLIENT", "KILL", "TYPE", "PUBSUB")
            assert "events may be missing" in following.stderr.readline()
        finally:
            following.kill()


async def test_messages_of_other_programs_are_skipped_and_unknown_parts_ignored(server, config, prefix):
    channel = f"{{{prefix}}}:events"
    good = {"event": "effect", "time": "2026-01-01T00:00:00Z"}
    hostile = ["", "{", "[]", "null", '{"event": "x"}', json.dumps(good | {"op": "x" * 1_000}), "[" * 60_000]
    hostile += [
        json.dumps(good | {"ms": "fast"}),
        json.dumps(good | {"ms": float("nan")}),
        '{"event": "x", "time": 1e300}',
    ]
    hostile += [
        json.dumps(good | {"x": "y"}).replace('"y"', "[" * 30_000 + "]" * 30_000),
        json.dumps(good | {"extra": "x" * 70_000}),
        "\ud800\x00",
    ]
    async with follow_events(config()) as events:
        for text in hostile:
            server.send("PUBLISH", channel, text.encode(errors="surrogatepass").decode(errors="replace"))
        server.send("PUBLISH", channel, json.dumps(good | {"future": [1], "op": "new"}))
        (found,) = await first(events, 1)
        assert found.op == "new"
        assert events.skipped == len(hostile)


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_server_that_does_not_answer_never_delays_a_host(tmp_path, own_server, config):
    async with open_host(tmp_path, config(own_server)) as host:
        await use(host)
        own_server.pause()
        try:
            began = anyio.current_time()
            await use(host, 10)
            assert anyio.current_time() - began < 5
        finally:
            own_server.go_on()


async def test_host_ends_soon_although_the_server_does_not_answer(tmp_path, own_server, config):
    try:
        async with open_host(tmp_path, config(own_server)) as host:
            await use(host)
            own_server.pause()
            await use(host)
            began = anyio.current_time()
        assert anyio.current_time() - began < 5
    finally:
        own_server.go_on()


async def test_next_event_says_how_many_were_lost(tmp_path, own_server, config, caplog):
    async with open_host(tmp_path, config(own_server)) as host:
        plugin = await host.plugins.load("hook", "redis")
        await to_thread.run_sync(own_server.kill)
        for number in range(1_500):
            await dispatch_effect(plugin, f"e-{number}")
        await to_thread.run_sync(own_server.start)
        async with follow_events(config(own_server)) as events:
            await dispatch_effect(plugin, "last")
            with anyio.fail_after(20):
                dropped, found = 0, None
                while found != "last":
                    one = await anext(events)
                    dropped, found = dropped + one.dropped, one.effect
                    await dispatch_effect(plugin, "last")
        assert dropped >= 500
    assert sum("cannot be published" in one.message for one in caplog.records) == 1


async def test_events_that_the_server_refuses_are_counted_as_lost(tmp_path, own_server, config):
    own_server.send("ACL", "SETUSER", "default", "resetchannels")
    async with open_host(tmp_path, config(own_server)) as host:
        plugin = await host.plugins.load("hook", "redis")
        await dispatch_effect(plugin, "lost")
        with anyio.fail_after(20):
            while own_server.send("ACL", "LOG") == b"*0\r\n":  # noqa: ASYNC110  another process
                await anyio.sleep(0.01)
        own_server.send("ACL", "SETUSER", "default", "allchannels")
        async with follow_events(config(own_server)) as events:
            dropped = 0
            while not dropped:
                await dispatch_effect(plugin, "next")
                (found,) = await first(events, 1)
                dropped = found.dropped
    assert dropped == 1


async def test_events_that_were_being_sent_when_the_server_crashed_are_counted_as_lost(tmp_path, own_server, config):
    async with open_host(tmp_path, config(own_server)) as host:
        plugin = await host.plugins.load("hook", "redis")
        async with follow_events(config(own_server)) as events:
            await dispatch_effect(plugin, "first")
            await first(events, 1)
        own_server.pause()
        await dispatch_effect(plugin, "lost")
        await anyio.wait_all_tasks_blocked()
        await to_thread.run_sync(own_server.restart)
        async with follow_events(config(own_server)) as events:
            await dispatch_effect(plugin, "next")
            (found,) = await first(events, 1)
    assert (found.effect, found.dropped) == ("next", 1)


async def dispatch_effect(plugin, name):
    plugin.contribution.effect(Effect(name, "test.op", "done", Origin()), plugin.context)


async def test_follower_connects_again_after_a_restart_of_the_server(tmp_path, own_server, config):
    async with follow_events(config(own_server)) as events, open_host(tmp_path, config(own_server)) as host:
        await use(host)
        await first(events, 1)
        await to_thread.run_sync(own_server.restart)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(use_until_followed, host, own_server)
            await first(events, 1)
            tasks.cancel_scope.cancel()
        assert events.interruptions == 1


async def use_until_followed(host, server):
    while True:
        await use(host)
        await anyio.sleep(0.02)


async def test_follower_gets_a_typed_error_if_the_server_stays_away(own_server, config):
    async with follow_events(config(own_server, wait_seconds=0.2)) as events:
        await to_thread.run_sync(own_server.kill)
        with pytest.raises(RedisUnreachable):
            await anext(events)


async def test_follower_stays_connected_while_nothing_is_published(config):
    async with follow_events(config(command_seconds=0.3)) as events:
        with anyio.move_on_after(1.5):  # it would connect again after 0.6 s
            await anext(events)
        assert events.interruptions == 0


async def test_follower_notices_a_server_that_does_not_answer(own_server, config):
    async with follow_events(config(own_server, wait_seconds=0.2, command_seconds=0.2)) as events:
        own_server.pause()
        try:
            with pytest.raises((RedisUnreachable, RedisBusy)):
                await anext(events)
        finally:
            own_server.go_on()


async def test_user_without_the_right_to_follow_gets_a_typed_error(own_server, config):
    own_server.send("ACL", "SETUSER", "deaf", "on", ">secret", "~*", "+@all", "resetchannels")
    with pytest.raises(OSError, match="NOPERM"):
        async with follow_events(config(address=own_server.address.replace("//", "//deaf:secret@"))):
            pass


APPROVALS = [
    ApprovalStart("4f1d", "effect", CANARY, Origin(session="s", run="r")),
    ApprovalEnd("4f1d", "effect", CANARY, Origin(session="s", run="r"), verdict="allow", ms=2.0),
]


@pytest.mark.parametrize("event", APPROVALS, ids=lambda one: one.hook)
async def test_approvals_are_published_without_what_they_are_about(tmp_path, config, event: Event):
    async with follow_events(config()) as events, open_host(tmp_path, config()) as host:
        plugin = await host.plugins.load("hook", "redis")
        getattr(plugin.contribution, event.hook)(event, plugin.context)
        (found,) = await first(events, 1)
    assert (found.event, found.request, found.session, found.run) == (event.hook, "4f1d", "s", "r")
    assert found.status == getattr(event, "verdict", None)
    assert CANARY not in repr(found)
