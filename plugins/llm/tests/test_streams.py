import anyio
import pytest
from sideband.messages import AssistantMessage
from sideband.ops import OpError, OpTimeout
from sideband.providers import Finished, ProviderError, ProviderRefused, StreamBroken, TextDelta

pytestmark = pytest.mark.anyio


@pytest.fixture
def no_message():
    return Finished.model_construct(
        type="finished", message=AssistantMessage.model_construct(content=({"type": "video"},))
    )


async def test_a_stream_without_its_last_event_is_no_answer(host, fake, ask):
    fake.say = [TextDelta(text="all of it")]
    with pytest.raises(StreamBroken, match="before its end") as caught:
        await ask(host)
    assert caught.value.retryable


async def test_an_empty_stream_is_no_answer(host, fake, ask):
    fake.say = []
    with pytest.raises(StreamBroken):
        await ask(host)


async def test_two_last_events_are_no_answer(host, fake, make, ask):
    fake.say = [make.answer("one"), make.answer("two")]
    with pytest.raises(StreamBroken, match="after its end"):
        await ask(host)


async def test_what_comes_after_the_last_event_is_not_handed_on(host, fake, make, ask):
    fake.say = [make.answer(), TextDelta(text="more")]
    parts = []
    with pytest.raises(StreamBroken, match="after its end"):
        await ask(host, parts=parts)
    assert parts == []


@pytest.mark.parametrize("stray", ["text", {"type": "text", "text": "x"}, None, 7, AssistantMessage(content="hello")])
async def test_what_is_no_event_is_no_answer(host, fake, make, ask, stray):
    fake.say = [stray, make.answer()]
    with pytest.raises(StreamBroken, match="no event"):
        await ask(host)


async def test_a_last_event_without_a_valid_message_is_no_answer(host, fake, ask, no_message):
    fake.say = [no_message]
    with pytest.raises(StreamBroken, match="no message"):
        await ask(host)


async def test_a_last_event_without_any_message_is_no_answer(host, fake, ask):
    fake.say = [Finished.model_construct(type="finished", message={"role": "assistant", "content": []})]
    with pytest.raises(StreamBroken, match="no message"):
        await ask(host)


@pytest.mark.parametrize("stop", ["error", "aborted"])
async def test_a_message_that_says_that_it_failed_is_no_answer(host, fake, make, ask, stop):
    fake.say = [make.answer(stop=stop)]
    with pytest.raises(StreamBroken, match=stop):
        await ask(host)


async def test_an_error_of_the_provider_passes_as_it_is(host, fake, make, ask):
    fake.say = [
        TextDelta(text="x"),
        ProviderRefused("fake", "too much", status=429, body="{}", headers={"Retry-After": "7"}, retryable=True),
        make.answer(),
    ]
    with pytest.raises(ProviderRefused) as caught:
        await ask(host)
    said = caught.value.as_dict()
    assert (said["code"], said["status"], said["headers"], said["retryable"]) == (
        "provider.refused",
        429,
        {"retry-after": "7"},
        True,
    )
    assert fake.closed == 1


async def test_any_other_exception_names_its_class(host, fake, ask):
    fake.say = [KeyError("choices")]
    with pytest.raises(ProviderError) as caught:
        await ask(host)
    assert caught.value.as_dict()["cause"] == "KeyError"


async def test_a_provider_error_in_a_group_is_found(host, fake, ask):
    fake.say = [ExceptionGroup("tasks", [ProviderRefused("fake", "no", status=500)])]
    with pytest.raises(ProviderRefused):
        await ask(host)


@pytest.mark.parametrize(
    "raised",
    [
        SystemExit(3),
        BaseExceptionGroup("tasks", [SystemExit(3)]),
        BaseExceptionGroup("tasks", [SystemExit(3), ValueError("x")]),
        ExceptionGroup("tasks", [ValueError("x"), KeyError("y")]),
    ],
)
async def test_nothing_that_a_provider_raises_ends_the_host(host, fake, make, ask, raised):
    fake.say = [TextDelta(text="x"), raised, make.answer()]
    with pytest.raises(OpError):
        await ask(host)
    fake.say = None
    assert (await ask(host))["stop"] == "end"


async def test_a_stream_that_hangs_ends_with_the_call(host, fake, ask):
    fake.say = [TextDelta(text="x"), anyio.sleep_forever]
    with pytest.raises(OpTimeout):
        await ask(host, deadline=0.3)
    assert fake.closed == 1


async def test_a_stream_that_hangs_after_its_last_event_is_no_answer(host, fake, make, ask):
    fake.say = [make.answer(), anyio.sleep_forever]
    with pytest.raises(OpTimeout):
        await ask(host, deadline=0.3)


async def test_a_call_that_is_cancelled_closes_the_stream(host, fake, ask):
    begun = anyio.Event()

    async def hang():
        begun.set()
        await anyio.sleep_forever()

    fake.say = [TextDelta(text="x"), hang]
    answers = []

    async def call():
        answers.append(await ask(host))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        await begun.wait()
        tasks.cancel_scope.cancel()
    assert answers == []
    assert fake.closed == 1


async def test_a_cancellation_stays_one_whatever_is_raised_beside_it(host, fake, ask):
    async def hang():
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class() as cancelled:
            raise BaseExceptionGroup("tasks", [cancelled, ValueError("on the way out")]) from None

    fake.say = [hang]
    with anyio.move_on_after(0.2) as scope:
        await ask(host)
    assert scope.cancelled_caught


async def test_whoever_interrupts_the_host_interrupts_it(host, fake, ask):
    fake.say = [BaseExceptionGroup("tasks", [KeyboardInterrupt()])]
    with pytest.raises(BaseExceptionGroup) as caught:
        await ask(host)
    assert caught.value.subgroup(KeyboardInterrupt)


async def test_a_stream_that_is_no_stream_is_told(host, fake, ask, monkeypatch):
    monkeypatch.setattr(type(fake), "stream", lambda self, request, ctx: ["no stream"])
    with pytest.raises(ProviderError, match="TypeError"):
        await ask(host)


async def test_whoever_stops_listening_stops_the_stream(host, fake, ask):
    class Deaf(list):
        def append(self, part):
            raise ValueError("no more")

    with pytest.raises(OpError, match="no more"):
        await ask(host, parts=Deaf())
    assert fake.closed == 1
