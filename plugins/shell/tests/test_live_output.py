"""The output of a running program reaches observers in order, bounded and redacted."""

import os
from pathlib import Path

import pytest
from anyio.lowlevel import checkpoint
from sideband_shell import ShellOutput, ShellTimeout

pytestmark = pytest.mark.anyio

LAST = 13_000_000
GRANTS = ["shell:binary=sh,code=yes,runs=any"]


class Reader:
    """A reader that collects the text of both streams."""

    def __init__(self):
        self.texts = {"stdout": "", "stderr": ""}
        self.closed = []

    def take(self, event):
        if event.text is not None:
            assert event.source == "shell.run"
            assert event.offset == len(self.texts[event.stream].encode())
            self.texts[event.stream] += event.text
        elif event.closed:
            self.closed.append(event.stream)


async def run(host, script, take):
    return await host.op(
        "shell.run", {"binary": "sh", "args": ["-c", script]}, grants=GRANTS, on_progress=take, deadline=120
    )


async def test_output_of_both_streams_is_delivered(host):
    reader = Reader()
    await run(host, "printf 'one\\ntwo'; printf 'three' >&2", reader.take)
    assert reader.texts == {"stdout": "one\ntwo", "stderr": "three"}
    assert {"stdout", "stderr"} <= set(reader.closed)


async def test_output_is_delivered_while_the_program_runs(host, tmp_path):
    folder = tmp_path / "shared"
    folder.mkdir()

    def take(event):
        if event.text == "ready":
            (folder / "seen").touch()

    script = f"printf ready; while [ ! -e {folder}/seen ]; do sleep 0.01; done; printf ' done'"
    request = {"binary": "sh", "args": ["-c", script], "read": [str(folder)], "timeout": 30}
    result = await host.op("shell.run", request, on_progress=take)
    assert result["stdout"] == "ready done"


async def test_characters_that_are_split_over_reads_are_whole_and_others_are_replaced(host):
    reader = Reader()
    await run(host, r"printf '\303'; sleep 0.1; printf '\251 \377 \303'", reader.take)
    assert reader.texts["stdout"] == "é \ufffd \ufffd"


async def test_secret_in_the_output_is_redacted(host):
    host.redactor.protect("canary-7f3a9c51", "canary")
    reader = Reader()
    await run(host, "printf 'is canary-'; sleep 0.1; printf '7f3a9c51!'", reader.take)
    assert reader.texts["stdout"] == "is [redacted:canary]!"


async def test_output_of_a_program_that_exceeds_its_time_is_closed(host):
    reader = Reader()
    with pytest.raises(ShellTimeout, match="did not exit within"):
        await host.op(
            "shell.run",
            {"binary": "sh", "args": ["-c", "printf begun; sleep 60"], "timeout": 0.5},
            grants=["shell:binary=sh,code=yes,runs=any"],
            on_progress=reader.take,
        )
    assert reader.texts["stdout"] == "begun"
    assert "stdout" in reader.closed


@pytest.mark.parametrize("settings", [{"max_total_bytes": 1_024}])
async def test_output_that_exceeds_the_limit_is_delivered_too(host):
    reader = Reader()
    with pytest.raises(ShellOutput, match="exceeds the limit"):
        await run(host, "printf '%02000d' 0", reader.take)
    assert reader.texts["stdout"] == "0" * 2_000


async def test_incomplete_character_at_the_end_of_a_killed_program_is_delivered(host):
    reader = Reader()
    params = {"binary": "sh", "args": ["-c", r"printf 'caf\303'; sleep 60"], "timeout": 0.5}
    with pytest.raises(ShellTimeout):
        await host.op("shell.run", params, grants=GRANTS, on_progress=reader.take)
    assert reader.texts["stdout"] == "caf\ufffd"


class SlowReader:
    """A reader of ``seq 1 13000000``, which checks each byte, adds up gaps, and measures the memory of the process."""

    def __init__(self):
        self.offset = 0
        self.gaps = 0
        self.received = 0
        self.is_closed = False
        self.before = memory()
        self.most = 0

    async def take(self, event):
        for _ in range(40):  # so that it is slower than the program
            await checkpoint()
        self.most = max(self.most, memory() - self.before)
        if event.stream != "stdout":
            return
        assert event.offset == self.offset
        if event.gap is not None:
            self.gaps += event.gap
            self.offset += event.gap
        elif event.closed:
            self.is_closed = True
        else:
            assert event.text == numbers(event.offset, len(event.text))
            self.received += len(event.text)
            self.offset += len(event.text)


def memory():
    """Return the resident memory of the process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def numbers(offset, size):
    """Return a part of the lines from 1 to 13,000,000."""
    digits, start, first = 1, 0, 1
    while offset >= (following := start + 9 * first * (digits + 1)):
        digits, start, first = digits + 1, following, first * 10
    line, skipped = divmod(offset - start, digits + 1)
    begin = first + line
    lines = range(begin, min(LAST, begin + size // (digits + 1) + 2) + 1)
    return "".join([f"{number}\n" for number in lines])[skipped : skipped + size]


async def test_hundred_megabytes_reach_a_slow_reader_in_order_or_as_gaps_in_bounded_memory(host):
    reader = SlowReader()
    await run(host, f"seq 1 {LAST}", reader.take)
    size = 105_888_897
    assert reader.offset == reader.gaps + reader.received == size
    assert reader.is_closed
    assert reader.gaps > 0
    assert reader.received > 1 << 20
    assert reader.most < 48 << 20
