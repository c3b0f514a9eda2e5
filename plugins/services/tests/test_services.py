"""Calls of services, with real workers."""

import signal
import subprocess
import sys
from types import SimpleNamespace

import anyio
import attrs
import pytest
from pydantic import BaseModel
from sideband import Plugin, SidebandError
from sideband.calls import CallRequest
from sideband.hooks import Deny, hookimpl
from sideband.ledger import query
from sideband.ops import Level, OpContext, OpFamily, Scope, op
from sideband.tools import emit_tool_progress
from sideband_cassettes import Cassette

pytestmark = pytest.mark.anyio


@attrs.frozen
class VaultScope(Scope, family="vault"):
    name: str | None = None


class Open(BaseModel):
    name: str


@op("vault.open", requires="vault", scope=lambda params: VaultScope(name=params.name), level=Level.CONTROLLED)
async def open_vault(params: Open, ctx: OpContext) -> str:
    """Open it."""
    await ctx.progress(message="half open")
    emit_tool_progress("creaking")
    return f"{params.name} for {ctx.principal}"


VAULT = Plugin(
    "op",
    "vault",
    SimpleNamespace(sideband_ops=lambda: OpFamily("vault", (open_vault,), scope=VaultScope)),
)

PROVIDER = '''
    import asyncio, os

    from sideband.skill import capabilities, services, tool, vault


    @tool
    async def lookup(city: str) -> dict:
        """Look up."""
        return {"city": city, "vault": await vault.open(name="weather"), "rights": list(capabilities())}


    @tool
    async def echo(value: dict | list | str | int | None) -> dict | list | str | int | None:
        """Return it."""
        return value


    @tool
    async def fail() -> str:
        """Raise."""
        raise ValueError("no weather today")


    @tool
    async def crash() -> str:
        """End the worker."""
        os._exit(3)


    @tool
    async def hang() -> str:
        """Never return."""
        await asyncio.sleep(3600)


    @tool
    async def again(depth: int) -> int:
        """Call the same service."""
        return await services.call("again", {"depth": depth + 1})
'''
PROVIDES = "weather_lookup=lookup echo=echo fail=fail crash=crash hang=hang again=again"

CALLER = '''
    import asyncio

    from sideband.skill import OpError, services, tool, vault


    @tool
    async def ask(name: str, params: dict, provider: str | None = None) -> dict:
        """Call a service, or return its error."""
        try:
            return {"result": await services.call(name, params, provider=provider)}
        except OpError as error:
            return {"kind": type(error).__name__, "code": error.code, "message": str(error), "hint": error.hint,
                    "cause": getattr(error, "cause", None), "provider": getattr(error, "provider", None)}


    @tool
    async def impatient() -> str:
        """Wait for a service for a moment only."""
        try:
            await asyncio.wait_for(services.call("hang", {}), 0.2)
        except TimeoutError:
            return "gave up"


    @tool
    async def direct() -> str:
        """Use the rights of the provider."""
        return await vault.open(name="weather")


    @tool
    async def listed(name: str | None = None) -> list:
        """List."""
        return await services.list(name=name)
'''
GRANTS = {"caller": ["services"], "weather-at": ["vault:name=weather", "services"]}


@pytest.fixture
def skills(write_skill):
    write_skill("weather-at", PROVIDER, "vault:name=weather services", PROVIDES)
    write_skill("caller", CALLER, "services")


async def test_provider_runs_with_its_own_grant_for_the_principal_of_the_caller(open_host, skills):
    async with open_host(grants=GRANTS, plugins=[VAULT]) as host:
        request = CallRequest("caller.ask", {"name": "weather_lookup", "params": {"city": "Graz"}}, principal="ann")
        found = await host.run(request)
        assert found.output["result"] == {
            "city": "Graz",
            "vault": "weather for ann",
            "rights": ["services", "vault:name=weather"],
        }
        assert [effect.op for effect in found.effects] == ["vault.open", "skill.call", "services.call"]
        vault, nested, outer = [
            (await query(host.ledger.folder, op=op, limit=1))[0] for op in ("vault.open", "skill.call", "services.call")
        ]
        assert (vault.within, nested.within, outer.within) == (nested.effect, outer.effect, None)
        assert (vault.origin.skill, nested.origin.skill, nested.origin.plugin) == ("weather_at", "caller", "services")
        assert vault.origin.run == outer.origin.run == found.call
        assert nested.level is Level.CONTROLLED
        assert nested.params == {"tool": "weather_at.lookup", "arguments": {"city": "Graz"}}
        with pytest.raises(SidebandError, match="vault"):  # the caller has gained nothing
            await host.call("caller.direct")


async def test_progress_of_a_provider_reaches_the_observer_of_the_caller(open_host, skills):
    events = []
    ask = CallRequest("caller.ask", {"name": "weather_lookup", "params": {"city": "Graz"}}, on_progress=events.append)
    async with open_host(grants=GRANTS, plugins=[VAULT]) as host:
        await host.run(ask)
    found = {(one.source, one.stream, one.text or one.message) for one in events if not one.closed}
    assert found == {("vault.open", "progress", "half open"), ("vault.open", "stdout", "creaking")}
    assert len({one.call for one in events}) == 1


async def test_results_and_errors_of_providers_reach_the_caller(open_host, skills):
    async with open_host(grants=GRANTS, plugins=[VAULT]) as host:

        async def ask(name, params=None, **more):
            return await host.call("caller.ask", name=name, params=params or {}, **more)

        for value in ({"nested": [1, {"a": None}]}, [], "text", 0, None):
            assert await ask("echo", {"value": value}) == {"result": value}
        failed = await ask("fail")
        assert (failed["kind"], failed["code"], failed["cause"]) == (
            "ServiceCallFailed",
            "services.failed",
            "skill.raised",
        )
        assert failed["provider"] == "weather-at"
        assert "no weather today" in failed["message"]
        assert (await ask("crash"))["cause"] == "worker.exited"
        assert (await ask("weather_lookup", {"town": "Graz"}))["cause"] == "call.arguments"
        unknown = await ask("weather_look")
        assert (unknown["kind"], unknown["code"]) == ("ServiceUnknown", "services.unknown")
        assert "did you mean `weather_lookup`" in unknown["message"]
        assert "available: again, crash, echo, fail, hang, weather_lookup" in unknown["message"]
        deep = await ask("again", {"depth": 0})
        assert deep["code"] == "services.failed"
        assert "the limit `nested_calls` of 4 tool calls within tool calls" in deep["message"]


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_the_caller_waits_no_longer_than_its_deadline(open_host, skills):
    async with open_host(grants=GRANTS, plugins=[VAULT]) as host:
        assert await host.call("caller.impatient") == "gave up"
        with pytest.raises(SidebandError, match="did not end within"):
            await host.run(CallRequest("caller.ask", {"name": "hang", "params": {}}, timeout=0.5))
        with anyio.move_on_after(0.3):
            await host.call("caller.ask", name="hang", params={})
        statuses = {one.status for one in await query(host.ledger.folder, op="skill.call", limit=10)}
        assert statuses <= {"cancelled", "failed"}
        assert await host.call("caller.ask", name="echo", params={"value": 1}) == {"result": 1}


async def test_capability_limits_the_service_and_its_provider(open_host, skills):
    grants = ("services:name=echo,provider=weather-at",)
    async with open_host(grants={"weather-at": GRANTS["weather-at"]}, plugins=[VAULT]) as host:

        async def ask(name, *given, **more):
            request = CallRequest("caller.ask", {"name": name, "params": {"value": 1}, **more}, grants=given or grants)
            return (await host.run(request)).output

        assert await ask("echo") == {"result": 1}
        assert (await ask("fail"))["code"] == "op.denied"
        assert (await ask("echo", "services:name=echo,provider=other"))["code"] == "op.denied"
        hidden = await ask("missing", "services:name=missing|echo")
        assert "available: echo" in hidden["message"]
        listed = (await host.run(CallRequest("caller.listed", {}, grants=grants))).output
        assert [one["service"] for one in listed] == ["echo"]


async def test_provider_without_its_grant_is_not_run_and_gets_nothing_of_the_caller(open_host, skills):
    async with open_host(grants={"caller": ["services", "vault:name=weather"]}, plugins=[VAULT]) as host:
        refused = await host.call("caller.ask", name="weather_lookup", params={"city": "Graz"})
        assert (refused["code"], refused["cause"]) == ("services.failed", "grant.required")
        assert "weather-at" in refused["message"]
        [one] = await host.call("caller.listed", name="echo")
        assert one == {
            "service": "echo",
            "id": "weather-at",
            "via": "weather_at.echo",
            "state": "needs_grant",
            "reason": one["reason"],
            "chosen": True,
        }
        assert "vault:name=weather" in one["reason"]


async def test_rank_and_configuration_choose_the_provider(open_host, skills, write_skill):
    says = 'from sideband.skill import tool\n@tool\nasync def echo(value: int) -> str:\n    "Say."\n    return {!r}\n'
    for name in ("zebra", "ant", "bee"):
        write_skill(name, says.format(name), provides="say=echo")
    write_skill("aaa", says.format("aaa"), provides="say=echo", folder="project")
    asked = {"name": "say", "params": {"value": 1}}
    async with open_host(grants=GRANTS, plugins=[VAULT]) as host:
        assert (await host.call("caller.ask", **asked)) == {"result": "ant"}
        assert (await host.call("caller.ask", **asked, provider="zebra")) == {"result": "zebra"}
        unknown = await host.call("caller.ask", **asked, provider="zebr")
        assert unknown["code"] == "services.provider"
        assert "did you mean `zebra`" in unknown["message"]
        assert [(one["id"], one["chosen"]) for one in await host.call("caller.listed", name="say")] == [
            ("ant", True),
            ("bee", False),
            ("zebra", False),
        ]
    chosen = {"plugins": {"services": {"providers": {"say": "zebra"}}}}
    async with open_host(grants=GRANTS, plugins=[VAULT], settings=chosen) as host:
        assert (await host.call("caller.ask", **asked)) == {"result": "zebra"}
        refused = await host.call("caller.ask", **asked, provider="ant")
        assert (refused["code"], refused["kind"]) == ("services.choice", "ServiceRefused")
    missing = {"plugins": {"services": {"providers": {"say": "gone"}}}}
    async with open_host(grants=GRANTS, plugins=[VAULT], settings=missing) as host:
        problem = await host.call("caller.ask", **asked)
        assert "[plugins.services] providers.say" in problem["message"]
        assert not any(one["chosen"] for one in await host.call("caller.listed", name="say"))


async def test_services_that_were_called_are_not_called_again_by_a_call_with_the_same_key(open_host, write_skill):
    write_skill("weather-at", PROVIDER, "vault:name=weather services", PROVIDES)
    source = '''
        from sideband.skill import services, tool


        @tool
        async def twice() -> list:
            """Call it twice."""
            first = await services.call("weather_lookup", {"city": "Graz"})
            return [first, await services.call("weather_lookup", {"city": "Graz"})]
    '''
    write_skill("caller", source, "services")
    async with open_host(grants=GRANTS, plugins=[VAULT]) as host:
        first = await host.run(CallRequest("caller.twice", key="k"))
        again = await host.run(CallRequest("caller.twice", key="k"))
        assert first.output == again.output
        assert len(again.answered) == 2
        assert len(await query(host.ledger.folder, op="vault.open", limit=10)) == 2


async def test_guards_decide_about_the_call_of_the_provider(open_host, skills):
    class Guard:
        @hookimpl
        def op_call(self, event, ctx):
            return Deny("not today") if event.op == "skill.call" and event.level >= Level.CONTROLLED else None

    guard = Plugin("guard", "careful", Guard)
    async with open_host(grants=GRANTS, plugins=[VAULT, guard]) as host:
        found = await host.call("caller.ask", name="weather_lookup", params={"city": "Graz"})
        assert found["code"] == "op.denied"
        assert "not today" in found["message"]
        assert await query(host.ledger.folder, op="vault.open", limit=1) == ()


async def test_cassette_has_the_call_of_a_service_as_a_whole(open_host, skills, tmp_path):
    ask = {"name": "weather_lookup", "params": {"city": "Graz"}}
    async with open_host(grants=GRANTS, plugins=[VAULT], cassette=Cassette(tmp_path / "tape.json", "record")) as host:
        recorded = await host.call("caller.ask", **ask)
    async with open_host(grants=GRANTS, plugins=[VAULT], cassette=Cassette(tmp_path / "tape.json", "replay")) as host:
        assert await host.call("caller.ask", **ask) == recorded
        assert len(await query(host.ledger.folder, op="vault.open", limit=5)) == 1  # when it was recorded


DYING = """
import sys
from pathlib import Path

import anyio
from dying import host

async def main():
    async with host(Path(sys.argv[1])) as one:
        from sideband.calls import CallRequest
        print((await one.run(CallRequest("caller.both", key="k"))).output)

anyio.run(main)
"""

DYING_MODULE = """
import os, signal
from pathlib import Path
from types import SimpleNamespace

import sideband_services.plugin, sideband_skills.plugin, sideband_store_sqlite.plugin
from pydantic import BaseModel
from sideband import Host, Plugin
from sideband.ops import Level, OpContext, OpFamily, op

class Empty(BaseModel):
    pass

@op("log.write", level=Level.CONTROLLED)
async def write(params: Empty, ctx: OpContext) -> int:
    "Count."
    file = ctx.home / "count"
    file.write_text(file.read_text() + "x" if file.exists() else "x")
    return len(file.read_text())

@op("log.read", level=Level.SAFE)
async def read(params: Empty, ctx: OpContext) -> bool:
    "Return whether the host has died."
    return (ctx.home / "died").exists()

@op("log.die", level=Level.SAFE)
async def die(params: Empty, ctx: OpContext) -> str:
    "End the host, once."
    if (ctx.home / "died").exists():
        return "alive"
    (ctx.home / "died").touch()
    os.kill(os.getpid(), signal.SIGKILL)

def host(folder):
    log = SimpleNamespace(sideband_ops=lambda: OpFamily("log", (write, read, die)))
    plugins = [
        Plugin("store", "sqlite", sideband_store_sqlite.plugin),
        Plugin("loader", "skills", sideband_skills.plugin),
        Plugin("op", "services", sideband_services.plugin),
        Plugin("op", "log", log),
    ]
    settings = {"policy": {"isolation": "none"}, "grants": {"caller": ["services"]}}
    return Host(
        home=folder / "home", settings=settings, plugins=plugins, autoload=False, skill_dirs=[folder / "skills"]
    )
"""


def test_service_continues_from_its_recorded_effects_after_the_host_was_killed(write_skill, tmp_path):
    provider = '''
        from sideband.skill import log, random, tool


        @tool
        async def work() -> list:
            """Have effects."""
            first = await log.write()
            return [first, await log.read(), await log.die(), await log.write(), random.random()]
    '''
    caller = '''
        from sideband.skill import log, services, tool


        @tool
        async def both() -> list:
            """Have effects before and within a service."""
            return [await log.write(), await services.call("work", {})]
    '''
    write_skill("worker", provider, provides="work=work")
    write_skill("caller", caller, "services")
    (tmp_path / "dying.py").write_text(DYING_MODULE)
    (tmp_path / "main.py").write_text(DYING)

    def run():
        command = [sys.executable, str(tmp_path / "main.py"), str(tmp_path)]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    assert run().returncode == -signal.SIGKILL
    again = run()
    assert again.stdout.startswith("[1, [2, False, 'alive', 3, 0."), again.stderr
    assert run().stdout == again.stdout
    assert (tmp_path / "home" / "count").read_text() == "xxx"
