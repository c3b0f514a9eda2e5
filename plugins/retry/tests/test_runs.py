"""Whole runs of an agent over a provider that fails as a test says."""

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


PASSING = {
    "rate_limit": refused(429, **{"retry-after": "0"}),
    "overloaded": refused(529),
    "overloaded in a stream": refused(200, json.dumps({"error": {"type": "overloaded_error"}})),
    "server_error": refused(500),
    "timeout": ProviderTimeout(NAME, "silent"),
    "stream_broken": StreamBroken(NAME, "cut"),
    "broken after two deltas": Broken(after=2),
    "unreachable": ProviderUnreachable(NAME, "no answer from https://far.example: unreachable"),
}
LASTING = {
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
    """Runs ``talk`` with an agent whose model plays these turns; the waits are 0."""

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
            asked=scripted.requests,
            stored=stored,
            events=[event.hook for event in events if event.hook.startswith(("retry_", "model_"))],
            error=result.error or {},
        )

    return run


def say_hello(agent):
    return agent.invoke("hello")


@pytest.mark.parametrize("failures", [1, 2, 3])
@pytest.mark.parametrize("kind", PASSING)
async def test_a_failure_that_passes_is_outlived_with_the_same_history_each_time(run_agent, kind, failures):
    done = await run_agent([PASSING[kind]] * failures + ["hi"], say_hello)
    assert (done.result.status, done.result.text) == ("completed", "hi")
    assert len(done.asked) == failures + 1
    assert all(request.messages == done.asked[0].messages for request in done.asked)
    assert done.stored == ["user", "assistant"]
    assert done.events == ["retry_start"] * failures + ["retry_end"]


@pytest.mark.parametrize("kind", PASSING)
async def test_a_failure_that_does_not_pass_is_given_up_after_three_repetitions(run_agent, kind):
    done = await run_agent([PASSING[kind]] * 4, say_hello)
    assert (done.result.status, len(done.asked)) == ("failed", 4)
    assert done.error["hint"]
    assert done.stored == ["user"]


@pytest.mark.parametrize("kind", LASTING)
async def test_a_failure_that_lasts_is_not_repeated(run_agent, kind):
    done = await run_agent([LASTING[kind]], say_hello)
    assert (done.result.status, len(done.asked)) == ("failed", 1)
    assert done.error["kind"] == kind
    assert done.error["hint"] == hint_of(ErrorKind(kind), FailedCall.read({}), f"{NAME}:one")
    assert done.stored == ["user"]


async def test_an_unknown_failure_is_repeated_once(run_agent):
    done = await run_agent([ProviderError(NAME, "what?")] * 2, say_hello)
    assert (done.result.status, len(done.asked)) == ("failed", 2)


async def test_an_empty_answer_is_repeated(run_agent):
    done = await run_agent([" ", "", "hi"], say_hello)
    assert (done.result.text, len(done.asked)) == ("hi", 3)


async def test_a_run_that_failed_goes_on_where_it_was(run_agent):
    async def talk(agent):
        failed = await agent.invoke("hello")
        assert failed.status == "failed"
        return await agent.resume()

    done = await run_agent([refused(401), "hi"], talk)
    assert (done.result.status, done.result.text) == ("completed", "hi")
    assert done.stored == ["user", "assistant"]


async def test_a_limit_that_resets_later_parks_the_run(run_agent):
    async def talk(agent):
        parked = await agent.invoke("hello")
        assert parked.status == "parked"
        assert parked.resume_at is not None
        assert "resume the session then" in parked.error["hint"]
        return await agent.resume()

    done = await run_agent([refused(429, **{"retry-after": "9999"}), "hi"], talk)
    assert (done.result.status, len(done.asked)) == ("completed", 2)
    assert done.stored == ["user", "assistant"]


async def test_the_next_model_is_asked_when_one_is_given_up(run_agent):
    done = await run_agent([refused(401), "hi"], say_hello, agent={"fallbacks": [f"{NAME}:two"]})
    assert [request.model for request in done.asked] == ["one", "two"]
    assert done.result.status == "completed"
    assert done.events == ["model_select"]


async def test_a_tool_runs_once_however_often_the_model_fails_after_it(run_agent):
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
    assert all(request.messages == done.asked[1].messages for request in done.asked[1:])


async def test_a_conversation_that_is_too_long_is_made_shorter_and_sent_again(run_agent):
    async def talk(agent):
        for _ in range(3):
            await agent.invoke("tell me more " * 40)
        return await agent.invoke("and now?")

    turns = ["much " * 400] * 3 + [refused(400, "context_length_exceeded"), "short"]
    done = await run_agent(turns, talk, agent={"compaction": {"keep": 200}})
    assert (done.result.status, done.result.text) == ("completed", "short")
    assert len(done.asked[-1].messages) < len(done.asked[-2].messages)
    assert done.asked[-1].messages[-1].text == "and now?"


async def test_a_conversation_that_stays_too_long_is_given_up(run_agent):
    async def talk(agent):
        for _ in range(3):
            await agent.invoke("tell me more " * 40)
        return await agent.invoke("and now?")

    turns = ["much " * 400] * 3 + [refused(413)] * 2
    done = await run_agent(turns, talk, agent={"compaction": {"keep": 200}})
    assert (done.result.status, len(done.asked)) == ("failed", 5)
    assert "larger context window" in done.error["hint"]
