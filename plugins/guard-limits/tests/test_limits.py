"""The limits of each level: what they count, how long they do, and what a refusal says."""

import os
from contextlib import asynccontextmanager
from functools import partial
from types import SimpleNamespace

import anyio
import anyio.lowlevel
import attrs
import pytest
import sideband_guard_limits.plugin
from pydantic import BaseModel
from sideband import Host, Plugin, hookimpl
from sideband.errors import StoreError
from sideband.hooks import Ask, Deny, HookRegistry, OpCall, Phase, Replace, Verdict
from sideband.ledger import query
from sideband.ops import Level, Lower, OpContext, OpDenied, OpError, OpFailed, OpFamily, Origin, Scope, op
from sideband.store import StoreSpec
from sideband_store_sqlite import open_sqlite

pytestmark = pytest.mark.anyio

both_backends = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])


async def passed(host, name, times, **options):
    """Cause an effect so often, and return how many passed."""
    count = 0
    for _ in range(times):
        try:
            await host.op(name, {}, principal="guest", **options)
        except OpDenied:
            continue
        count += 1
    return count


def deciding(answer):
    """Return a guard that gives this answer, or the result of calling it with the event. It is asked last."""

    class Guard:
        @hookimpl(after="guard-limits")
        def op_call(self, event):
            return answer(event) if callable(answer) else answer

    return Plugin("guard", "later", Guard)


@pytest.mark.parametrize(("name", "limit"), [("mail.mark", 100), ("mail.send", 30), ("mail.wipe", 20)])
async def test_each_level_has_its_limit_within_an_hour(make_host, clock, name, limit):
    async with make_host() as host:
        assert await passed(host, name, limit + 3) == limit
        clock.now += 3_600
        assert await passed(host, name, 1) == 0
        clock.now += 57  # a 64th of the window
        assert await passed(host, name, limit + 3) == limit


async def test_levels_do_not_share_their_limits(make_host):
    async with make_host(controlled="2/h", restricted="2/h", privileged="2/h") as host:
        assert [await passed(host, name, 3) for name in ("mail.mark", "mail.send", "mail.wipe")] == [2, 2, 2]


async def test_reading_is_free(make_host):
    async with make_host(controlled="1/h", restricted="1/h", privileged="1/h") as host:
        assert await passed(host, "mail.look", 150) == 150
        assert list(await host.store.keys("plugin/guard-limits/")) == []


async def test_reading_does_not_ask_the_guard(make_host, monkeypatch):
    async with make_host() as host:
        await host.op("mail.send", {}, principal="guest")
        monkeypatch.setattr("sideband.broker._broker.OpCall", None)  # no event can be made
        await host.op("mail.look", {}, principal="guest")


async def test_reservation_needs_no_sync(make_host, monkeypatch):
    syncs = []
    async with make_host() as host:
        await host.op("mail.sort", {}, principal="guest")
        monkeypatch.setattr(os, "fdatasync", syncs.append)
        assert await passed(host, "mail.sort", 10) == 10
        assert syncs == []
        assert await passed(host, "mail.mark", 1) == 1
        assert len(syncs) == 2  # the ledger and the store, at the same time


async def test_unlimited_level_is_free(make_host):
    async with make_host(controlled="unlimited") as host:
        assert await passed(host, "mail.mark", 150) == 150
        assert list(await host.store.keys("plugin/guard-limits/")) == []


async def test_refusal_says_what_is_reached_and_when_to_try_again(make_host, clock):
    async with make_host(restricted="1/10min", privileged="1/s") as host:
        await host.op("mail.send", {}, principal="guest")
        clock.now += 30
        with pytest.raises(OpDenied) as caught:
            await host.op("mail.send", {"text": "again"}, principal="guest")
        assert caught.value.message == (
            "mail.send was denied by `guard-limits`: the limit of 1 effect of the level RESTRICTED per 10 minutes is "
            "reached for effects that no skill or plugin causes"
        )
        assert caught.value.hint == "try again in 10 min; the user can raise `restricted` in [plugins.guard-limits]"
        clock.now += 500
        with pytest.raises(OpDenied) as caught:
            await host.op("mail.send", {}, principal="guest")
        assert caught.value.hint.startswith("try again in 80 s;")
        await host.op("mail.wipe", {}, principal="guest")
        with pytest.raises(OpDenied, match="per second is reached") as caught:
            await host.op("mail.wipe", {}, principal="guest")
        assert caught.value.hint.startswith("try again in 2 s;")


async def test_refusal_is_recorded(make_host):
    async with make_host(restricted="1/h") as host:
        for _ in range(2):
            await passed(host, "mail.send", 1)
        denied, done = await query(host.ledger.folder)
    assert (done.status, done.decisions) == ("done", ())
    assert (denied.status, denied.level, denied.error["code"]) == ("denied", Level.RESTRICTED, "op.denied")
    assert [(one["plugin"], one["said"]) for one in denied.decisions] == [("guard-limits", "deny")]
    assert "the limit of 1 effect of the level RESTRICTED per hour is reached" in denied.decisions[0]["note"]


async def test_failed_effect_counts(make_host):
    async with make_host(restricted="2/h") as host:
        for _ in range(2):
            with pytest.raises(OpFailed):
                await host.op("mail.send", {"text": "fail"}, principal="guest")
        assert await passed(host, "mail.send", 1) == 0


@pytest.mark.parametrize("answer", [Deny("no"), Ask("May I?")], ids=["denied", "asked without an approver"])
async def test_effect_that_is_not_allowed_does_not_count(make_host, answer):
    async with make_host(
        deciding(lambda event: answer if event.params.get("text") else None), restricted="2/h"
    ) as host:
        for _ in range(3):
            with pytest.raises(OpError):
                await host.op("mail.send", {"text": "x"}, principal="guest")
        assert await passed(host, "mail.send", 3) == 2


async def test_invalid_effect_does_not_count(make_host):
    async with make_host(restricted="2/h") as host:
        for _ in range(3):
            with pytest.raises(OpError):
                await host.op("mail.send", {"text": 1}, principal="guest")
        assert await passed(host, "mail.send", 3) == 2


async def test_repeated_request_with_a_key_counts_once(make_host):
    async with make_host(restricted="2/h") as host:
        assert await passed(host, "mail.send", 5, key="k") == 5
        assert await passed(host, "mail.send", 2) == 1


async def test_answer_that_is_used_again_needs_a_free_reservation(make_host):
    """A guard cannot know whether an effect will be answered from the record."""
    async with make_host(restricted="1/h") as host:
        assert await passed(host, "mail.send", 2, key="k") == 1


class Distant:
    """A store on another machine: it answers after a write, and its caller may be cancelled before that."""

    def __init__(self, store):
        self._store = store
        self.written = anyio.Event()

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def put(self, key, value, **options):
        version = await self._store.put(key, value, **options)
        if key.startswith("plugin/guard-limits/"):
            self.written.set()
            await anyio.lowlevel.checkpoint()
        return version


@asynccontextmanager
async def open_distant(folder):
    async with open_sqlite(folder) as store:
        yield Distant(store)


@both_backends
async def test_effect_that_is_cancelled_while_it_is_being_counted_does_not_count(mail, limits, tmp_path):
    spec = StoreSpec(name="distant", open=open_distant)
    store = Plugin("store", "distant", SimpleNamespace(sideband_stores=lambda: [spec]))
    settings = {"plugins": {"guard-limits": {"restricted": "1/h"}}}
    async with Host(home=tmp_path, plugins=[store, limits, mail], autoload=False, settings=settings) as host:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(host.op, "mail.send", {}, principal="guest"))
            await host.store.written.wait()
            tasks.cancel_scope.cancel()
        assert await passed(host, "mail.send", 2) == 1


async def test_guard_denies_if_the_store_fails(make_host, monkeypatch):
    async with make_host() as host:
        put = type(host.store).put

        async def fail(self, key, *rest, **options):
            if key.startswith("plugin/guard-limits/"):
                raise StoreError("no connection")
            return await put(self, key, *rest, **options)

        monkeypatch.setattr(type(host.store), "put", fail)
        with pytest.raises(OpDenied, match="StoreError: no connection; an event that cannot be checked is denied"):
            await host.op("mail.send", {}, principal="guest")


async def test_limits_survive_the_host(make_host):
    async with make_host(restricted="3/h") as host:
        assert await passed(host, "mail.send", 2) == 2
    async with make_host(restricted="3/h") as host:
        assert await passed(host, "mail.send", 2) == 1


async def test_lower_limit_holds_for_earlier_effects(make_host):
    async with make_host(restricted="3/h") as host:
        assert await passed(host, "mail.send", 2) == 2
    async with make_host(restricted="2/h") as host:
        assert await passed(host, "mail.send", 1) == 0


@pytest.fixture
async def decide(make_host, clock):
    """Return a function that asks the guard about an event, and returns whether it allows it."""
    (guard,) = sideband_guard_limits.plugin.sideband_guards()
    async with make_host() as host:

        async def ask(*, level=Level.RESTRICTED, indirect=False, config, **origin):
            hooks = HookRegistry()
            config = sideband_guard_limits.plugin.Config(**{"restricted": "1/h", **config})
            context = attrs.evolve(host.context_for("guard-limits"), config=config)
            hooks.register("guard-limits", guard(), phase=Phase.GUARD, context=context)
            event = OpCall("e", "mail.send", {}, level, Origin(**origin), indirect=indirect)
            return (await hooks.decide(event)).verdict is Verdict.ALLOW

        yield ask


SKILLS = [
    *({"skill": "a"}, {"skill": "b"}, {"plugin": "a"}, {"tool": "a"}, {"principal": "eve", "skill": "a"}),
    {"skill": "a/b"},
]


async def test_skills_and_plugins_have_their_own_limits(decide):
    for _ in range(2):
        assert [await decide(config={}, **origin) for origin in SKILLS].count(True) == (6 if _ == 0 else 0)


async def test_sessions_tools_and_plugins_of_one_skill_share_its_limit(decide):
    assert await decide(config={}, skill="a", session="1", run="1", tool="x")
    assert not await decide(config={}, skill="a", session="2", run="2", tool="y", plugin="http")


async def test_names_cannot_be_chosen_to_share_or_leave_a_limit(decide):
    assert await decide(config={}, principal="a/skill/b")
    assert await decide(config={}, principal="a", skill="b/host")
    assert await decide(config={}, principal="a", skill="b")
    assert await decide(config={}, principal="a\n\ud7ff" + "x" * 100, skill="b")


async def test_principals_can_have_one_limit_for_all_skills(decide):
    config = {"per": "principal"}
    assert [await decide(config=config, **origin) for origin in SKILLS] == [True, False, False, False, True, False]


async def test_whole_store_can_have_one_limit(decide):
    assert [await decide(config={"per": "store"}, **origin) for origin in SKILLS] == [True, *[False] * 5]


async def test_effects_without_a_skill_or_a_plugin_share_a_limit(decide):
    assert await decide(config={}, tool="a", session="s", run="r")
    for origin in ({"tool": "b"}, {"session": "t"}, {"run": "r"}):
        assert not await decide(config={}, **origin)
    assert await decide(config={}, principal="eve")
    assert not await decide(config={}, principal="eve", tool="a")


@pytest.mark.parametrize("per", ["skill", "principal", "store"])
async def test_what_the_user_does_directly_does_not_count(decide, per):
    assert [await decide(config={"per": per}) for _ in range(3)] == [True] * 3
    assert await decide(config={"per": per}, skill="a")
    assert await decide(config={"per": per})


async def test_call_that_only_causes_other_effects_does_not_count(decide):
    assert [await decide(config={}, indirect=True, skill="a") for _ in range(3)] == [True] * 3
    assert await decide(config={}, skill="a")


async def test_effect_is_counted_once_if_another_guard_replaces_its_parameters(make_host):
    later = deciding(lambda event: Replace({"text": "polite"}) if event.params.get("text") != "polite" else None)
    async with make_host(later, restricted="2/h") as host:
        assert await host.op("mail.send", {"text": "rude"}, principal="guest") == "polite"
        assert await passed(host, "mail.send", 2) == 1


async def test_effect_whose_parameters_are_replaced_is_counted_at_its_new_level(make_host):
    class Params(BaseModel):
        to: str

    @attrs.frozen
    class PostScope(Scope, family="post"):
        to: str | None = None

    @op(
        "post.send",
        requires="post",
        level=Level.RESTRICTED,
        scope=lambda params: PostScope(to=params.to),
        lower=[Lower(Level.CONTROLLED, to=("me",))],
    )
    async def post(params: Params, ctx: OpContext) -> str:
        return params.to

    family = OpFamily(name="post", ops=(post,), scope=PostScope)
    plugin = Plugin("op", "post", SimpleNamespace(sideband_ops=lambda: family))
    later = deciding(lambda event: Replace({"to": "all"}) if event.params.get("to") == "me" else None)
    async with make_host(plugin, later, controlled="2/h", restricted="1/h") as host:
        assert await host.op("post.send", {"to": "me"}, principal="guest", grants=["post"]) == "all"
        with pytest.raises(OpDenied, match="RESTRICTED"):
            await host.op("post.send", {"to": "me"}, principal="guest", grants=["post"])
        # The reservation at the first level was given back with the denied effect.
        await host.op("mail.mark", {}, principal="guest")
