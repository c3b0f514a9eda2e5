"""A known secret from the user, a model, a server, a tool or a plugin appears in no file, event or log."""

import json
import logging

import pytest
from attrs import asdict, evolve
from sideband import Plugin
from sideband.hooks import Deny, Patch, Replace, hookimpl
from sideband.messages import ToolCallPart, Usage
from sideband.providers import ProviderRefused, TextDelta, ThinkingDelta, ToolCallDelta
from sideband.tools import ToolOutput, tool
from sideband_scripted import Scripted, Turn

pytestmark = pytest.mark.anyio

SECRET = "s3cr3t-c4n4ry-v4lu3"
MASK = "[redacted:canary]"


@pytest.fixture
def leaks(tmp_path):
    """Return a function that returns the files in the home folder that contain the secret."""

    def find():
        files = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
        assert files
        return [path.name for path in files if SECRET.encode() in path.read_bytes()]

    return find


@pytest.fixture
def watched(stage, kit, caplog):
    """Return a function that creates an agent and the list of its events."""
    caplog.set_level(logging.DEBUG)

    def open_stage(turns, *plugins, **options):
        events = []
        made = stage(turns, kit.echo, *plugins, on_event=events.append, **options)
        return made, events

    return open_stage


def as_json(event):
    return json.dumps(asdict(event), default=str)


async def watch(watched, leaks, caplog, turns, *plugins, prompt="hi", **options):
    made, events = watched(turns, *plugins, **options)
    async with made as agent:
        agent.host.redactor.protect(SECRET, "canary")
        result = await agent.invoke(prompt)
        name, sessions = agent.session.id, agent.sessions
        exported = "".join(await sessions.export(name))
        requests = str(agent.scripted.requests)
    assert [type(event).__name__ for event in events if SECRET in as_json(event)] == []
    assert SECRET not in exported
    assert SECRET not in str(result)
    assert SECRET not in caplog.text
    assert leaks() == []
    return result, requests, events


async def test_prompt_of_the_user_is_redacted(watched, leaks, caplog):
    result, requests, _ = await watch(watched, leaks, caplog, ["ok"], prompt=f"use {SECRET} for it")
    assert result.status == "completed"
    assert SECRET not in requests
    assert f"use {MASK} for it" in requests


async def test_steering_message_is_redacted(watched, leaks, caplog, kit):
    @tool("nudge")
    async def nudge(params: kit.Text, ctx) -> str:
        """Steer."""
        ctx.steer(f"and {SECRET}")
        return "done"

    turns = [Turn(tool_calls=[("nudge", {})]), "ok"]
    _, requests, _ = await watch(watched, leaks, caplog, turns, Plugin("tool", "nudge", nudge))
    assert f"and {MASK}" in requests


async def test_text_thinking_and_tool_calls_of_a_model_are_redacted(watched, leaks, caplog):
    turn = Turn(f"it is {SECRET}", thinking=f"hm, {SECRET}", tool_calls=[("echo", {"text": f"x{SECRET}y"})])
    result, _, events = await watch(watched, leaks, caplog, [turn, f"again {SECRET}"])
    parts = [event.delta for event in events if type(event).__name__ == "MessageUpdate"]
    assert result.text == f"again {MASK}"
    for kind in ("text", "thinking", "tool_call"):
        texts = "".join(part.get("text", part.get("arguments")) for part in parts if part["type"] == kind)
        assert MASK in texts
        assert SECRET not in texts


async def test_text_streamed_letter_by_letter_is_redacted(watched, leaks, caplog):
    class Slow(Scripted):
        async def stream(self, request, ctx):
            for one in f"a {SECRET} b":
                yield TextDelta(text=one)
            for one in SECRET:
                yield ThinkingDelta(text=one)
            yield ToolCallDelta(index=0, name="echo")
            for one in f'{{"text": "{SECRET}"}}':
                yield ToolCallDelta(index=0, arguments=one)
            async for event in super().stream(request, ctx):
                if event.type == "finished":
                    yield event

    _, _, events = await watch(watched, leaks, caplog, [], scripted=Slow([f"a {SECRET} b"]))
    parts = [event.delta for event in events if type(event).__name__ == "MessageUpdate"]
    joined = "".join(part.get("text", part.get("arguments")) for part in parts)
    assert joined == f'a {MASK} b{MASK}{{"text": "{MASK}"}}'


async def test_output_metadata_and_progress_of_a_tool_are_redacted(watched, leaks, caplog, kit):
    @tool("leak")
    async def leak(params: kit.Text, ctx) -> ToolOutput:
        """Leak."""
        await ctx.progress(message=f"now {SECRET}")
        return ToolOutput({"token": SECRET, SECRET: 1}, metadata={"note": SECRET})

    turns = [Turn(tool_calls=[("leak", {})]), "ok"]
    await watch(watched, leaks, caplog, turns, Plugin("tool", "leak", leak))


async def test_stored_long_results_are_redacted(watched, leaks, caplog, kit):
    @tool("leak")
    async def leak(params: kit.Text, ctx) -> str:
        """Leak."""
        return f"{'x' * 100_000} {SECRET} {'y' * 100_000}"

    turns = [Turn(tool_calls=[("leak", {})]), "ok"]
    await watch(watched, leaks, caplog, turns, Plugin("tool", "leak", leak))


async def test_error_of_a_tool_is_redacted(watched, leaks, caplog, kit):
    @tool("leak")
    async def leak(params: kit.Text, ctx) -> str:
        """Leak."""
        raise ValueError(f"{'x' * 40}{SECRET}")

    turns = [Turn(tool_calls=[("leak", {})]), "ok"]
    await watch(watched, leaks, caplog, turns, Plugin("tool", "leak", leak))


async def test_invalid_arguments_are_redacted(watched, leaks, caplog):
    turns = [Turn(tool_calls=[("echo", {"text": [SECRET]})]), Turn(tool_calls=[(SECRET, {"a": SECRET})]), "ok"]
    await watch(watched, leaks, caplog, turns)


async def test_unparsable_arguments_are_redacted(watched, leaks, caplog):
    part = ToolCallPart(id="c1", name="echo", problem=f"expected a JSON object: {SECRET}")
    await watch(watched, leaks, caplog, [Turn(tool_calls=[part]), "ok"])


async def test_error_response_of_a_server_is_redacted(watched, leaks, caplog, retry):
    refusal = ProviderRefused(
        "scripted",
        f"status 401: incorrect key {SECRET}",
        status=401,
        body=json.dumps({"error": {"message": f"{'x' * 3_990}{SECRET}"}}),
        headers={"x-request-id": SECRET},
        hint=f"not {SECRET}",
    )
    result, _, _ = await watch(watched, leaks, caplog, [refusal], retry)
    assert result.status == "failed"
    assert SECRET[:8] not in str(result.error)


async def test_results_changed_by_plugins_are_redacted(watched, leaks, caplog):
    class Chatty:
        @hookimpl
        def tool_result(self, event):
            return Patch(content=f"{event.content} {SECRET}", note=f"see {SECRET}")

    turns = [Turn(tool_calls=[("echo", {"text": "ha"})]), "ok"]
    await watch(watched, leaks, caplog, turns, Plugin("guard", "chatty", Chatty))


async def test_answers_and_requests_changed_by_plugins_are_redacted(watched, leaks, caplog, kit):
    def after_provider_response(event):
        return evolve(event, response={**event.response, "content": f"changed {SECRET}"})

    def ephemeral(event):
        return [{"role": "unknown", "content": SECRET}]

    def before_provider_request(event):
        return evolve(event, messages=[{"role": "user", "content": {"x": SECRET}}])

    for function in (after_provider_response, ephemeral, before_provider_request):
        hooks = kit.hooks(**{function.__name__: function})
        await watch(watched, leaks, caplog, ["ok"], Plugin("hook", "chatty", hooks))


async def test_arguments_replaced_by_a_guard_are_redacted(watched, leaks, caplog, kit):
    used = []

    @tool("use")
    async def use(params: kit.Text, ctx) -> str:
        """Use it."""
        used.append(params.text)
        return "done"

    class Filling:
        @hookimpl
        def tool_call(self, event):
            return Replace({"text": SECRET})

    turns = [Turn(tool_calls=[("use", {"text": "$token"})]), "ok"]
    await watch(watched, leaks, caplog, turns, Plugin("guard", "filling", Filling), Plugin("tool", "use", use))
    assert used == [SECRET]


async def test_reason_of_a_halting_guard_is_redacted(watched, leaks, caplog):
    class Strict:
        @hookimpl
        def tool_call(self, event):
            return Deny(f"it contains {SECRET}", halt=True)

    turns = [Turn(tool_calls=[("echo", {"text": "ha"})]), "ok"]
    result, _, _ = await watch(watched, leaks, caplog, turns, Plugin("guard", "strict", Strict))
    assert result.error["code"] == "agent.halted"


async def test_session_data_of_plugins_is_redacted(watched, leaks, caplog, kit):
    @tool("note")
    async def note(params: kit.Text, ctx) -> str:
        """Note."""
        await ctx.session.append_custom("note", {"text": [SECRET]})
        await ctx.session.rename(f"about {SECRET}")
        return "done"

    turns = [Turn(tool_calls=[("note", {})]), "ok"]
    await watch(watched, leaks, caplog, turns, Plugin("tool", "note", note))


async def test_token_count_equal_to_a_secret_does_not_fail_later_runs(stage, kit):
    turns = [Turn("a", usage=Usage(input=31_415_926)), "b"]
    async with stage(turns, kit.echo) as agent:
        agent.host.redactor.protect("31415926", "pin")
        first = await agent.invoke("hi")
        kit.assert_valid(agent.session.messages())
        second = await agent.invoke("hi")
    assert first.status in ("completed", "failed")
    assert second.status == "completed"
