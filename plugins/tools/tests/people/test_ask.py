import json

import anyio
import pytest
from sideband.asking import QuestionOption, UserAnswer, UserQuestion
from sideband_agent import Agent
from sideband_scripted import Turn

pytestmark = pytest.mark.anyio
QUESTIONS = [
    {"text": "Which port?", "options": [{"text": "8443"}, {"text": "9443", "description": "as in production"}]},
    {"text": "Which days?", "options": [{"text": "Monday"}, {"text": "Friday"}], "multiple": True},
    {"text": "Anything else?"},
]


@pytest.fixture
def asking(scripted_host, work, calling):
    """Return a function that lets the model ask a user who answers with this function."""

    async def asking(asker, questions=QUESTIONS):
        host, script = scripted_host()
        async with host as opened, Agent(opened, folder=work, asker=asker) as agent:
            return await calling(agent, script)("ask", questions=questions)

    return asking


async def test_answers_are_returned_with_their_questions(asking):
    async def asker(questions, origin):
        return [UserAnswer(("9443",)), UserAnswer(("Monday", "Friday")), UserAnswer(text="no")]

    result = await asking(asker)
    assert json.loads(result.text) == [
        {"question": "Which port?", "chosen": ["9443"]},
        {"question": "Which days?", "chosen": ["Monday", "Friday"]},
        {"question": "Anything else?", "text": "no"},
    ]


async def test_user_sees_the_questions_and_who_asks(asking):
    asked = []

    async def asker(questions, origin):
        asked.append((questions, origin.tool))
        return [UserAnswer()]

    result = await asking(asker, QUESTIONS[:1])
    options = (QuestionOption("8443"), QuestionOption("9443", "as in production"))
    assert asked == [((UserQuestion("Which port?", options),), "ask")]
    assert json.loads(result.text) == [{"question": "Which port?", "unanswered": True}]


async def test_missing_user_is_reported(asking):
    result = await asking(None)
    assert (result.is_error, result.metadata["code"]) == (True, "agent.asker")
    assert "no user can be asked. decide without an answer" in result.text


async def test_wrong_number_of_answers_is_an_error(asking):
    async def asker(questions, origin):
        return []

    assert "0 answers to 3 questions" in (await asking(asker)).text


async def test_question_ends_with_the_run(scripted_host, work):
    ended = []

    async def asker(questions, origin):
        agent.abort()
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(True)

    host, script = scripted_host()
    script.turns += [Turn(tool_calls=[("ask", {"questions": QUESTIONS})])]
    async with host as opened, Agent(opened, folder=work, asker=asker) as agent:
        assert (await agent.invoke("go")).status == "aborted"
    assert ended == [True]


async def test_child_asks_the_same_user(scripted_host, work):
    async def asker(questions, origin):
        return [UserAnswer(text="8443")]

    host, script = scripted_host()
    script.turns += [Turn(tool_calls=[("ask", {"questions": QUESTIONS[:1]})]), "8443 it is"]
    async with host as opened, Agent(opened, folder=work, asker=asker) as agent:
        assert (await agent.spawn_child("ask")).text == "8443 it is"
    assert '"text": "8443"' in script.requests[-1].messages[-1].text.replace(':"', ': "')
