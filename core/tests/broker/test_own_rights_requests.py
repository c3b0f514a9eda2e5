"""Requests for the rights of an op family of its own: who is asked, what for, and how long the answer holds."""

import re

import anyio
import pytest
from attrs import evolve
from sideband.approvals import Approval, ApprovalNeeded
from sideband.hooks import HookRegistry, Replace, hookimpl
from sideband.ledger import query
from sideband.ops import (
    Level,
    OpDenied,
    Origin,
)

from .own_rights import NORTH, SOUTH, WEB, Person, find, find_in, find_on, geo

pytestmark = pytest.mark.anyio


async def test_user_is_asked_once_and_sees_the_exact_rights(make_host):
    person = Person()
    async with make_host(WEB, geo(NORTH, SOUTH), approver=person) as host:
        await find_on(host)
        await find_on(host, "south.example")
    async with make_host(WEB, geo(NORTH, SOUTH), approver=person) as host:
        await find_on(host)
        found = await query(host.ledger.folder, op="web.get")
    (request,) = person.requests
    assert (request.kind, request.subject, request.origin.plugin) == ("grant", "plugin:geo", "geo")
    assert (request.grants, request.level) == ({"always": (NORTH, SOUTH)}, Level.MONITORED)
    assert (request.effect["source"], request.effect["op"]) == ("sideband-geo 0", "web.get")
    assert [one.granted_by for one in reversed(found)] == [
        ("plugin:geo person",),
        ("plugin:geo remembered",),
        ("plugin:geo remembered",),
    ]


async def test_request_shows_long_parameters_in_full_and_the_record_shortens_them(make_host):
    person, name = Person(scope="once"), "n" * 5_000
    async with make_host(WEB, geo("web:host=*"), approver=person) as host:
        await find_on(host, name)
        (child,) = await query(host.ledger.folder, op="web.get")
    assert person.requests[0].effect["arguments"] == {"host": name}
    assert len(child.params["host"]) == 501


async def test_approver_of_the_caller_is_asked_before_that_of_the_host(make_host):
    of_caller, of_host = Person(scope="once"), Person()
    hooks = HookRegistry()
    hooks.approver = of_caller
    async with make_host(WEB, geo(NORTH), approver=of_host) as host:
        await find_in(host, Origin(), hooks=hooks)
    assert (of_caller.asked, of_host.asked) == ([(NORTH,)], [])


async def test_refusal_holds_for_the_run_the_plugin_and_the_rights_that_were_asked_for(make_host, tmp_path):
    person, run = Person("deny"), Origin(run="r")
    rival = geo(NORTH, SOUTH, ops=(evolve(find, name="map.find"),), name="map")
    async with make_host(WEB, geo(NORTH, SOUTH), rival, approver=person) as host:
        for name in ("geo.find", "geo.find", "map.find"):
            with pytest.raises(OpDenied):
                await find_in(host, run, name)
        assert [one.subject for one in person.requests] == ["plugin:geo", "plugin:map"]
        (tmp_path / "home" / "grants.toml").write_text(f'[plugins."geo:sideband-geo"]\ncapabilities = ["{NORTH}"]\n')
        with pytest.raises(OpDenied):
            await find_in(host, run, name="south.example")
    assert person.asked == [(NORTH, SOUTH), (NORTH, SOUTH), (SOUTH,)]


async def test_grant_for_a_session_is_for_the_plugin_of_one_distribution(make_host):
    person, session = Person(scope="session"), Origin(session="s", run="r")
    async with make_host(WEB, geo(NORTH), approver=person) as host:
        for _ in range(2):
            assert await find_in(host, session) == "north.example"
    async with make_host(WEB, geo(NORTH, distribution="other-geo")) as host:
        with pytest.raises(ApprovalNeeded):
            await find_in(host, session)
    assert len(person.asked) == 1


async def test_parallel_effects_ask_one_question(make_host):
    person = Person()
    hosts = ["north.example", "south.example"]
    async with make_host(WEB, geo(NORTH, SOUTH), approver=person) as host, anyio.create_task_group() as tasks:
        for number in range(10):
            tasks.start_soon(find_on, host, hosts[number % 2])
    assert person.asked == [(NORTH, SOUTH)]


async def test_declaration_that_grows_asks_for_the_difference_when_it_is_needed(make_host):
    person = Person()
    async with make_host(WEB, geo(NORTH), approver=person) as host:
        await find_on(host)
    async with make_host(WEB, geo(NORTH, SOUTH), approver=person) as host:
        await find_on(host)
        assert person.asked == [(NORTH,)]
        await find_on(host, "south.example")
    assert person.asked == [(NORTH,), (SOUTH,)]


@pytest.mark.parametrize(("reason", "shown"), [("not today", ": not today"), ("", "")])
async def test_refusal_denies_the_effect_and_nothing_is_remembered(make_host, tmp_path, hook, reason, shown):
    seen = []

    @hookimpl
    async def effect(event):
        if event.op == "web.get":
            seen.append(event.grant)

    async with make_host(WEB, geo(NORTH), hook("watch", effect), approver=Person("deny", reason=reason)) as host:
        message = rf"the plugin `geo` requests it .*, and the user refused to grant them{shown}$"
        with pytest.raises(OpDenied, match=message) as caught:
            await find_on(host)
        (child,) = await query(host.ledger.folder, op="web.get")
    assert (child.status, child.grant, seen) == ("denied", (), [()])
    assert f'"plugin:geo" = ["{NORTH}"]' in caught.value.hint
    assert not (tmp_path / "home" / "grants.toml").exists()


async def test_approval_of_one_effect_gives_no_right_to_the_next(make_host):
    person, origin = Person(scope="once"), Origin(session="s", run="r", step="0.0")
    async with make_host(WEB, geo(NORTH), approver=person) as host:
        await find_in(host, origin)
        await find_in(host, origin)
    assert len(person.asked) == 2


async def test_approval_of_one_effect_does_not_admit_what_a_guard_makes_of_it(make_host, hook):
    @hookimpl
    async def op_call(event):
        return Replace({"host": "south.example"}) if event.op == "web.get" else None

    class OnlyNorth(Person):
        async def __call__(self, request):
            await super().__call__(request)
            allowed = request.effect["arguments"] == {"host": "north.example"}
            return Approval("allow" if allowed else "deny", "once")

    person = OnlyNorth(scope="once")
    async with make_host(WEB, geo(NORTH, SOUTH), hook("strict", op_call), approver=person) as host:
        with pytest.raises(OpDenied, match="the plugin `geo` requests it"):
            await host.op("geo.find", {"host": "north.example"}, grants=[])
        (child,) = await query(host.ledger.folder, op="web.get")
    assert (child.status, child.params, len(person.asked)) == ("denied", {"host": "south.example"}, 2)


@pytest.mark.parametrize("other", [("2", "a", "x"), ("1", "b", "x"), ("1", "a", "y")], ids=["op", "skill", "params"])
async def test_request_for_one_effect_depends_on_all_parameters_and_on_the_versions_of_op_and_skill(make_host, other):
    async def digest(version, code, body):
        async with make_host(evolve(WEB, version=version), geo(NORTH)) as host:
            with pytest.raises(ApprovalNeeded) as caught:
                await find_in(host, Origin(), body=body, code=code)
            return caught.value.request.digest

    assert await digest("1", "a", "x") == await digest("1", "a", "x")
    assert await digest("1", "a", "x") != await digest(*other)


async def test_without_an_approver_the_request_is_stored_and_its_answer_counts(make_host):
    async with make_host(WEB, geo(NORTH)) as host:
        with pytest.raises(ApprovalNeeded) as caught:
            await find_on(host)
        assert "--grant" not in caught.value.hint  # it would give the right to a skill
        (stored,) = await host.approvals.list()
        await host.approvals.answer(stored.request.id, Approval("allow", "always"))
        assert await find_on(host) == "north.example"


async def test_revoked_right_is_gone_for_the_next_dispatch(make_host, tmp_path):
    person = Person()
    async with make_host(WEB, geo(NORTH), approver=person) as host:
        await find_on(host)
        person.answer = Approval("deny")
        file = tmp_path / "home" / "grants.toml"
        file.write_text(re.sub("capabilities = .*", "capabilities = []", file.read_text()))
        with pytest.raises(OpDenied):
            await find_on(host)
    assert len(person.asked) == 2


async def test_remembered_rights_are_those_of_the_plugin_of_one_distribution(make_host):
    person = Person()
    async with make_host(WEB, geo(NORTH), approver=person) as host:
        await find_on(host)
    person.answer = Approval("deny")
    async with make_host(WEB, geo(NORTH, distribution="other-geo"), approver=person) as host:
        with pytest.raises(OpDenied):
            await find_on(host)
    assert len(person.asked) == 2
