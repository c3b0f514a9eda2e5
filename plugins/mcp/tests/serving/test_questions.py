"""Approvals and questions of tools, which the client shows to its user as forms, in both eras of the protocol."""

import anyio
import pytest
import sideband_guard_approval.plugin
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitResult, InputRequiredResult
from sideband import Plugin
from sideband.approvals import Approval
from sideband.hooks import Ask

pytestmark = pytest.mark.anyio

NEWER = "2026-07-28"
DECLINED, DISMISSED = ElicitResult(action="decline"), ElicitResult(action="cancel")


@pytest.fixture
def asking(guard):
    """A guard that asks about each call of `change`."""
    guard.decide = lambda event: Ask("May it?", lasting=True) if event.tool == "things.change" else None
    return guard


async def change(client, text="it"):
    return await client.call_tool("things__change", {"text": text})


async def test_user_is_shown_what_would_happen_and_the_choices(serving, mode, asking):
    async with serving() as one, one.client(mode) as client:
        one.user.answers = [{"answer": "once"}]
        assert (await change(client, "a\u202eb")).content[0].text == "changed a\u202eb"
        (shown,) = one.user.asked
        assert "things.change: May it?" in shown.message
        assert 'text = "a\\u202eb"' in shown.message
        assert "level: restricted" in shown.message
        assert shown.requested_schema["properties"]["answer"]["enum"] == ["once", "session", "no"]
        (record,) = await one.records()
        assert any(each.get("by", "").startswith("the MCP client") for each in record.decisions)


async def test_approval_for_one_call_admits_one(serving, mode, asking):
    async with serving() as one, one.client(mode) as client:
        one.user.answers = [{"answer": "once"}, {"answer": "no"}]
        assert not (await change(client)).is_error
        assert (await change(client)).is_error


async def test_approval_for_the_session_admits_further_calls_of_this_client_alone(serving, mode, asking):
    async with serving() as one:
        async with one.client(mode) as client:
            one.user.answers = [{"answer": "session"}]
            assert not (await change(client)).is_error
            assert not (await change(client, "more")).is_error
            assert len(one.user.asked) == 1
        await one.sessions.close()
        async with one.client(mode) as client:
            one.user.answers = [{"answer": "no"}]
            assert (await change(client)).is_error


@pytest.mark.parametrize(
    "answer",
    [{"answer": "no"}, DECLINED, DISMISSED, {"answer": "always"}, {}],
    ids=["no", "declined", "dismissed", "not offered", "empty"],
)
async def test_anything_but_a_yes_is_a_no(serving, mode, asking, answer):
    async with serving() as one, one.client(mode) as client:
        one.user.answers = [answer]
        result = await change(client)
        assert result.is_error
        (record,) = await one.records()
        assert record.status == "denied"


async def test_client_that_cannot_ask_learns_how_to_approve(serving, mode, asking):
    async with serving() as one, one.client(mode, asks=False) as client:
        result = await change(client)
        assert result.is_error
        (waiting,) = await one.host.approvals.list()
        assert f"sideband approvals approve {waiting.request.id}" in result.content[-1].text
        await one.host.approvals.answer(waiting.request.id, Approval("allow"))
        assert (await change(client)).content[0].text == "changed it"


@pytest.mark.parametrize("asks", [True, False], ids=["asks", "cannot ask"])
async def test_change_needs_an_approval_by_default(serving, mode, asks):
    approval = Plugin("guard", "approval", sideband_guard_approval.plugin)
    async with serving(plugins=[approval]) as one, one.client(mode, asks=asks) as client:
        one.user.answers = [{"answer": "no"}]
        assert (await change(client)).is_error
        assert not (await client.call_tool("things__echo", {})).is_error


async def test_request_that_is_too_long_to_be_shown_is_refused(serving, mode, asking):
    async with serving() as one, one.client(mode) as client:
        result = await change(client, "x" * 20_000)
        assert "too long to be shown" in result.content[0].text
        assert one.user.asked == []


async def test_unanswered_question_ends_after_its_time(serving, mode, asking):
    async def never():
        await anyio.sleep_forever()

    async with serving(question_seconds=0.05) as one, one.client(mode) as client:
        one.user.answers = [never]
        if mode == NEWER:  # the client waits for its own user
            result = await client.session.call_tool("things__change", {"text": "it"}, allow_input_required=True)
            call = Rounds(client)
            while isinstance(result := await call(request_state=result.request_state), InputRequiredResult):  # noqa: ASYNC110
                await anyio.sleep(0.01)
        else:
            result = await change(client)
        assert "did not answer within 0.05 s" in result.content[0].text


async def test_cancelled_question_cancels_the_call(serving, mode, asking):
    shown = anyio.Event()

    async def leave():
        shown.set()
        await anyio.sleep_forever()

    async with serving(question_seconds=0.2) as one, one.client(mode) as client:
        one.user.answers = [leave]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(change, client)
            await shown.wait()
            tasks.cancel_scope.cancel()
        one.user.answers = [{"answer": "no"}]
        await change(client)
        assert {each.status for each in await one.records()} <= {"cancelled", "denied"}


async def test_answer_elsewhere_ends_the_question(serving, mode, asking):
    async with serving() as one, one.client(mode) as client:

        async def answer_elsewhere():
            (waiting,) = [each for each in await one.host.approvals.list() if each.state == "open"]
            await one.host.approvals.answer(waiting.request.id, Approval("allow", "session"))
            if mode != NEWER:  # the server withdraws the question
                await anyio.sleep_forever()
            return DISMISSED

        one.user.answers = [answer_elsewhere]
        assert (await change(client)).content[0].text == "changed it"


async def test_tool_asks_the_user(serving, mode):
    async with serving() as one, one.client(mode) as client:
        one.user.answers = [{"choice_1": "9443", "other_2": "web"}]
        assert (await client.call_tool("things__ask", {})).content[0].text == "('9443',)  web"
        (shown,) = one.user.asked
        assert shown.requested_schema["properties"]["choice_1"]["enum"] == ["8443", "9443"]
        assert "they allow nothing" in shown.message


async def test_user_may_answer_a_tool_with_another_text(serving, mode):
    async with serving() as one, one.client(mode) as client:
        one.user.answers = [{"choice_1": "9443", "other_1": "any"}]
        assert (await client.call_tool("things__ask", {})).content[0].text == "() any "


async def test_questions_at_the_same_time_are_asked_one_after_the_other(serving, mode):
    async with serving(question_seconds=5) as one, one.client(mode) as client:
        one.user.answers = [{"other_1": "a"}, {"other_1": "b"}]
        assert (await client.call_tool("things__ask_both", {})).content[0].text == "a b"


async def test_tool_cannot_ask_through_a_client_without_forms(serving, mode):
    async with serving() as one, one.client(mode, asks=False) as client:
        assert (await client.call_tool("things__ask", {})).is_error


class Rounds:
    """The requests of a newer client, one at a time."""

    def __init__(self, client):
        self.client = client

    async def __call__(self, tool="things__change", text="it", **fields):
        return await self.client.session.call_tool(tool, {"text": text}, allow_input_required=True, **fields)


def answered(result, **content):
    (key,) = result.input_requests
    return {
        "request_state": result.request_state,
        "input_responses": {key: ElicitResult(action="accept", content=content)},
    }


async def test_newer_client_continues_the_same_call(serving, asking):
    async with serving() as one, one.client(NEWER) as client:
        call = Rounds(client)
        asked = await call()
        assert (await call(**answered(asked, answer="once"))).content[0].text == "changed it"
        assert len(await one.records()) == 1


@pytest.mark.parametrize("other", [{"text": "other"}, {"tool": "things__echo"}], ids=["arguments", "tool"])
async def test_approval_is_bound_to_the_call(serving, asking, other):
    async with serving() as one, one.client(NEWER) as client:
        call = Rounds(client)
        asked = await call()
        with pytest.raises(MCPError, match="requestState"):
            await call(**answered(asked, answer="once"), **other)


async def test_forged_state_is_refused(serving, asking):
    async with serving() as one, one.client(NEWER) as client:
        with pytest.raises(MCPError, match="requestState"):
            await Rounds(client)(request_state="0" * 16)


async def test_used_state_is_refused(serving, asking):
    async with serving() as one, one.client(NEWER) as client:
        call = Rounds(client)
        answer = answered(await call(), answer="once")
        await call(**answer)
        with pytest.raises(MCPError, match="has ended"):
            await call(**answer)


async def test_newer_client_that_comes_back_without_an_answer_is_asked_again(serving, asking):
    async with serving() as one, one.client(NEWER) as client:
        call = Rounds(client)
        asked = await call()
        again = await call(request_state=asked.request_state)
        assert again.input_requests == asked.input_requests
        assert not (await call(**answered(again, answer="once"))).is_error


async def test_abandoned_calls_do_not_count_for_ever(serving, asking):
    async with serving(calls=1, question_seconds=0.05) as one, one.client(NEWER) as client:
        call = Rounds(client)
        await call()
        with pytest.raises(MCPError, match="more than 1 calls"):
            await call(text="next")
        while not await one.records():  # noqa: ASYNC110
            await anyio.sleep(0.01)
        assert isinstance(await call(text="next"), InputRequiredResult)
