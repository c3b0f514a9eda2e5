import anyio
import pytest
from sideband.messages import AssistantMessage
from sideband.ops import OpError, OpTimeout
from sideband.providers import Finished, ProviderError, ProviderRefused, StreamBroken, TextDelta
from sideband_llm._foreign import ProviderErrors
from sideband_llm._response_stream import read_response

pytestmark = pytest.mark.anyio
BOTH_BACKENDS = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])


@pytest.fixture
def invalid_finished():
    return Finished.model_construct(
        type="finished", message=AssistantMessage.model_construct(content=({"type": "video"},))
    )


async def test_stream_without_finished_is_broken(host, fake, ask):
    fake.script = [TextDelta(text="all of it")]
    with pytest.raises(StreamBroken, match="without `Finished`") as caught:
        await ask(host)
    assert caught.value.retryable


async def test_empty_stream_is_broken(host, fake, ask):
    fake.script = []
    with pytest.raises(StreamBroken):
        await ask(host)


async def test_stream_with_two_finished_events_is_broken(host, fake, make, ask):
    fake.script = [make.answer("one"), make.answer("two")]
    with pytest.raises(StreamBroken, match="after `Finished`"):
        await ask(host)


async def test_delta_after_finished_is_not_emitted(host, fake, make, ask):
    fake.script = [make.answer(), TextDelta(text="more")]
    parts = []
    with pytest.raises(StreamBroken, match="after `Finished`"):
        await ask(host, parts=parts)
    assert parts == []


@pytest.mark.parametrize("stray", ["text", {"type": "text", "text": "x"}, None, 7, AssistantMessage(content="hello")])
async def test_stream_with_another_object_is_broken(host, fake, make, ask, stray):
    fake.script = [stray, make.answer()]
    with pytest.raises(StreamBroken, match="expected an event"):
        await ask(host)


async def test_finished_with_an_invalid_message_is_broken(host, fake, ask, invalid_finished):
    fake.script = [invalid_finished]
    with pytest.raises(StreamBroken, match="invalid message"):
        await ask(host)


async def test_finished_with_a_dict_instead_of_a_message_is_broken(host, fake, ask):
    fake.script = [Finished.model_construct(type="finished", message={"role": "assistant", "content": []})]
    with pytest.raises(StreamBroken, match="invalid message"):
        await ask(host)


@pytest.mark.parametrize("stop", ["error", "aborted"])
async def test_finished_with_a_failed_message_is_broken(host, fake, make, ask, stop):
    fake.script = [make.answer(stop=stop)]
    with pytest.raises(StreamBroken, match=stop):
        await ask(host)


async def test_provider_error_is_not_converted(host, fake, make, ask):
    fake.script = [
        TextDelta(text="x"),
        ProviderRefused("fake", "too much", status=429, body="{}", headers={"Retry-After": "7"}, retryable=True),
        make.answer(),
    ]
    with pytest.raises(ProviderRefused) as caught:
        await ask(host)
    data = caught.value.as_dict()
    assert (data["code"], data["status"], data["headers"], data["retryable"]) == (
        "provider.refused",
        429,
        {"retry-after": "7"},
        True,
    )
    assert fake.closed == 1


async def test_other_exception_is_converted_and_names_its_class(host, fake, ask):
    fake.script = [KeyError("choices")]
    with pytest.raises(ProviderError) as caught:
        await ask(host)
    assert caught.value.as_dict()["cause"] == "KeyError"


async def test_provider_error_in_a_group_is_unwrapped(host, fake, ask):
    fake.script = [ExceptionGroup("tasks", [ProviderRefused("fake", "no", status=500)])]
    with pytest.raises(ProviderRefused):
        await ask(host)


@BOTH_BACKENDS
@pytest.mark.parametrize(
    "raised",
    [
        SystemExit(3),
        BaseExceptionGroup("tasks", [SystemExit(3)]),
        BaseExceptionGroup("tasks", [SystemExit(3), ValueError("x")]),
        ExceptionGroup("tasks", [ValueError("x"), KeyError("y")]),
    ],
    ids=repr,
)
async def test_exception_of_a_provider_does_not_end_the_host(host, fake, make, ask, raised):
    fake.script = [TextDelta(text="x"), raised, make.answer()]
    with pytest.raises(ProviderError if isinstance(raised, BaseExceptionGroup) else OpError):
        await ask(host)
    fake.script = None
    assert (await ask(host))["stop"] == "end"


@BOTH_BACKENDS
async def test_stalled_stream_ends_at_the_deadline(host, fake, ask):
    fake.script = [TextDelta(text="x"), anyio.sleep_forever]
    with pytest.raises(OpTimeout):
        await ask(host, deadline=0.3)
    assert fake.closed == 1


async def test_stream_stalled_after_finished_ends_at_the_deadline(host, fake, make, ask):
    fake.script = [make.answer(), anyio.sleep_forever]
    with pytest.raises(OpTimeout):
        await ask(host, deadline=0.3)


@BOTH_BACKENDS
async def test_cancelled_call_closes_the_stream(host, fake, ask):
    begun = anyio.Event()

    async def hang():
        begun.set()
        await anyio.sleep_forever()

    fake.script = [TextDelta(text="x"), hang]
    results = []

    async def call():
        results.append(await ask(host))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        await begun.wait()
        tasks.cancel_scope.cancel()
    assert results == []
    assert fake.closed == 1


@BOTH_BACKENDS
async def test_cancellation_in_a_group_is_not_converted(host, fake, ask):
    async def hang():
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class() as cancelled:
            raise BaseExceptionGroup("tasks", [cancelled, ValueError("on the way out")]) from None

    fake.script = [hang]
    with anyio.move_on_after(0.2) as scope:
        await ask(host)
    assert scope.cancelled_caught


async def test_keyboard_interrupt_in_a_group_is_not_converted(host, fake, ask):
    fake.script = [BaseExceptionGroup("tasks", [KeyboardInterrupt()])]
    with pytest.raises(BaseExceptionGroup) as caught:
        await ask(host)
    assert caught.value.subgroup(KeyboardInterrupt)


async def test_stream_that_is_not_an_iterator_is_an_error(host, fake, ask, monkeypatch):
    monkeypatch.setattr(type(fake), "stream", lambda self, request, ctx: ["no stream"])
    with pytest.raises(ProviderError, match="TypeError"):
        await ask(host)


@BOTH_BACKENDS
async def test_exception_in_the_listener_closes_the_stream(host, fake, ask):
    class Failing(list):
        def append(self, part):
            raise ValueError("no more")

    with pytest.raises(OpError, match="no more"):
        await ask(host, parts=Failing())
    assert fake.closed == 1


def test_reading_an_event_takes_few_calls(count_calls, make):
    class Talkative:
        name = "talkative"

        def __init__(self, size):
            self.size = size

        async def stream(self, request, ctx):
            for _ in range(self.size):
                yield TextDelta(text="a")
            yield make.answer()

    async def emit(part): ...

    def calls(size):
        return count_calls(lambda: anyio.run(read_response, Talkative(size), None, None, emit))

    per_event = (calls(200) - calls(100)) / 100
    assert per_event <= 12, "keep what is not needed for each event out of the loop"


def test_typed_error_of_a_provider_keeps_its_cause():
    cause = ValueError("the key is invalid")
    with pytest.raises(ProviderRefused) as caught, ProviderErrors("talkative"):
        raise ProviderRefused("talkative", "no") from cause
    assert caught.value.__cause__ is cause
