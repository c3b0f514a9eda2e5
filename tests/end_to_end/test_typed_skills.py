"""Skills catch the errors of op families by class, and cannot dispatch internal ops."""

import json
from types import SimpleNamespace

import pytest
from pydantic import BaseModel
from sideband import CallRequest, Host, Plugin
from sideband.ledger import query
from sideband.ops import Level, OpContext, OpFailed, OpFamily, OpInternal, Undo, UndoStep, op
from sideband.providers import ProviderRefused

pytestmark = pytest.mark.anyio

CODE = """
from sideband.skill import OpDenied, OpError, dispatch, geo, tool

@tool
async def find(address: str) -> list:
    try:
        await geo.find(address)
    except geo.AddressNotFound as error:
        return [error.address, error.token, error.size, error.tries]

@tool
async def place(op: str) -> list:
    try:
        return [await dispatch(op, {"address": "here"})]
    except OpDenied as error:
        return [error.code, error.message]

@tool
async def ask() -> list:
    try:
        await geo.ask("here")
    except geo.ProviderRefused as error:
        return [error.code, error.message]

@tool
async def functions() -> list:
    return [name for name in dir(geo) if not name.startswith("_")]

@tool
async def replaced() -> str:
    try:
        await geo.find("here")
    except geo.AddressNotFound as error:
        error.token = error.message = geo.AddressNotFound = None
    return "done"
"""


class Address(BaseModel):
    address: str


class Token(str):
    """A text whose own methods must not be used."""

    __slots__ = ()

    def __str__(self):
        raise AssertionError("called")


class AddressNotFound(OpFailed, LookupError):
    """The address is unknown."""

    code = "geo.address"
    details = ("address", "token", "size", "tries")

    def __init__(self, address, tries):
        super().__init__(f"no address {address}")
        self.address, self.token, self.tries = Token(address), "the key of the service", tries
        self.size = len(address)


@pytest.fixture
def geo():
    """A plugin whose op never finds an address, and whose change is undone by an internal op."""
    state = SimpleNamespace(tries=0, at="home")

    @op("geo.find", level=Level.CONTROLLED, record=["address"])
    async def find(params: Address, ctx: OpContext) -> str:
        ctx.protect("mill-lane-7")
        state.tries += 1
        raise AddressNotFound(params.address, state.tries)

    @op("geo.ask", level=Level.CONTROLLED)
    async def ask(params: Address, ctx: OpContext) -> str:
        raise ProviderRefused("atlas", "no", status=500, body="down")

    async def undo(recorded, ctx):
        return Undo(steps=(UndoStep("geo.go_back", {"address": recorded.note["before"]}, "go back"),))

    @op("geo.go", level=Level.CONTROLLED, undo=undo)
    async def go(params: Address, ctx: OpContext) -> str:
        await ctx.note({"before": state.at})
        state.at = params.address
        return state.at

    @op("geo.go_back", level=Level.CONTROLLED, internal=True, record=["address"])
    async def go_back(params: Address, ctx: OpContext) -> str:
        state.at = params.address
        return state.at

    @op("geo.detour", level=Level.CONTROLLED)
    async def detour(params: Address, ctx: OpContext) -> str:
        return await ctx.dispatch("geo.go_back", {"address": params.address})

    family = OpFamily("geo", (find, ask, go, go_back, detour), errors=[AddressNotFound, ProviderRefused])
    state.plugin = Plugin("op", "geo", SimpleNamespace(sideband_ops=lambda: family))
    return state


@pytest.fixture
def make_host(tmp_path, make_skill, geo):
    folder = make_skill("way", CODE, "")

    def make():
        settings = {"policy": {"isolation": "none"}}
        return Host(home=tmp_path / "home", settings=settings, plugins=[geo.plugin], skill_dirs=[folder])

    return make


async def test_details_of_an_error_reach_the_skill_redacted(make_host):
    async with make_host() as host:
        found = await host.call("way.find", address="to mill-lane-7")
    assert found == ["to [redacted:secret]", "[redacted]", 14, 1]


async def test_details_of_an_error_are_recorded_redacted(make_host):
    async with make_host() as host:
        await host.call("way.find", address="to mill-lane-7")
        (record, *_) = await query(host.ledger.folder, op="geo.find")
        assert record.error["details"]["address"] == "to [redacted:secret]"
        assert "mill-lane-7" not in json.dumps(record.error)


async def test_recorded_failure_is_typed_again_when_the_call_is_repeated(make_host, geo):
    async with make_host() as host:
        for _ in range(2):
            found = await host.run(CallRequest("way.find", {"address": "Mill Lane"}, key="once"))
            assert found.output == ["Mill Lane", "[redacted]", 9, 1]
    assert geo.tries == 1


async def test_recorded_failure_with_data_of_its_own_is_answered_again(make_host):
    async with make_host() as host:
        for _ in range(2):
            found = await host.run(CallRequest("way.ask", {}, key="once"))
            assert found.output == ["provider.refused", "atlas: no"]


async def test_skill_that_changes_an_error_affects_only_itself(make_host):
    async with make_host() as host:
        assert await host.call("way.replaced") == "done"
        (record, *_) = await query(host.ledger.folder, op="geo.find")
        assert record.error["message"] == "no address here"


async def test_internal_op_is_refused_if_a_skill_dispatches_it(make_host, geo):
    async with make_host() as host:
        code, message = await host.call("way.place", op="geo.go_back")
        (record, *_) = await query(host.ledger.folder, op="geo.go_back")
    assert (code, record.status, record.error["code"], geo.at) == ("op.internal", "denied", OpInternal.code, "home")
    assert message == "geo.go_back was denied: it is internal, used to undo effects or by a plugin"


async def test_plugin_may_dispatch_an_internal_op_for_a_skill(make_host, geo):
    async with make_host() as host:
        assert await host.call("way.place", op="geo.detour") == ["here"]
        (record, *_) = await query(host.ledger.folder, op="geo.go_back")
    assert (record.status, record.origin.plugin, record.params, geo.at) == ("done", "geo", {"address": "here"}, "here")


async def test_undo_of_a_skills_effect_uses_an_internal_op(make_host, geo):
    async with make_host() as host:
        await host.call("way.place", op="geo.go")
        (effect, *_) = await query(host.ledger.folder, op="geo.go")
        plan = await host.plan_undo(effect.effect)
        assert [step.op for step in plan.steps] == ["geo.go_back"]
        assert [done.error for done in await host.undo(plan)] == [None]
    assert geo.at == "home"


async def test_sdk_of_a_skill_has_the_errors_and_no_internal_op(make_host):
    async with make_host() as host:
        names = await host.call("way.functions")
    assert {"AddressNotFound", "find", "go", "detour"} <= set(names)
    assert "go_back" not in names


async def test_unknown_op_does_not_suggest_an_internal_one(make_host):
    async with make_host() as host:
        with pytest.raises(LookupError) as caught:
            await host.op("geo.go_bac", {})
    assert "did you mean `geo.go`?" in str(caught.value)


def test_command_line_hides_internal_ops(sideband):
    assert "files.restore" not in sideband("ops", "list", "files").stdout
    assert "files.restore" in sideband("ops", "list", "files", "--all").stdout
    assert "internal" in sideband("ops", "show", "files.restore").stdout.splitlines()[0]


def test_command_line_refuses_internal_ops(sideband):
    done = sideband("op", "files.restore", "path=x")
    assert (done.returncode, "files.restore was denied: it is internal" in done.stderr) == (3, True)
    assert "undo an effect with `sideband undo EFFECT`" in done.stderr
