"""The kept output of a program in the background: every byte in order, or a gap with its size."""

from hypothesis import given
from hypothesis import strategies as st
from sideband_shell._output_log import OutputLog

LIMIT = 1_024
STREAMS = ("stdout", "stderr")


class Plain:
    """A text without secrets."""

    def feed(self, piece):
        return piece

    def end(self):
        return ""


def log_of(limit):
    return OutputLog(limit, {name: Plain() for name in STREAMS})


WRITES = st.lists(st.tuples(st.sampled_from(STREAMS), st.binary(max_size=700) | st.text(max_size=300).map(str.encode)))


@given(WRITES)
def test_every_byte_of_each_stream_is_kept_in_order(writes):
    log = log_of(1 << 20)
    for stream, data in writes:
        log.feed(stream, data)
    log.end()
    found = log.read(0, 1 << 20)
    for name in STREAMS:
        written = b"".join(data for stream, data in writes if stream == name)
        assert b"".join(one.data for one in found.parts if one.stream == name) == written
    assert (found.omitted, found.next) == (0, log.size)


@given(WRITES, st.lists(st.tuples(st.integers(0, 5), st.integers(1, 900))))
def test_reader_of_any_speed_gets_every_byte_or_a_gap_with_its_size(writes, reads):
    whole, log = log_of(1 << 20), log_of(LIMIT)
    for stream, data in writes:
        whole.feed(stream, data)
    whole.end()
    full = b"".join(one.data for one in whole.read(0, 1 << 20).parts)
    steps, at = [*writes, None], 0
    for before, size in [*reads, (len(steps), 1 << 20)]:
        for step in steps[:before]:
            log.end() if step is None else log.feed(*step)
        del steps[:before]
        found = log.read(at, size)
        assert found.offset == at + found.omitted
        assert b"".join(one.data for one in found.parts) == full[found.offset : found.next]
        assert len(full[found.offset : found.next]) <= size
        at = found.next
    assert at == len(full)


@given(WRITES)
def test_memory_is_bounded(writes):
    log = log_of(LIMIT)
    for stream, data in writes:
        log.feed(stream, data)
        assert sum(len(one.data) + 128 for one in log.read(0, 1 << 20).parts) <= LIMIT + 128
