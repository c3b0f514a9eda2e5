"""Runs of an agent with a provider whose failures are scripted."""

import json
from types import SimpleNamespace

import pytest
import sideband_llm.plugin
import sideband_retry.plugin
import sideband_store_sqlite.plugin
from pydantic import BaseModel
from sideband import Host, Plugin
from sideband.providers import ProviderError, ProviderRefused, ProviderTimeout, ProviderUnreachable, StreamBroken
from sideband.tools import ToolContext, tool
from sideband_agent import Agent
from sideband_retry._classes import ErrorKind
from sideband_retry._failed_call import FailedCall
from sideband_retry._hints import hint_of
from sideband_scripted import Broken, Scripted, Turn

pytestmark = pytest.mark.anyio

NAME = "scripted"


def refused(status, body="", **headers):
    return ProviderRefused(NAME, f"status {status}", status=status, body=body, headers=headers)


TEMPORARY = {
    "rate_limit": refused(429, **{"retry-after": "0"}),
    "overloaded": refused(529),
    "overloaded in a stream": refused(200, json.dumps({"error": {"type": "overloaded_error"}})),
    "server_error": refused(500),
    "timeout": ProviderTimeout(NAME, "silent"),
    "stream_broken": StreamBroken(NAME, "cut"),
    "broken after two deltas": Broken(after=2),
    "unreachable": ProviderUnreachable(NAME, "no answer from https://far.example: unreachable"),
}
PERMANENT = {
    "auth": refused(403),
    "auth_permanent": refused(401, "invalid api key"),
    "billing": refused(402),
    "model_not_found": refused(404, "model not found"),
    "content_blocked": refused(400, "content_filter"),
    "format_error": refused(400),
    "context_overflow": refused(400, "context_length_exceeded"),
}


class Mail(BaseModel):
    to: str


@pytest.fixture
def run_agent(tmp_path):
    """Run ``talk`` with an agent whose model plays these turns, without waits."""

    async def run(turns, talk, *, tools=(), agent=None, **retry):
        scripted = Scripted(turns)
        plugins = [
            Plugin(kind="store", name="sqlite", value=sideband_store_sqlite.plugin),
            Plugin(kind="op", name="llm", value=sideband_llm.plugin),
            Plugin(kind="provider", name=NAME, value=scripted),
            Plugin(kind="hook", name="retry", value=sideband_retry.plugin),
            *(Plugin(kind="tool", name=one.name, value=one) for one in tools),
        ]
        settings = {"plugins": {"retry": {"base": 0, **retry}}, "agent": agent or {}}
        events = []
        async with (
            Host(home=tmp_path, plugins=plugins, autoload=False, settings=settings) as host,
            Agent(host, model=f"{NAME}:one", on_event=events.append) as one,
        ):
            result = await talk(one)
            stored = [message.role for message in one.session.messages()]
        return SimpleNamespace(
            result=result,
            requests=scripted.requests,
            stored=stored,
            events=[event.hook for event in events if event.hook.startswith(("retry_", "model_"))],
            error=result.error or {},
        )

    return run


def say_hello(agent):
    return agent.invoke("hello")


@pytest.mark.parametrize("kind", TEMPORARY)
async def test_temporary_failure_is_retried_with_the_same_history(run_agent, kind):
    failures = 2
    done = await run_agent([TEMPORARY[kind]] * failures + ["hi"], say_hello)
    assert (done.result.status, done.result.text) == ("completed", "hi")
    assert len(done.requests) == failures + 1
    assert all(request.messages == done.requests[0].messages for request in done.requests)
    assert done.stored == ["user", "assistant"]
    assert done.events == ["retry_start"] * failures + ["retry_end"]


@pytest.mark.parametrize("kind", TEMPORARY)
async def test_temporary_failure_is_given_up_after_three_retries(run_agent, kind):
    done = await run_agent([TEMPORARY[kind]] * 4, say_hello)
    assert (done.result.status, len(done.requests)) == ("failed", 4)
    assert done.error["hint"]
    assert done.stored == ["user"]


@pytest.mark.parametrize("kind", PERMANENT)
async def test_permanent_failure_is_not_retried(run_agent, kind):
    done = await run_agent([PERMANENT[kind]], say_hello)
    assert (done.result.status, len(done.requests)) == ("failed", 1)
    assert done.error["kind"] == kind
    assert done.error["hint"] == hint_of(ErrorKind(kind), FailedCall.read({}), f"{NAME}:one")
    assert done.stored == ["user"]


async def test_unknown_failure_is_retried_once(run_agent):
    done = await run_agent([ProviderError(NAME, "what?")] * 2, say_hello)
    assert (done.result.status, len(done.requests)) == ("failed", 2)


async def test_empty_answer_is_retried(run_agent):
    done = await run_agent([" ", "", "hi"], say_hello)
    assert (done.result.text, len(done.requests)) == ("hi", 3)


async def test_failed_run_is_resumed(run_agent):
    async def talk(agent):
        failed = await agent.invoke("hello")
        assert failed.status == "failed"
        return await agent.resume()

    done = await run_agent([refused(401), "hi"], talk)
    assert (done.result.status, done.result.text) == ("completed", "hi")
    assert done.stored == ["user", "assistant"]


async def test_limit_that_resets_later_parks_the_run(run_agent):
    async def talk(agent):
        parked = await agent.invoke("hello")
        assert parked.status == "parked"
        assert parked.resume_at is not None
        assert "resume the session then" in parked.error["hint"]
        return await agent.resume()

    done = await run_agent([refused(429, **{"retry-after": "9999"}), "hi"], talk)
    assert (done.result.status, len(done.requests)) == ("completed", 2)
    assert done.stored == ["user", "assistant"]


async def test_next_model_is_used_when_one_is_given_up(run_agent):
    done = await run_agent([refused(401), "hi"], say_hello, agent={"fallbacks": [f"{NAME}:two"]})
    assert [request.model for request in done.requests] == ["one", "two"]
    assert done.result.status == "completed"
    assert done.events == ["model_select"]


async def test_tool_runs_once_despite_later_model_failures(run_agent):
    sent = []

    @tool("mail")
    async def mail(params: Mail, ctx: ToolContext) -> str:
        """Send a mail."""
        sent.append(params.to)
        return "sent"

    call = Turn(tool_calls=[("mail", {"to": "a"})])
    done = await run_agent([call, refused(500), Broken(after=1), refused(529), "done"], say_hello, tools=[mail])
    assert (done.result.status, sent) == ("completed", ["a"])
    assert done.stored == ["user", "assistant", "tool", "assistant"]
    assert all(request.messages == done.requests[1].messages for request in done.requests[1:])


async def test_overlong_conversation_is_compacted_and_sent_again(run_agent):
    async def talk(agent):
        for _ in range(3):
            await agent.invoke("tell me more " * 40)
        return await agent.invoke("and now?")

    turns = ["much " * 400] * 3 + [refused(400, "context_length_exceeded"), "short"]
    done = await run_agent(turns, talk, agent={"compaction": {"keep": 200}})
    assert (done.result.status, done.result.text) == ("completed", "short")
    assert len(done.requests[-1].messages) < len(done.requests[-2].messages)
    assert done.requests[-1].messages[-1].text == "and now?"


async def test_conversation_still_too_long_after_compaction_is_given_up(run_agent):
    async def talk(agent):
        for _ in range(3):
            await agent.invoke("tell me more " * 40)
        return await agent.invoke("and now?")

    turns = ["much " * 400] * 3 + [refused(413)] * 2
    done = await run_agent(turns, talk, agent={"compaction": {"keep": 200}})
    assert (done.result.status, len(done.requests)) == ("failed", 5)
    assert "larger context window" in done.error["hint"]
