"""Turns: a model step, followed by the tool calls that it requests."""

import anyio
import pytest
from sideband import Plugin
from sideband.messages import ImagePart, TextPart
from sideband.tools import ToolOutput, tool
from sideband_scripted import Turn

pytestmark = pytest.mark.anyio


def calls(*named):
    return Turn(tool_calls=list(named))


def results(agent):
    return [message for message in agent.session.messages() if message.role == "tool"]


async def test_answer_without_tool_calls_completes_the_run(stage):
    async with stage(["Hello."]) as agent:
        result = await agent.invoke("hi")
    assert (result.status, result.text) == ("completed", "Hello.")
    assert [message.role for message in result.messages] == ["user", "assistant"]


async def test_lone_surrogates_in_inputs_and_queued_messages_are_replaced(stage):
    async with stage(["one", "two"]) as agent:
        agent.steer("c \ud800 d")
        assert (await agent.invoke("a \ud800 b")).status == "completed"
        assert [one.text for one in agent.scripted.requests[0].messages] == ["a \ufffd b", "c \ufffd d"]


async def test_model_sees_the_results_of_its_calls(stage, kit):
    async with stage([calls(("echo", {"text": "ha"})), "It said ha."], kit.echo) as agent:
        await agent.invoke("say ha")
        kit.assert_valid(agent.scripted.requests[1].messages)
        assert agent.scripted.requests[1].messages[-1].text == "ha"


async def test_tools_are_sent_sorted_by_name(stage, kit):
    @tool("aaa")
    async def first(params: kit.Text, ctx) -> str:
        """Be first."""
        return ""

    async with stage(["ok"], kit.echo, Plugin("tool", "aaa", first)) as agent:
        await agent.invoke("hi")
        assert [one.name for one in agent.scripted.requests[0].tools] == ["aaa", "echo"]


async def test_number_that_is_not_finite_is_reported_and_the_run_goes_on(stage, kit):
    arguments = {"text": "a", "size": [float("inf")]}
    async with stage([calls(("echo", arguments), ("echo", {"text": "b"})), "sorry"], kit.echo) as agent:
        result = await agent.invoke("hi")
        refused, answered = results(agent)
        kit.assert_valid(agent.scripted.requests[1].messages)
    assert result.status == "completed"
    assert refused.is_error
    assert "a number is too large" in refused.text
    assert answered.text == "b"


async def test_unknown_tool_suggests_the_closest_name(stage, kit):
    async with stage([calls(("ecko", {})), "sorry"], kit.echo) as agent:
        await agent.invoke("hi")
        (result,) = results(agent)
    assert result.is_error
    assert "did you mean `echo`?" in result.text


async def test_invalid_arguments_are_reported_and_the_tool_does_not_run(stage, kit):
    ran = []

    class Number(kit.Text):
        number: int

    @tool("count")
    async def count(params: Number, ctx) -> str:
        """Count."""
        ran.append(params)
        return ""

    async with stage([calls(("count", {"number": "many"})), "sorry"], Plugin("tool", "count", count)) as agent:
        await agent.invoke("hi")
        (result,) = results(agent)
    assert "`number`" in result.text
    assert not ran


async def test_tool_error_is_reported_and_the_run_continues(stage, kit):
    @tool("bad")
    async def bad(params: kit.Text, ctx) -> str:
        """Fail."""
        raise RuntimeError("no disk")

    async with stage([calls(("bad", {})), "sorry"], Plugin("tool", "bad", bad)) as agent:
        result = await agent.invoke("hi")
        (answer,) = results(agent)
    assert result.status == "completed"
    assert answer.is_error
    assert "no disk" in answer.text


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_calls_of_one_turn_run_concurrently(stage, kit):
    meeting = [anyio.Event(), anyio.Event()]

    @tool("meet")
    async def meet(params: kit.Text, ctx) -> str:
        """Wait for the other call."""
        mine = int(params.text)
        meeting[mine].set()
        await meeting[1 - mine].wait()
        return params.text

    turns = [calls(("meet", {"text": "0"}), ("meet", {"text": "1"})), "met"]
    with anyio.fail_after(10):
        async with stage(turns, Plugin("tool", "meet", meet)) as agent:
            await agent.invoke("hi")
            assert [one.text for one in results(agent)] == ["0", "1"]


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_results_are_in_the_order_of_the_calls(stage, kit):
    last_is_done = anyio.Event()

    @tool("step")
    async def step(params: kit.Text, ctx) -> str:
        """Wait for the last call."""
        if params.text == "3":
            last_is_done.set()
        await last_is_done.wait()
        return params.text

    turns = [calls(*[("step", {"text": str(n)}) for n in range(4)], ("nothing", {})), "ok"]
    async with stage(turns, Plugin("tool", "step", step)) as agent:
        await agent.invoke("hi")
        assert [one.text for one in results(agent)[:4]] == ["0", "1", "2", "3"]


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_exclusive_tool_runs_alone(stage, kit):
    running, together = [], []

    def watch(event):
        if event.hook == "tool_execution_start":
            running.append(event.tool)
            together.append(list(running))
        elif event.hook == "tool_execution_end":
            running.remove(event.tool)

    @tool("alone", exclusive=True)
    async def alone(params: kit.Text, ctx) -> str:
        """Run alone."""
        return ""

    turn = calls(("echo", {"text": "1"}), ("alone", {}), ("echo", {"text": "2"}), ("echo", {"text": "3"}))
    async with stage([turn, "ok"], kit.echo, Plugin("tool", "alone", alone), on_event=watch) as agent:
        await agent.invoke("hi")
    assert [names for names in together if "alone" in names] == [["alone"]]


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_number_of_concurrent_calls_is_limited(stage, kit):
    running, most = set(), [0]

    def watch(event):
        if event.hook == "tool_execution_start":
            running.add(event.id)
            most[0] = max(most[0], len(running))
        elif event.hook == "tool_execution_end":
            running.discard(event.id)

    turn = calls(*[("echo", {"text": str(n)}) for n in range(9)])
    settings = {"agent": {"model": "scripted:test", "parallel": 3}}
    async with stage([turn, "ok"], kit.echo, settings=settings, on_event=watch) as agent:
        await agent.invoke("hi")
    assert most == [3]


@pytest.mark.parametrize(("flags", "ends"), [([True, True], True), ([True, False], False), ([False, False], False)])
async def test_run_ends_with_its_tools_only_if_all_of_them_terminate(stage, kit, flags, ends):
    @tool("end")
    async def end(params: kit.Text, ctx) -> ToolOutput:
        """End, or not."""
        return ToolOutput("done", terminate=params.text == "True")

    turn = calls(*[("end", {"text": str(one)}) for one in flags])
    async with stage([turn, "more"], Plugin("tool", "end", end)) as agent:
        result = await agent.invoke("hi")
        assert len(agent.scripted.requests) == (1 if ends else 2)
    assert result.status == "completed"


async def test_long_result_is_shortened_and_can_be_read_completely(stage, kit):
    whole = "\n".join(f"line {n}" for n in range(50_000))
    read = []

    @tool("long")
    async def long(params: kit.Text, ctx) -> str:
        """Return a long text, or read one."""
        if params.text:
            read.append(await ctx.output(params.text))
            return "read"
        return whole

    def again(request):
        return calls(("long", {"text": handle(request)}))

    def handle(request):
        return agent.session.messages()[-1].metadata["output"]

    async with stage([calls(("long", {})), again, "ok"], Plugin("tool", "long", long)) as agent:
        await agent.invoke("hi")
        shown = results(agent)[0].text
    assert len(shown) < 60_000
    assert shown.startswith("line 0\n")
    assert shown.endswith("line 49999")
    assert read == [whole]


async def test_images_and_texts_reach_the_model(stage, kit):
    picture = ImagePart(media_type="image/png", data="iVBORw0KGgo=")

    @tool("look")
    async def look(params: kit.Text, ctx) -> list:
        """Look."""
        return [TextPart(text="here"), picture]

    async with stage([calls(("look", {})), "a picture"], Plugin("tool", "look", look)) as agent:
        await agent.invoke("look", attachments=[picture])
        first, second = agent.scripted.requests
        assert first.messages[0].content[1] == picture
        assert second.messages[-1].content == (TextPart(text="here"), picture)


async def test_steering_is_inserted_before_the_next_step_after_the_results(stage, kit):
    @tool("note")
    async def note(params: kit.Text, ctx) -> str:
        """Queue a message of the user."""
        ctx.agent.steer("rather in French")
        return "noted"

    async with stage([calls(("note", {})), "Bonjour"], Plugin("tool", "note", note)) as agent:
        await agent.invoke("greet me")
        assert [one.role for one in agent.scripted.requests[1].messages] == ["user", "assistant", "tool", "user"]
        assert agent.scripted.requests[1].messages[-1].text == "rather in French"


async def test_follow_up_is_a_separate_run(stage):
    async with stage(["one", "two"]) as agent:
        agent.follow_up("and then?")
        result = await agent.invoke("first")
        texts = [message.text for message in agent.session.messages()]
    assert result.text == "two"
    assert texts == ["first", "one", "and then?", "two"]


async def test_reused_call_id_is_replaced(stage, kit):
    again = calls(("echo", {"text": "x"}, "call_0"))
    async with stage([again, again, "ok"], kit.echo) as agent:
        await agent.invoke("hi")
        kit.assert_valid(agent.scripted.requests[-1].messages)
        ids = [message.call for message in results(agent)]
    assert len(set(ids)) == 2


async def test_only_the_selected_tools_can_be_called(stage, kit):
    async with stage([calls(("echo", {})), "ok"], kit.echo, tools=[]) as agent:
        await agent.invoke("hi")
        assert agent.scripted.requests[0].tools == ()
        assert "unknown tool `echo`" in results(agent)[0].text


async def test_argument_named_like_a_secret_reaches_its_tool(stage, kit):
    given = []

    class Login(kit.Text):
        password: str

    @tool("login")
    async def login(params: Login, ctx) -> dict:
        """Log in."""
        given.append(params.password)
        return {"logged_in": params.password == "made up by the model"}

    turns = [calls(("login", {"password": "made up by the model"})), "ok"]
    async with stage(turns, Plugin("tool", "login", login)) as agent:
        await agent.invoke("hi")
        assert results(agent)[0].text == '{"logged_in": true}'
    assert given == ["made up by the model"]


async def test_known_secret_is_redacted_in_answers_and_results(stage, kit):
    @tool("leak")
    async def leak(params: kit.Text, ctx) -> str:
        """Leak."""
        ctx.protect("s3cr3t-value", "demo")
        return "it is s3cr3t-value"

    async with stage([calls(("leak", {})), "it was s3cr3t-value"], Plugin("tool", "leak", leak)) as agent:
        result = await agent.invoke("hi")
        assert "s3cr3t-value" not in results(agent)[0].text
    assert "s3cr3t-value" not in result.text


async def test_long_result_is_readable_in_a_fork_and_deleted_with_its_session(stage, kit):
    @tool("long")
    async def long(params: kit.Text, ctx) -> str:
        """Return a long text, or read one."""
        return str(len(await ctx.output(params.text))) if params.text else "x" * 200_000

    def again(request):
        return calls(("long", {"text": agent.session.messages()[2].metadata["output"]}))

    turns = [calls(("long", {})), "ok", again, "read"]
    async with stage(turns, Plugin("tool", "long", long)) as agent:
        await agent.invoke("hi")
        original = agent.session.id
        await agent.fork()
        await agent.invoke("read it")
        assert results(agent)[1].text == "200000"
        await agent.sessions.delete(original)
        assert not [key for key in await agent.host.store.keys("session/") if original in key]
