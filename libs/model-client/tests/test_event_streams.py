from contextlib import aclosing
from itertools import pairwise
from time import perf_counter

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sideband_model_client import EventStreamCut, EventStreamError, ServerSentEvent, read_events

pytestmark = pytest.mark.anyio


async def chunked(chunks):
    for chunk in chunks:
        await anyio.lowlevel.checkpoint()
        yield chunk


async def events(*chunks, into=None, **options):
    got = [] if into is None else into
    async with aclosing(chunked(chunks)) as source:
        async for event in read_events(source, **options):
            got.append(event)
    return got


def read(chunks, backend="asyncio"):
    return anyio.run(lambda: events(*chunks), backend=backend)


def cut(data, places):
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


async def test_event_has_a_type_and_joined_data_lines():
    assert await events(b"event: ping\ndata: one\ndata:two\n\n") == [ServerSentEvent("ping", "one\ntwo")]


async def test_default_event_type_is_message():
    assert await events(b"data: {}\n\n") == [ServerSentEvent("message", "{}")]


async def test_event_type_applies_to_one_event_only():
    got = await events(b"event: a\ndata: 1\n\ndata: 2\n\n")
    assert [event.event for event in got] == ["a", "message"]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
async def test_all_three_line_endings_are_accepted(end):
    got = await events(end.join([b"data: a", b"data: b", b"", b"data: c", b"", b""]))
    assert [event.data for event in got] == ["a\nb", "c"]


async def test_comments_and_unknown_fields_are_ignored():
    got = await events(b": waiting\n\nid: 7\nretry: 10\nother\ndata: a\n: b\n\n")
    assert got == [ServerSentEvent("message", "a")]


async def test_event_type_without_data_is_ignored():
    assert await events(b"event: ping\n\n") == []


async def test_only_one_space_after_the_colon_is_removed():
    assert (await events(b"data:  a\n\n"))[0].data == " a"


async def test_byte_order_mark_is_removed():
    assert (await events(b"\xef\xbb", b"\xbfdata: a\n\n"))[0].data == "a"


@pytest.mark.parametrize("rest", [b"data: a", b"data: a\n", b"event: a\n", b"dat"])
async def test_stream_that_ends_within_an_event_is_cut(rest):
    with pytest.raises(EventStreamCut):
        await events(b"data: whole\n\n" + rest)


async def test_events_before_the_cut_are_yielded():
    got = []
    with pytest.raises(EventStreamCut):
        await events(b"data: a\n\ndata: b", into=got)
    assert [event.data for event in got] == ["a"]


async def test_invalid_utf_8_is_an_error():
    with pytest.raises(EventStreamError, match="UTF-8"):
        await events(b"data: \xff\n\n")


@pytest.mark.parametrize("chunks", [[b"data: " + b"x" * 100], [b"x"] * 101, [b"data: xxxxxxxxxx\n"] * 10])
async def test_event_over_the_limit_is_an_error(chunks):
    with pytest.raises(EventStreamError, match="exceeds 100 bytes"):
        await events(*chunks, longest=100)


async def test_comments_do_not_count_toward_the_limit():
    assert len(await events(*[b": waiting\n"] * 50, b"data: a\n\n", longest=100)) == 1


async def test_limit_applies_to_each_event_separately():
    assert len(await events(*[b"data: " + b"x" * 80 + b"\n\n"] * 5, longest=100)) == 5


async def test_event_is_yielded_before_the_next_one_arrives():
    send, receive = anyio.create_memory_object_stream(1)
    async with send, receive, anyio.create_task_group():
        stream = read_events(receive)
        await send.send(b"data: a\n\n")
        with anyio.fail_after(5):
            assert (await anext(stream)).data == "a"
        await stream.aclose()


CHARACTERS = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=8)
ENDS = st.lists(st.sampled_from([b"\n", b"\r\n", b"\r"]), min_size=12, max_size=12)
LINES = st.lists(
    st.one_of(
        st.sampled_from([b"", b"", b"data", b"data:", b"event: e", b": c", b"id: 1", b"data: a:b"]),
        CHARACTERS.map(lambda text: f"data: {text}".encode()),
    ),
    max_size=12,
)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_events_do_not_depend_on_chunk_boundaries(backend):
    @given(
        LINES, st.lists(st.sampled_from([b"\n", b"\r\n", b"\r"]), min_size=12, max_size=12), st.lists(st.integers(0))
    )
    def check(lines, ends, places):
        data = b"".join(line + end for line, end in zip(lines, ends, strict=False)) + b"\n\n"
        assert read(cut(data, places), backend) == read([data], backend)

    check()


def test_single_byte_chunks_give_the_same_events():
    data = "event: ü\r\ndata: ß\r\rdata: x\n\n".encode()
    assert read([bytes([one]) for one in data]) == read([data])


def test_parsing_time_of_a_long_line_is_linear():
    def seconds(length):
        line = [b"data: ", *[b"x"] * length, b"\n\n"]
        started = perf_counter()

        async def go():
            async def all_of_it():
                for chunk in line:
                    yield chunk

            return [event async for event in read_events(all_of_it())]

        assert len(anyio.run(go)[0].data) == length
        return perf_counter() - started

    seconds(1_000)
    assert seconds(400_000) < 40 * max(seconds(40_000), 0.02)
