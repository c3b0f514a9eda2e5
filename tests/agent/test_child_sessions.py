"""A child of a call that runs again continues from its own session, with the same gates, and never as another child."""

import fcntl
import json
from functools import partial

import anyio
import pytest
import sideband_store_sqlite.plugin
from sideband import Host, Plugin
from sideband.broker import Attempt
from sideband_agent import Agent
from sideband_agent.sessions import SessionNotFound, Sessions

POINTS = ["model buyer__buy 0", "between", "model buyer__buy 1", "saved child", "closed child"]


@pytest.fixture
def entrust(shop):
    """Return a function that runs a host whose agent entrusts a task to a child."""

    def run(task="buyer__buy", tools=None, **order):
        return shop.run(tool="entrust", arguments={"task": task, "tools": tools}, **order)

    return run


def with_store(shop, function):
    """Run a function with the store of the hosts, none of which is running."""

    async def main():
        plugins = [Plugin("store", "sqlite", sideband_store_sqlite.plugin)]
        async with Host(home=shop.home, plugins=plugins, autoload=False) as host:
            return await function(host)

    return anyio.run(main)


def child_of(shop):
    """Return the id of the session of the only child."""
    (session,) = {one.origin.session for one in shop.records(op="llm.generate") if one.origin.parent}
    return session


@pytest.mark.parametrize("point", POINTS)
def test_interrupted_child_continues_and_repeats_nothing(shop, entrust, point):
    shop.arm(point)
    assert entrust() is None
    answer = entrust()
    assert (answer["text"], answer["unknown"]) == ("completed finished 11", None)
    assert [one[:3] for one in shop.lines("effects")] == ["a 1", "b 1"]
    done = [one for one in shop.records(op="llm.generate", status="done") if one.origin.parent]
    assert len({one.origin.session for one in done}) == 1
    assert len({one.key for one in done}) == len(done) == 2


def test_child_of_an_interrupted_child_continues_too(shop, entrust):
    shop.arm("between", "between")
    assert entrust("entrust buyer__buy") is None
    assert entrust("entrust buyer__buy") is None
    answer = entrust("entrust buyer__buy")
    assert (answer["text"], answer["kept"]) == ("completed finished 11", [])
    assert [one[:3] for one in shop.lines("effects")] == ["a 1", "b 1"]


def test_effect_of_a_child_whose_outcome_is_unknown_is_reported_to_the_child_only(shop, entrust):
    shop.arm("after child")
    assert entrust("payer") is None
    answer = entrust("payer")
    assert (answer["text"], answer["unknown"]) == ("completed finished 11", None)
    assert shop.lines("effects") == ["child"]


@pytest.mark.parametrize("point", ["between", "saved child", "closed child"])
def test_usage_of_an_interrupted_child_is_charged_once(shop, entrust, point):
    *expected, _ = entrust()["usage"]
    shop.home.rename(shop.home.with_name("first"))
    shop.home.mkdir(mode=0o700)
    shop.arm(point)
    assert entrust() is None
    for _ in ("resumed", "opened again"):
        assert entrust()["usage"][:2] == expected


def test_sessions_of_children_are_deleted_when_their_call_has_ended(shop, entrust):
    shop.arm("between", "closed parent")
    assert entrust() is None
    assert with_store(shop, lambda host: host.store.keys("session/"))
    assert entrust() is None
    assert with_store(shop, lambda host: host.store.keys("session/")) == ()


def test_sessions_of_children_are_deleted_if_their_call_is_not_run_again(shop, entrust):
    shop.arm("between")
    assert entrust() is None
    answer = entrust(policy={"resume": "never"})
    assert (answer["unknown"], answer["kept"]) == (True, [])


def test_sessions_of_children_are_deleted_if_their_run_is_abandoned(shop, entrust):
    shop.arm("between")
    assert entrust() is None
    assert entrust(new_input=True)["kept"] == []


def test_sessions_of_children_are_deleted_with_their_parent(shop, entrust):
    shop.arm("between")
    assert entrust() is None

    async def delete(host):
        sessions = Sessions(host.store, host.home)
        (parent,) = await sessions.list()
        prefix = f"session/{parent.id}/children/"
        (child,) = [key for key in await host.store.keys(prefix) if "/sessions/" in key]
        stream = child.replace("/sessions/", "/session/")
        assert await host.store.read(stream)
        await sessions.delete(parent.id)
        return [*await host.store.keys(prefix), *await host.store.read(stream)]

    assert with_store(shop, delete) == []


def test_session_of_a_child_cannot_be_listed_or_opened(shop, entrust):
    shop.arm("between")
    assert entrust() is None
    child = child_of(shop)

    async def look(host):
        assert len(await Sessions(host.store, host.home).list()) == 1
        with pytest.raises(SessionNotFound):
            async with Agent(host, session=child):
                pass

    with_store(shop, look)


def test_session_imported_with_the_id_of_a_child_is_not_continued(shop, entrust):
    shop.arm("between")
    assert entrust() is None
    child = child_of(shop)

    async def forge(host):
        lines = [
            {"type": "session", "version": 1, "id": child, "time": ""},
            {"type": "run", "id": "r", "parent": None, "time": "", "run": "r", "status": "completed"},
        ]
        info, _ = await Sessions(host.store, host.home).import_(map(json.dumps, lines))
        assert info.id == child

    with_store(shop, forge)
    assert entrust()["text"] == "completed finished 11"


def test_child_is_not_continued_while_another_writer_has_its_session(shop, entrust):
    shop.arm("between")
    assert entrust() is None
    lock = shop.home / "sessions" / "locks" / child_of(shop)
    with lock.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        answer = entrust()
    assert answer["code"] == "session.locked"
    assert [one[:3] for one in shop.lines("effects")] == ["a 1"]


def test_child_whose_session_is_lost_stops_the_replay_if_it_had_changed_something(shop, entrust):
    shop.arm("between")
    assert entrust() is None

    async def lose(host):
        for key in await host.store.keys("session/"):
            await host.store.delete(key)
            await host.store.delete_stream(key.replace("/sessions/", "/session/"))

    with_store(shop, lose)
    answer = entrust()
    assert (answer["code"], answer["unknown"]) == ("effect.unknown", True)
    assert [one[:3] for one in shop.lines("effects")] == ["a 1"]
    assert shop.records(op="till.point") == shop.records(op="till.point", status="unknown")


def test_child_continues_without_the_tools_that_its_parent_has_lost(shop, entrust):
    shop.arm("model buyer__buy 0")
    assert entrust() is None
    answer = shop.run(tool="entrust", tools=["entrust"])
    assert answer["text"] == "completed finished 11"
    assert shop.lines("effects") == []


def test_child_continues_without_tools_that_its_parent_has_gained(shop, entrust):
    order = {"tool": "entrust", "arguments": {"task": "payer"}}
    shop.arm("model payer 0")
    assert shop.run(**order, tools=["entrust"]) is None
    assert shop.run(**order)["text"] == "completed finished 11"
    assert shop.lines("effects") == []


@pytest.mark.anyio
async def test_session_of_a_child_depends_on_its_call_its_seed_its_effect_and_who_spawned_it(stage, kit):
    async with stage([]) as agent:
        children = agent._parts.runner.tools.contexts.children
        attempt = Attempt.first("key", seed="seed")
        usual = {"attempt": attempt, "effect": "key:agent.child:0:1", "spawner": ("user", "plugin", "tool")}
        find = partial(children.find, "run", "0.1")
        first = await find(**usual)
        assert await find(**usual) == first
        others = [
            await find(**{**usual, "attempt": Attempt.first("key", seed="other")}),
            await find(**{**usual, "effect": "key:agent.child:0:2"}),
            await find(**{**usual, "spawner": ("other", "plugin", "tool")}),
            await find(**{**usual, "spawner": ("user", "other", "tool")}),
            await find(**{**usual, "spawner": ("user", "plugin", "other")}),
        ]
        assert len({one.id for one in (first, *others)}) == 6
        assert (await children.find("run", "0.2", **usual)).store != first.store
