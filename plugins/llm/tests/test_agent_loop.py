"""Loops of `llm.agent` for skills, with real workers and a scripted model."""

import importlib.util
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from sideband.calls import CallRequest
from sideband.ledger import query
from sideband.messages import ToolCallPart, Usage
from sideband.providers import Prices, ProviderRefused
from sideband_scripted import Hang, Scripted, Turn

spec = importlib.util.spec_from_file_location("skill_hosts", Path(__file__).with_name("skill_hosts.py"))
hosts = sys.modules["skill_hosts"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(hosts)

pytestmark = pytest.mark.anyio

READ = ("box__read", {"name": "a"})
GRANTS = {
    "box": ["vault", "llm"],
    "asker": ["llm:model=scripted:test,tool=box.*", "vault:name=a"],
    "free": ["llm", "vault"],
}


@pytest.fixture
def skills(tmp_path):
    hosts.OPENED.clear()
    folder = tmp_path / "skills"
    hosts.write_skill(folder, "box", hosts.TOOLS, "vault llm")
    hosts.write_skill(folder, "asker", hosts.ASKER, "llm:model=scripted:test,tool=box.* vault:name=a")
    hosts.write_skill(folder, "private", hosts.TOOLS, "llm", "disable-model-invocation: true\n")
    return folder


@pytest.fixture
def open_asker(open_host, skills):
    @asynccontextmanager
    async def open_one(*turns, grants=GRANTS, prices=None, **options):
        script = Scripted(turns, **({"prices": prices} if prices else {}), **options)
        settings = {"policy": {"isolation": "none"}, "grants": grants}
        async with open_host(script, settings=settings, plugins=hosts.PLUGINS, skill_dirs=[skills]) as host:

            async def ask(*tools, key=None, **options):
                request = CallRequest("asker.ask", {"tools": list(tools), "options": options}, key=key)
                return (await host.run(request)).output

            yield host, script, ask

    return open_one


def calls(*made, **fields):
    return Turn(tool_calls=list(made), usage=Usage(input=90, output=10), **fields)


async def test_model_solves_a_task_with_the_tools_that_were_named(open_asker):
    schema = {"type": "object", "properties": {"found": {"type": "string"}}, "required": ["found"]}
    turns = [calls(READ, ("box__read", {"name": "a", "times": "2"})), "not data", '{"found": "it"}']
    async with open_asker(*turns) as (host, script, ask):
        answer = await ask("box.read", output_schema=schema, system="Be exact.")
        assert (answer["data"], answer["iterations"], answer["error"]) == ({"found": "it"}, 3, None)
        assert answer["tool_calls"] == [
            {"name": "box.read", "arguments": {"name": "a"}, "error": None},
            {"name": "box.read", "arguments": {"name": "a", "times": "2"}, "error": None},
        ]
        assert answer["usage"]["input"] > 90
        assert [one.name for one in script.requests[0].tools] == ["box__read"]
        results = [one for one in script.requests[1].messages if one.role == "tool"]
        assert [one.text for one in results] == ["content of a"] * 2
        effect = (await query(host.ledger.folder, op="llm.agent", limit=1))[0]
        found = await query(host.ledger.folder, limit=50)
        children = sorted(one.op for one in found if one.within == effect.effect)
        assert children == ["llm.generate"] * 3 + ["skill.call"] * 2


async def test_tools_have_no_more_rights_than_the_caller_and_no_more_than_their_skill(open_asker):
    turns = [calls(READ, ("box__read", {"name": "b"})), "done"]
    async with open_asker(*turns) as (_, script, ask):
        answer = await ask("box.read")
        assert [one["error"] for one in answer["tool_calls"]] == [None, "skill.raised"]
        assert hosts.OPENED == ["a"]
        [_, refused] = [one for one in script.requests[1].messages if one.role == "tool"]
        assert refused.is_error
        assert (
            "`vault:name=b` is not granted (granted: llm:model=scripted:test,tool=box.* vault:name=a)" in refused.text
        )
    narrow = {**GRANTS, "box": ["vault:name=x", "llm"]}
    async with open_asker(calls(READ), "done", grants=narrow) as (_, script, ask):
        answer = await ask("box.read")
        assert [one["error"] for one in answer["tool_calls"]] == ["grant.required"]
    assert hosts.OPENED == ["a"]


async def test_tools_that_are_not_granted_or_do_not_exist_are_refused_before_the_model_is_called(open_asker):
    grants = {**GRANTS, "asker": ["llm:model=scripted:test,tool=box.read", "vault:name=a"]}
    async with open_asker(grants=GRANTS) as (host, script, ask):
        unknown = await ask("box.red")
        assert (unknown["code"], unknown["kind"]) == ("llm.tool", "ModelToolUnknown")
        assert "unknown tool `box.red` (did you mean `box.read`?)" in unknown["message"]
        assert (await ask("private.read"))["code"] == "op.denied"
        assert (await ask("box read"))["code"] == "op.params"
        free = CallRequest("asker.ask", {"tools": ["private.read"]}, grants=("llm",))
        assert "is not for models" in (await host.run(free)).output["message"]
        [one] = await host.call("asker.definitions", tools=["box.read"])
        assert (one["name"], one["description"]) == ("box__read", "Read from the vault.")
        assert one["parameters"]["properties"]["name"] == {"description": "what to read", "type": "string"}
        limited = CallRequest("asker.ask", {"tools": ["box.fail"]}, grants=tuple(grants["asker"]))
        assert (await host.run(limited)).output["code"] == "op.denied"
        assert script.requests == []


async def test_errors_of_tools_are_shown_to_the_model(open_asker):
    broken = ToolCallPart(id="x", name="box__read", arguments={}, problem="the arguments are too long")
    turns = [
        calls(
            ("box__fail", {}),
            ("box__red", {}),
            ("other__read", {}),
            ("box__read", {"nam": 1}),
            broken,
            ("box__long", {}),
        ),
        "done",
    ]
    async with open_asker(*turns) as (_, script, ask):
        answer = await ask("box.fail", "box.read", "box.long")
        assert [(one["name"], one["error"]) for one in answer["tool_calls"]] == [
            ("box.fail", "skill.raised"),
            ("box__red", "tool.unknown"),
            ("other__read", "tool.unknown"),
            ("box.read", "call.arguments"),
            ("box.read", "call.arguments"),
            ("box.long", None),
        ]
        texts = [one.text for one in script.requests[1].messages if one.role == "tool"]
        assert "the box is empty" in texts[0]
        assert "did you mean `box__read`" in texts[1]
        assert "`name`" in texts[3]
        assert "the arguments are too long" in texts[4]
        assert len(texts[5]) < 41_000
        assert "60,002 characters omitted" in texts[5] or "60,000 characters omitted" in texts[5]


async def test_model_that_calls_tools_for_ever_is_stopped(open_asker):
    many = calls(*[("box__fail", {})] * 30)
    async with open_asker(many, calls(("box__fail", {})), repeat=True) as (_, script, ask):
        stopped = await ask("box.fail", max_iterations=3)
        assert (stopped["code"], stopped["kind"]) == ("llm.agent", "LlmAgentError")
        assert (stopped["phase"], stopped["iteration"], stopped["cause"]) == ("iterations", 3, "llm.agent")
        assert stopped["tokens"] == 300
        assert len(script.requests) == 3
        partial = await ask("box.fail", max_iterations=1, partial=True)
        assert partial["error"]["details"]["phase"] == "iterations"
        assert partial["iterations"] == 1


async def test_number_of_calls_in_one_answer_is_limited(open_asker):
    async with open_asker(calls(*[READ] * 18), "done") as (_, _script, ask):
        answer = await ask("box.read")
        assert [one["error"] for one in answer["tool_calls"]] == [None] * 16 + ["llm.calls"] * 2
        assert len(hosts.OPENED) == 16


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_budget_deadline_and_failures_of_the_model_end_the_loop(open_asker):
    prices = Prices(input=1_000, output=1_000)
    hang = Hang()
    turns = [
        *[calls(READ)] * 2,
        *[calls(READ)] * 2,
        *[calls(READ)] * 2,
        ProviderRefused("scripted", "no", status=400),
        hang,
    ]
    async with open_asker(*turns, prices=prices) as (host, _, ask):
        tokens = await ask("box.read", budget={"tokens": 150})
        assert (tokens["phase"], tokens["iteration"], tokens["tokens"]) == ("budget", 2, 200)
        money = await ask("box.read", budget={"money": 0.15})
        assert (money["phase"], money["money"]) == ("budget", 0.2)
        granted = CallRequest("asker.ask", {"tools": ["box.read"]}, grants=("llm:tokens=150", "vault"))
        found = (await host.run(granted)).output
        assert (found["phase"], found["iteration"], found["cause"]) == ("model", 3, "llm.budget")
        failed = await ask("box.read")
        assert (failed["phase"], failed["iteration"], failed["cause"]) == ("model", 1, "provider.refused")
        late = await ask("box.read", timeout=0.3)
        assert (late["phase"], late["iteration"]) == ("deadline", 1)
        assert "longer than 0.3 s (in phase `model`)" in late["message"]
        assert (await query(host.ledger.folder, op="llm.generate", limit=1))[0].status == "cancelled"


async def test_recursion_is_limited_and_shares_the_budget_of_the_caller(open_asker):
    deeper = calls(("box__deeper", {"level": 1}))
    async with open_asker(*[deeper] * 5, "5", "4", "3", "2", "1") as (host, script, ask):
        answer = await ask("box.deeper")
        assert answer["content"] == "1"
        assert len(script.requests) == 10
        texts = [one.text for one in script.requests[5].messages if one.role == "tool"]
        assert "the limit `nested_calls` of 4 tool calls within tool calls has been reached" in texts[0]
    async with open_asker(deeper, deeper, deeper, "no more") as (host, script, _):
        request = CallRequest("asker.ask", {"tools": ["box.deeper"]}, grants=("llm:tokens=150",))
        assert (await host.run(request)).output["cause"] == "llm.budget"
        assert len(script.requests) == 2


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_call_with_a_key_that_was_cancelled_continues_without_repeating_what_is_recorded(open_asker):
    hang = Hang()
    turns = [calls(READ), calls(("box__hang", {"name": "a"})), "all done"]
    async with open_asker(calls(READ), hang, *turns[1:]) as (_, script, ask):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: ask("box.read", "box.hang", key="k"))
            await hang.reached.wait()
            tasks.cancel_scope.cancel()
        assert (hosts.OPENED, len(script.requests)) == (["a"], 2)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: ask("box.read", "box.hang", key="k"))
            with anyio.fail_after(20):
                await hosts.opened(2)
            tasks.cancel_scope.cancel()
        assert len(script.requests) == 3

        with anyio.move_on_after(1.0) as scope:  # the tool runs again, and its effect is answered from the record
            await ask("box.read", "box.hang", key="k")
        assert scope.cancelled_caught
        assert (hosts.OPENED, len(script.requests)) == (["a", "a"], 3)


async def test_completed_loop_is_answered_from_the_record(open_asker):
    async with open_asker(calls(READ), "done") as (_, script, ask):
        first = await ask("box.read", key="k")
        assert await ask("box.read", key="k") == first
        assert (hosts.OPENED, len(script.requests)) == (["a"], 2)
