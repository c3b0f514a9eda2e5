"""What a server asks during a call: the person, or a model. Both versions of the protocol behave the same."""

import anyio
import pytest
from sideband.approvals import Approval
from sideband.asking import UserAnswer
from sideband.messages import Usage
from sideband_scripted import Turn

pytestmark = pytest.mark.anyio

NEWER = """
from typing import Annotated

from mcp.server.elicitation import AcceptedElicitation, ElicitationResult
from mcp.server.mcpserver import Elicit, Resolve
from pydantic import BaseModel


class Trip(BaseModel):
    city: str
    days: int = 3
    hotel: bool


def ask() -> Elicit[Trip]:
    return Elicit("Where to?", Trip)


@server.tool()
async def book(trip: Annotated[ElicitationResult[Trip], Resolve(ask)]) -> str:
    "Book a trip."
    return f"{trip.action} {trip.data if isinstance(trip, AcceptedElicitation) else ''}"
"""

FORM = """{"type": "object", "required": ["city", "hotel"], "properties": {
    "city": {"type": "string"}, "days": {"type": "integer", "default": 3}, "hotel": {"type": "boolean"}}}"""


def asking(method, params):
    """Return a server of the older protocol that asks during a call, and returns the answer."""
    return f"""
calls = []

def answer(method, params, number):
    if method == "tools/call":
        calls.append(number)
        send(id="q%s" % number, method="{method}", params={params})
        return None
    if method is None and "result" in params:
        send(id=calls.pop(), result=text(str(params["result"])))
    if method is None and "error" in params:
        send(id=calls.pop(), result=text(params["error"]["message"]))
    return default(method, params)
"""


OLDER = asking("elicitation/create", f'{{"message": "Where to?", "requestedSchema": {FORM.replace("true", "True")}}}')


class Person:
    """Answers questions with these, and keeps them."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    async def __call__(self, questions, origin):
        self.asked.append(questions)
        return self.answers.pop(0)


VIENNA = [UserAnswer(text="Vienna"), UserAnswer(text="5"), UserAnswer(("yes",))]


@pytest.fixture(params=["newer", "older"])
def server(request, make_server, raw_server):
    """Return a server that asks with a form, and the name of its tool."""
    return (make_server(NEWER), "things__book") if request.param == "newer" else (raw_server(OLDER), "things__go")


async def test_form_is_filled_in_by_the_person(open_host, session, server):
    person = Person(VIENNA)
    async with open_host({"things": server[0]}) as host, session(host, server[1], asker=person) as call:
        result = await call(server[1])
        assert "accept" in result.text
        assert "Vienna" in result.text
        assert "5" in result.text
        assert [one.text for one in person.asked[0]] == [
            "The MCP server `things` asks: Where to? — City",
            "The MCP server `things` asks: Where to? — Days (default: 3)",
            "The MCP server `things` asks: Where to? — Hotel",
        ] or server[1] == "things__go"


@pytest.mark.parametrize("answers", [[UserAnswer(), UserAnswer(), UserAnswer()]])
async def test_form_that_is_left_open_is_cancelled(open_host, session, server, answers):
    async with open_host({"things": server[0]}) as host, session(host, server[1], asker=Person(answers)) as call:
        assert "cancel" in (await call(server[1])).text


DEFAULTS = asking(
    "elicitation/create",
    """{"message": "Where to?", "requestedSchema": {"type": "object", "required": ["city"], "properties": {
    "city": {"type": "string", "default": "Vienna"}, "note": {"type": "string"}}}}""",
)


@pytest.mark.parametrize(("choice", "answered"), [("yes", "Vienna"), ("no", "cancel")])
async def test_form_that_is_left_open_is_sent_with_its_defaults_if_the_person_confirms(
    open_host, session, raw_server, choice, answered
):
    person = Person([UserAnswer(), UserAnswer()], [UserAnswer((choice,))])
    async with open_host({"things": raw_server(DEFAULTS)}) as host, session(host, "things__go", asker=person) as call:
        assert answered in (await call("things__go")).text


async def test_form_is_declined_without_a_person(open_host, session, server):
    async with open_host({"things": server[0]}) as host, session(host, server[1]) as call:
        assert "decline" in (await call(server[1])).text


async def test_value_that_does_not_fit_is_asked_for_again(open_host, session, raw_server):
    wrong = [UserAnswer(text="Vienna"), UserAnswer(text="many"), UserAnswer(("yes",))]
    person = Person(wrong, VIENNA)
    async with open_host({"things": raw_server(OLDER)}) as host, session(host, "things__go", asker=person) as call:
        assert "Vienna" in (await call("things__go")).text
        assert "(`days` must be a whole number)" in person.asked[1][0].text


async def test_time_of_an_answer_does_not_count(open_host, session, raw_server):
    async def asker(questions, origin):
        await anyio.sleep(1.2)
        return VIENNA

    server = raw_server(OLDER, call_seconds=1.0)
    async with open_host({"things": server}) as host, session(host, "things__go", asker=asker) as call:
        assert "Vienna" in (await call("things__go")).text


AFTERWARDS = f"""
got = []

def answer(method, params, number):
    if method == "tools/call" and not got:
        got.append("")
        send(id="q", method="elicitation/create", params={{"message": "Where to?", "requestedSchema": {FORM}}})
        send(id=number, result=text("the result"))
        return None
    if method == "tools/call":
        return text(got[-1])
    if method is None and "result" in params:
        got.append(params["result"]["action"])
    return default(method, params)
""".replace("true", "True")


async def test_question_of_a_call_that_has_ended_is_cancelled_and_the_result_is_kept(open_host, session, raw_server):
    async def asker(questions, origin):
        # The server has its answer before the person has given one.
        await other.wait_for_result("things__go", "cancel")
        call.script.turns.append("done")
        return VIENNA

    async with (
        open_host({"things": raw_server(AFTERWARDS)}) as host,
        session(host, "things__go") as other,
        session(host, "things__go", asker=asker) as call,
    ):
        call.script.turns.append(Turn(tool_calls=[("things__go", {})]))
        ran = await call.agent.invoke("go")
        assert [one.text for one in ran.messages if one.role == "tool"] == ["the result"]


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "https://example.org@evil.example/",
        "https://example.org\\@evil.example/",
        "https://evil.example/\u202egro.elpmaxe",
        "http://[/",
        "https://evil.example/" + "x" * 5_000,
        "https://",
    ],
)
async def test_address_that_deceives_is_not_shown(open_host, session, raw_server, address):
    params = {"mode": "url", "elicitationId": "1", "message": "Log in.", "url": address}
    person = Person()
    server = raw_server(asking("elicitation/create", params))
    async with open_host({"things": server}) as host, session(host, "things__go", asker=person) as call:
        assert "decline" in (await call("things__go")).text
        assert not person.asked


@pytest.mark.parametrize(("choice", "answered"), [("opened", "accept"), ("no", "decline")])
async def test_person_opens_an_address(open_host, session, raw_server, choice, answered):
    params = {"mode": "url", "elicitationId": "1", "message": "Log in. " * 1_000, "url": "https://example.org/login"}
    person = Person([UserAnswer((choice,))])
    server = raw_server(asking("elicitation/create", params))
    async with open_host({"things": server}) as host, session(host, "things__go", asker=person) as call:
        assert answered in (await call("things__go")).text
        ((question,),) = person.asked
        assert "`things` asks you to open https://example.org/login of example.org" in question.text
        assert len(question.text) < 2_200


@pytest.mark.parametrize("odd", [{"enum": 5}, {"oneOf": True}, {"enumNames": "x", "enum": ["Vienna"]}])
async def test_choices_that_are_invalid_are_left_out(open_host, session, raw_server, odd):
    form = {"type": "object", "properties": {"city": {"type": "string", **odd}}}
    server = raw_server(asking("elicitation/create", {"message": "Where to?", "requestedSchema": form}))
    person = Person([UserAnswer(text="Vienna")])
    async with open_host({"things": server}) as host, session(host, "things__go", asker=person) as call:
        assert "Vienna" in (await call("things__go")).text


async def test_call_ends_if_the_person_answers_after_the_run_was_aborted(open_host, session, raw_server):
    async def asker(questions, origin):
        call.agent.abort("enough")
        return VIENNA

    async with open_host({"things": raw_server(OLDER)}) as host, session(host, "things__go", asker=asker) as call:
        call.script.turns += [Turn(tool_calls=[("things__go", {})]), "done"]
        ran = await call.agent.invoke("go")
        assert ran.status == "aborted"
        assert (await call.offered()) == ["things__go"]


async def test_server_may_not_choose_between_the_users_of_several_sessions(open_host, session, raw_server):
    first, second, results = Person(VIENNA), Person(VIENNA), []

    async def go(one):
        ran = await one.agent.invoke("go")
        results.extend(one.text for one in ran.messages if one.role == "tool")
        tasks.cancel_scope.cancel()

    # It asks once there are two calls, in the older protocol that does not say for which one.
    code = OLDER.replace("calls.append(number)", "calls.append(number)\n        if len(calls) < 2: return None")
    async with (
        open_host({"things": raw_server(code)}) as host,
        session(host, "things__go", asker=first) as one,
        session(host, "things__go", asker=second) as other,
    ):
        one.script.turns += [Turn(tool_calls=[("things__go", {})])] * 2 + ["done"]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(go, one)
            tasks.start_soon(go, other)
        assert results == ["only a call of one session may ask its user"]
        assert not first.asked
        assert not second.asked


SAMPLE = asking(
    "sampling/createMessage",
    '{"messages": [{"role": "user", "content": {"type": "text", "text": "Write a poem."}}], "maxTokens": 99999}',
)


async def test_model_is_asked_with_the_grant_and_budget_of_the_session(open_host, session, raw_server, person):
    server = raw_server(SAMPLE, sampling="scripted:poet")
    async with open_host({"things": server}) as host, session(host, "things__go") as call:
        call.script.turns += [
            Turn(tool_calls=[("things__go", {})]),
            Turn("Roses are red", usage=Usage(input=5, output=700)),
            "done",
        ]
        ran = await call.agent.invoke("go")
        result = next(one for one in ran.messages if one.role == "tool")
        assert "Roses are red" in result.text
        request = call.script.requests[-2]
        assert (request.model, request.max_tokens) == ("poet", 4_096)
        assert person.requests[-1].effect["capabilities"] == ["llm:model=scripted:poet"]
        assert call.agent.usage.output >= 700


async def test_model_is_not_asked_about_an_image_of_no_type(open_host, session, raw_server):
    image = {"type": "image", "data": "iVBORw0K", "mimeType": "text/html"}
    sample = {"messages": [{"role": "user", "content": image}], "maxTokens": 5}
    server = raw_server(asking("sampling/createMessage", sample), sampling="scripted:poet")
    async with open_host({"things": server}) as host, session(host, "things__go") as call:
        assert "refused to ask a model" in (await call("things__go")).text


async def test_model_is_not_asked_without_the_setting(open_host, session, raw_server):
    async with open_host({"things": raw_server(SAMPLE)}) as host, session(host, "things__go") as call:
        assert "not supported" in (await call("things__go")).text.lower()


async def test_model_is_not_asked_if_the_person_refuses(open_host, session, raw_server, person):
    server = raw_server(SAMPLE, sampling="scripted:poet")
    person.answers = [Approval("allow", "session"), Approval("deny", reason="no")]
    async with open_host({"things": server}) as host, session(host, "things__go") as call:
        assert "refused to ask a model" in (await call("things__go")).text


async def test_places_of_a_program_are_its_roots(open_host, session, raw_server, tmp_path):
    server = raw_server(asking("roots/list", "{}"), write=[str(tmp_path / "servers")])
    (tmp_path / "servers").mkdir()
    async with open_host({"things": server}) as host, session(host, "things__go") as call:
        assert (tmp_path / "servers").as_uri() in (await call("things__go")).text
