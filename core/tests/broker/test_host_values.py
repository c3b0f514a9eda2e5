"""Parameters that the host fills in, whatever a skill, a guard or a user passes for them."""

from typing import Annotated

import anyio
import pytest
from pydantic import BaseModel, ConfigDict
from sideband import hookimpl
from sideband.broker import Attempt, Call, KeyReused
from sideband.hooks import Replace
from sideband.ops import FromHost, Grant, Level, OpContext, OpParamsInvalid, Origin, op

pytestmark = pytest.mark.anyio


class NoteParams(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: str
    author: Annotated[str, FromHost("principal")]
    session: Annotated[str | None, FromHost("session")]


@pytest.fixture
def notes(family):
    """An op family that returns the parameters that its op gets."""

    async def preview(params: NoteParams, ctx: OpContext) -> str:
        return f"{params.author} would write {params.text}"

    @op("notes.write", level=Level.CONTROLLED, record=["text", "author"], preview=preview)
    async def write(params: NoteParams, ctx: OpContext) -> dict[str, str | None]:
        return params.model_dump()

    return family("notes", write)


ADA = {"text": "hi", "author": "ada", "session": None}


@pytest.mark.parametrize(
    "sent", [{"text": "hi"}, {"text": "hi", "author": "eve", "session": "s"}, {"text": "hi", "author": [1]}]
)
async def test_value_of_the_host_is_used_and_recorded_whatever_the_caller_sends(make_host, notes, ledger_lines, sent):
    async with make_host(notes) as host:
        assert await host.op("notes.write", sent, principal="ada") == ADA
    (intent,) = [line for line in ledger_lines() if line["kind"] == "intent"]
    assert intent["params"] == {"text": "hi", "author": "ada", "session": "…"}


@pytest.mark.parametrize("more", [{}, {"author": "eve", "session": "s"}])
async def test_guard_sees_the_value_of_the_host_and_cannot_replace_it(make_host, notes, hook, ledger_lines, more):
    seen = []

    @hookimpl
    async def op_call(event):
        seen.append((dict(event.params), await event.preview({**event.params, "author": "eve"})))
        return Replace({"text": "changed", **more})

    async with make_host(notes, hook("author", op_call)) as host:
        assert await host.op("notes.write", {"text": "hi", "author": "eve"}, principal="ada") == {
            **ADA,
            "text": "changed",
        }
    assert seen == [(ADA, "ada would write hi")]
    (intent,) = [line for line in ledger_lines() if line["kind"] == "intent"]
    assert intent["params"] == {"text": "changed", "author": "ada", "session": "…"}


async def test_plugin_acts_for_the_principal_of_the_host(make_host, notes):
    async with make_host(notes) as host:
        context = host.context_for("other")
        assert await context.dispatch("notes.write", {"text": "hi", "author": "eve"}) == {**ADA, "author": "user"}


async def test_unknown_parameter_does_not_suggest_one_of_the_host(make_host, notes):
    async with make_host(notes) as host:
        with pytest.raises(OpParamsInvalid) as caught:
            await host.op("notes.write", {"text": "hi", "autor": "eve"})
    assert caught.value.message.endswith("unknown parameter `autor`")


async def test_key_covers_the_values_of_the_host_and_not_what_was_sent_for_them(make_host, notes):
    async with make_host(notes) as host:
        assert await host.op("notes.write", {"text": "hi"}, key="k", principal="ada") == ADA
        assert await host.op("notes.write", {"text": "hi", "author": "eve"}, key="k", principal="ada") == ADA
        with pytest.raises(KeyReused):
            await host.op("notes.write", {"text": "other"}, key="k", principal="ada")


class Message(BaseModel):
    text: str
    session: Annotated[str | None, FromHost("session")]
    channel: Annotated[str | None, FromHost("channel")]


@pytest.fixture
def outbox(family):
    """An op family that notes from which session and channel a message was sent."""
    sent = []

    @op("outbox.send", level=Level.RESTRICTED)
    async def send(params: Message, ctx: OpContext) -> int:
        sent.append((params.session, params.channel))
        return len(sent)

    return family("outbox", send), sent


async def test_call_that_runs_again_in_another_channel_does_not_repeat_its_effects(make_host, outbox):
    plugin, sent = outbox
    async with make_host(plugin) as host:
        for channel in ("cli", "phone"):
            attempt = Attempt.first("k", seed="s")
            origin = Origin(session="a", channel=channel)
            again = Call("c", Grant.of([]), "d", origin, anyio.current_time() + 60, attempt=attempt)
            assert await host.broker.dispatch(again, "outbox.send", {"text": "hi"}) == 1
    assert sent == [("a", "cli")]


async def test_key_belongs_to_the_session_but_not_to_the_channel(make_host, outbox):
    plugin, sent = outbox

    async def send(session, channel):
        origin = Origin(session=session, channel=channel)
        call = Call("c", Grant.of([]), "d", origin, anyio.current_time() + 60)
        return await host.broker.dispatch(call, "outbox.send", {"text": "hi"}, key="k")

    async with make_host(plugin) as host:
        assert await send("a", "cli") == await send("a", "phone") == 1
        with pytest.raises(KeyReused):
            await send("b", "cli")
    assert sent == [("a", "cli")]
