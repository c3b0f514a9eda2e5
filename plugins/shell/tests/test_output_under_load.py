"""Programs that write fast on both streams: every byte arrives in order, or a gap with its size."""

import anyio
import pytest

pytestmark = pytest.mark.anyio

COUNT = 100_000
SCRIPT = f"seq -f out%.0f 1 {COUNT} & seq -f err%.0f 1 {COUNT} >&2; wait"
TEXTS = {f"std{name}": "".join([f"{name}{number}\n" for number in range(1, COUNT + 1)]) for name in ("out", "err")}
SIZE = sum(map(len, TEXTS.values()))


class Received:
    """The output that a reader got. It checks that each part continues where the one before has ended."""

    def __init__(self):
        self.at = dict.fromkeys(TEXTS, 0)
        self.next = self.bytes = self.gaps = 0
        self._after_gap = set()

    def take(self, found):
        assert found["offset"] == self.next + found["omitted"]
        if found["omitted"]:
            self.gaps += found["omitted"]
            self._after_gap = set(TEXTS)
        for part in found["parts"]:
            name, content = part["stream"], part["content"]
            start = self.at[name]
            if name in self._after_gap:
                self._after_gap.remove(name)
                start = TEXTS[name].find(content, start)
            assert start >= 0
            assert TEXTS[name].startswith(content, start)
            self.at[name] = start + len(content)
            self.bytes += len(content)
        self.next = found["next"]
        return found["running"] or self.next < found["size"]


@pytest.mark.parametrize(
    ("settings", "max_bytes"),
    [({"max_background_bytes": 8 << 20}, 100_000), ({"max_background_bytes": 65_536}, 4_096)],
    ids=["fast", "slow"],
)
async def test_every_byte_arrives_in_order_or_as_a_gap(session, max_bytes):
    received = Received()
    program = await session.start(SCRIPT)
    while received.take(await session("output", program=program, offset=received.next, wait=30, max_bytes=max_bytes)):
        pass
    assert received.next == received.bytes + received.gaps == SIZE
    assert (received.gaps > 0) == (max_bytes == 4_096)


@pytest.mark.parametrize("settings", [{"max_background_bytes": 8 << 20}])
async def test_cancelled_reads_lose_nothing(session):
    received = Received()
    program = await session.start(f"{SCRIPT}; read line", input="")
    running = True
    while running:
        with anyio.move_on_after(0.002):
            await session("output", program=program, offset=received.next, wait=30, until="end")
        running = received.take(await session("output", program=program, offset=received.next, max_bytes=50_000))
    assert received.bytes == SIZE


@pytest.mark.parametrize("settings", [{"max_background_bytes": 65_536}])
async def test_several_programs_at_once_lose_nothing_unnoticed(session_of):
    sessions = [session_of(f"s{number % 2}") for number in range(4)]
    stopped = await sessions[0].start("while :; do seq -f out%.0f 1 1000; done")
    received = [Received() for _ in sessions]

    async def read(session, into, max_bytes):
        program = await session.start(SCRIPT)
        more = True
        while more:
            found = await session("output", program=program, offset=into.next, wait=30, max_bytes=max_bytes)
            more = into.take(found)

    async with anyio.create_task_group() as tasks:
        for session, into, max_bytes in zip(sessions, received, (1_000, 4_096, 60_000, 60_000), strict=True):
            tasks.start_soon(read, session, into, max_bytes)
        await sessions[0]("output", program=stopped, wait=30)
        await sessions[0]("stop", program=stopped, grace=0)
    assert [one.next for one in received] == [one.bytes + one.gaps for one in received] == [SIZE] * len(sessions)
    assert received[0].gaps > 0
    last = await sessions[0]("output", program=stopped, offset=-100)
    assert (last["running"], last["next"]) == (False, last["size"])


async def test_killed_program_leaves_what_it_has_printed(session):
    program = await session.start("while :; do seq -f out%.0f 1 100; done")
    await session("output", program=program, wait=30)
    await session("stop", program=program, grace=0)
    found = await session("output", program=program, offset=-1_000)
    assert (found["running"], found["next"]) == (False, found["size"])
    line = "".join(part["content"] for part in found["parts"]).split("\n")[-3]
    assert line.startswith("out")
