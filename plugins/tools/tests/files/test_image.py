import base64

import pytest
from sideband.tools import RESULT_LIMITS
from sideband_scripted import Turn

pytestmark = pytest.mark.anyio
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture
def grants(work):
    return [f"files:path={work}/*,mode=read,hidden=*"]


@pytest.fixture
def settings():
    return {"image_model": "scripted:sees"}


@pytest.fixture
def ask(tool_call, work):
    """Return a function that asks about a file. The second model answers with this text."""

    async def ask(path, answer):
        script = tool_call.script
        script.turns += [Turn(tool_calls=[("image", {"path": path, "question": "What is it?"})])]
        script.turns += [answer, "done"] if answer else ["done"]
        ran = await tool_call.agent.invoke("go")
        return next(one for one in ran.messages if one.role == "tool")

    return ask


async def test_configured_model_answers_about_the_image(ask, work, tool_call):
    (work / "a.png").write_bytes(PNG)
    assert (await ask("a.png", "One pixel.")).text == "One pixel.\n[answered by scripted:sees]"
    request = tool_call.script.requests[1]
    assert request.model == "sees"
    picture, question = request.messages[-1].content
    assert (base64.b64decode(picture.data), question.text) == (PNG, "What is it?")


async def test_usage_is_charged_to_the_session(ask, work, tool_call):
    (work / "a.png").write_bytes(PNG)
    before = tool_call.agent.usage.output
    await ask("a.png", "word " * 1_000)
    assert tool_call.agent.usage.output - before > 500


async def test_other_files_are_refused(ask, work):
    (work / "a.txt").write_text("text")
    result = await ask("a.txt", None)
    assert (result.is_error, "it is not an image" in result.text) == (True, True)


async def test_image_that_is_too_large_for_models_is_an_error(ask, work):
    with (work / "a.png").open("wb") as file:
        file.write(PNG)
        file.truncate(RESULT_LIMITS.image + 1)
    result = await ask("a.png", None)
    assert result.metadata["code"] == "tools.file"
    assert "more than the limit" in result.text
