"""A replay answers what was recorded, and runs nothing of an op."""

from contextlib import asynccontextmanager, suppress

import anyio
import pytest
from pydantic import BaseModel
from sideband import Plugin, hookimpl
from sideband.broker import KeyReused
from sideband.hooks import Deny
from sideband.ledger import query
from sideband.ops import Level, OpContext, OpDenied, OpFailed, Recorded, Undo, UndoStep, op
from sideband_cassettes import CassetteDivergence, CassetteInvalid

pytestmark = pytest.mark.anyio


class Text(BaseModel):
    text: str = ""
    times: int = 1


class Busy(OpFailed):
    """It is busy."""

    code = "echo.busy"
    details = ("seconds",)
    retryable = True

    def __init__(self, seconds: int) -> None:
        super().__init__(f"busy for {seconds} s", hint="wait")
        self.seconds = seconds


class Echo:
    """A family whose ops count how often they really ran."""

    def __init__(self):
        self.ran = []

        @op("echo.say", level=Level.SAFE, record=["text"])
        async def say(params: Text, ctx: OpContext) -> str:
            """Say it."""
            self.ran.append("say")
            return f"{params.text} {len(self.ran)}"

        @op("echo.data", level=Level.SAFE)
        async def data(params: Text, ctx: OpContext) -> dict:
            """Return data of all kinds."""
            self.ran.append("data")
            return {
                "z": b"\x00\xff",
                "a": "one\ntwo",
                "__lines__": ["x"],
                "long": params.text * params.times,
                "n": None,
            }

        @op("echo.fail", level=Level.SAFE)
        async def fail(params: Text, ctx: OpContext) -> str:
            """Fail."""
            self.ran.append("fail")
            raise Busy(params.times)

        @op("echo.both", level=Level.SAFE)
        async def both(params: Text, ctx: OpContext) -> list:
            """Say it twice, by another op."""
            self.ran.append("both")
            return [await ctx.dispatch("echo.say", {"text": params.text}) for _ in range(2)]

        @op("echo.wait", level=Level.SAFE)
        async def wait(params: Text, ctx: OpContext) -> str:
            """Wait for ever."""
            self.ran.append("wait")
            await anyio.sleep_forever()
            return ""

        async def plan(recorded: Recorded, ctx: OpContext) -> Undo:
            self.ran.append("undo")
            return Undo(steps=(UndoStep("echo.say", {"text": "undone"}, "say it"),))

        async def preview(params: Text, ctx: OpContext) -> str:
            self.ran.append("preview")
            return "a preview"

        async def reconcile(recorded: Recorded, ctx: OpContext) -> str:
            self.ran.append("reconcile")
            return "done"

        @op("echo.write", level=Level.CONTROLLED, undo=plan, preview=preview, reconcile=reconcile)
        async def write(params: Text, ctx: OpContext) -> str:
            """Change something."""
            self.ran.append("write")
            await ctx.note({"old": params.text})
            return "written"

        @op("echo.tell", level=Level.SAFE, fire_and_forget=True)
        async def tell(params: Text, ctx: OpContext) -> None:
            """Report it, without an answer."""
            self.ran.append("tell")

        self.ops = (say, data, fail, both, wait, write, tell)

    @asynccontextmanager
    async def lifespan(self, ctx):
        self.ran.append("lifespan")
        yield None


@pytest.fixture
def echo():
    return Echo()


@pytest.fixture
def plugin(family, echo):
    return family("echo", *echo.ops, errors=[Busy])


@pytest.fixture
def both(hosting, plugin, echo):
    """Return a function that runs the same steps with a recording and with a replaying host, and what each returned."""

    async def run(steps, **options):
        answers = []
        for mode in ("record", "replay"):
            before = len(echo.ran)
            async with hosting(mode, plugin, **options) as host:
                answers.append(await steps(host))
        assert len(echo.ran) == before, "a handler ran in the replay"
        return answers

    return run


async def test_replay_has_the_recorded_answers_in_their_order(both):
    recorded, replayed = await both(lambda host: _say(host, "a", "a", "b"))
    assert replayed == recorded == ["a 1", "a 2", "b 3"]


async def _say(host, *texts):
    return [await host.op("echo.say", {"text": text}) for text in texts]


async def test_answer_of_any_kind_is_byte_identical(both):
    recorded, replayed = await both(lambda host: host.op("echo.data", {"text": "a long text ", "times": 10_000}))
    assert replayed == recorded
    assert list(replayed) == list(recorded)


async def test_error_is_answered_with_its_class_and_details(both):
    async def steps(host):
        with pytest.raises(Busy) as caught:
            await host.op("echo.fail", {"times": 7})
        return caught.value.seconds, caught.value.as_dict()

    recorded, replayed = await both(steps)
    assert replayed == recorded
    assert replayed[0] == 7


async def test_effects_of_an_op_are_part_of_its_own(both, effects):
    recorded, replayed = await both(lambda host: host.op("echo.both", {"text": "a"}))
    assert replayed == recorded
    assert [one["op"] for one in effects()] == ["echo.both"]


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_parallel_effects_may_come_in_another_order(hosting, plugin):
    async def all_of(host, texts):
        found = {}

        async def one(text):
            found[text] = await host.op("echo.say", {"text": text})

        async with anyio.create_task_group() as tasks:
            for text in texts:
                tasks.start_soon(one, text)
        return found

    async with hosting("record", plugin) as host:
        recorded = await all_of(host, "abcd")
    async with hosting("replay", plugin) as host:
        assert await all_of(host, "dbca") == recorded


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_cancelled_effect_has_no_answer_until_it_is_cancelled_again(both):
    async def steps(host):
        with anyio.move_on_after(0.05) as scope:
            await host.op("echo.wait", {})
        return scope.cancelled_caught

    assert await both(steps) == [True, True]


async def test_fire_and_forget_effect_is_compared_and_not_run(both, effects):
    assert await both(lambda host: host.op("echo.tell", {"text": "a"})) == [None, None]
    assert effects()[0]["params"] == {"text": "a"}


async def test_changed_request_stops_the_replay_and_shows_the_difference(hosting, plugin, echo):
    async with hosting("record", plugin) as host:
        await host.op("echo.say", {"text": "a", "times": 2})
    answered = []
    with pytest.raises(CassetteDivergence) as caught:  # noqa: PT012  opening and closing
        async with hosting("replay", plugin) as host:
            with pytest.raises(CassetteDivergence):
                await host.op("echo.say", {"text": "b", "times": 2})
            with suppress(CassetteDivergence):
                answered.append(await host.op("echo.say", {"text": "a", "times": 2}))
    error = caught.value
    assert answered == []  # nothing is answered after it
    assert ('-  "text": "a",' in error.diff, '+  "text": "b",' in error.diff) == (True, True)
    assert (error.op, error.ordinal, error.exit_code) == ("echo.say", 1, 1)
    assert "sideband record" in error.hint
    assert error.diff in error.message
    assert echo.ran == ["say"]


async def test_difference_moves_no_cursor_and_changes_no_order_of_characters(hosting, plugin):
    hostile = "a\x1b[2J\x9b2J\u202eb\nc\r"
    async with hosting("record", plugin) as host:
        await host.op("echo.say", {"text": hostile})
    with pytest.raises(CassetteDivergence) as caught:
        async with hosting("replay", plugin) as host:
            await host.op("echo.say", {"text": hostile + "\x9b"})
    shown = caught.value.message + caught.value.diff
    assert shown.replace("\n", "").isprintable()
    assert "\\x9b2J\\u202eb" in shown


async def test_effect_that_was_not_recorded_stops_the_replay(hosting, plugin):
    async with hosting("record", plugin) as host:
        await _say(host, "a")
    with pytest.raises(CassetteDivergence, match="requested more often than recorded"):
        async with hosting("replay", plugin) as host:
            await _say(host, "a", "a")
    with pytest.raises(CassetteDivergence, match="requested but not recorded"):
        async with hosting("replay", plugin) as host:
            await host.op("echo.data", {})


async def test_recorded_effects_that_are_not_requested_are_an_error_at_the_end(hosting, plugin):
    async with hosting("record", plugin) as host:
        await _say(host, "a", "b")
    with pytest.raises(CassetteDivergence, match=r"1 recorded effects were not requested \(echo\.say\)"):
        async with hosting("replay", plugin) as host:
            await _say(host, "a")


async def test_missing_effects_are_recorded_and_the_others_replayed(hosting, plugin, echo, file):
    async with hosting("record", plugin) as host:
        await _say(host, "a", "b")
    async with hosting("missing", plugin) as host:
        assert await _say(host, "a", "c") == ["a 1", "c 3"]
    async with hosting("replay", plugin) as host:
        assert await _say(host, "a", "c") == ["a 1", "c 3"]
    assert echo.ran == ["say"] * 3
    before = file.stat().st_mtime_ns, file.read_bytes()
    async with hosting("missing", plugin) as host:
        await _say(host, "a", "c")
    assert (file.stat().st_mtime_ns, file.read_bytes()) == before


async def test_missing_records_all_without_a_file(hosting, plugin, effects):
    async with hosting("missing", plugin) as host:
        await _say(host, "a")
    assert [one["op"] for one in effects()] == ["echo.say"]


async def test_grant_is_checked_again(hosting, plugin, family, tmp_path):
    @op("safe.open", requires="safe", level=Level.SAFE)
    async def unlock(params: Text, ctx: OpContext) -> str:
        """Open it."""
        return "open"

    safe = family("safe", unlock)
    async with hosting("record", safe) as host:
        assert await host.op("safe.open", {}, grants=["safe"]) == "open"
    with pytest.raises(CassetteDivergence, match="not requested"):  # noqa: PT012  opening and closing
        async with hosting("replay", safe) as host:
            with pytest.raises(OpDenied):
                await host.op("safe.open", {}, grants=[])


async def test_guard_decides_again(hosting, plugin):
    class Strict:
        @hookimpl
        async def op_call(self, event):
            return Deny("not today")

    async with hosting("record", plugin) as host:
        await _say(host, "a")
    with pytest.raises(CassetteDivergence, match="not requested"):  # noqa: PT012  opening and closing
        async with hosting("replay", plugin, Plugin("guard", "strict", Strict)) as host:
            with pytest.raises(OpDenied, match="not today"):
                await _say(host, "a")


async def test_ledger_says_that_an_effect_was_replayed(hosting, plugin):
    for mode in ("record", "replay"):
        async with hosting(mode, plugin) as host:
            await _say(host, "a")
            await host.sync()
            (record,) = await query(host.ledger.folder, op="echo.say")
    assert record.note == {"cassette": "one.json"}


async def test_replayed_effect_claims_no_key(hosting, plugin, echo, tmp_path):
    home = tmp_path / "shared"
    async with hosting("record", plugin) as host:
        await host.op("echo.write", {"text": "a"}, key="one")
        assert await host.op("echo.write", {"text": "a"}, key="one") == "written"
        with pytest.raises(KeyReused):
            await host.op("echo.write", {"text": "b"}, key="one")
    async with hosting("replay", plugin, home=home) as host:
        for _ in range(2):
            assert await host.op("echo.write", {"text": "a"}, key="one") == "written"
        with pytest.raises(OpFailed, match="already used"):
            await host.op("echo.write", {"text": "b"}, key="one")
    before = len(echo.ran)
    async with hosting("record", plugin, home=home) as host:
        await host.op("echo.write", {"text": "other"}, key="one")
    assert len(echo.ran) == before + 1


async def test_replayed_effect_is_not_undone(hosting, plugin, echo):
    async with hosting("record", plugin) as host:
        await host.op("echo.write", {"text": "a"})
    async with hosting("replay", plugin) as host:
        done = []
        await host.op("echo.write", {"text": "a"}, on_effect=done.append)
        await host.sync()
        plan = await host.plan_undo(done[0].id)
    assert plan.steps == ()
    assert "was replayed from the cassette one.json: nothing happened" in plan.remains[0]
    assert echo.ran == ["write"]


async def test_lifespan_and_preview_of_an_op_do_not_run(hosting, family, echo):
    seen = []

    class Curious:
        @hookimpl
        async def op_call(self, event):
            seen.append(event.preview is None)

    plugin = family("echo", *echo.ops, lifespan=echo.lifespan)
    for mode in ("record", "replay"):
        async with hosting(mode, plugin, Plugin("guard", "curious", Curious)) as host:
            await host.op("echo.write", {"text": "a"})
    assert echo.ran == ["lifespan", "write"]
    assert seen == [False, True]


async def test_result_that_the_op_cannot_have_is_refused(hosting, plugin, family, file):
    async with hosting("record", plugin) as host:
        await _say(host, "a")

    @op("echo.say", level=Level.SAFE)
    async def say(params: Text, ctx: OpContext) -> int:
        """Return another type, in a later version."""
        return 1

    with pytest.raises(CassetteInvalid, match=r"echo\.say .* does not match the op"):  # noqa: PT012  as above
        async with hosting("replay", family("echo", say)) as host:
            with pytest.raises(OpFailed):
                await host.op("echo.say", {"text": "a"})


async def test_failing_body_hides_no_divergence_and_is_not_hidden_by_unused_effects(hosting, plugin):
    async with hosting("record", plugin) as host:
        await _say(host, "a")
    with pytest.raises(ZeroDivisionError):
        async with hosting("replay", plugin):
            _ = 1 / 0
    with pytest.raises(CassetteDivergence):  # noqa: PT012  opening and closing
        async with hosting("replay", plugin) as host:
            with pytest.raises(CassetteDivergence):
                await _say(host, "b")
            _ = 1 / 0
