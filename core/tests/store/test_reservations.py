"""Reservations: no more than the limit within any window, and what is given back or expires is available again."""

import subprocess
import sys
from collections import Counter
from functools import partial
from types import SimpleNamespace

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sideband.errors import ReservationRefused, StoreConflict
from sideband.store import Reservations
from sideband_agent._memory_store import MemoryStore
from sideband_store_sqlite import open_sqlite

pytestmark = pytest.mark.anyio

START = 1_800_000_000.0
BOTH = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])


@pytest.fixture
def anyio_backend():
    return "asyncio"


class Clock:
    """A clock that is set by hand."""

    def __init__(self):
        self.now = START

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def limits(clock):
    return Reservations(MemoryStore(), clock)


async def taken(limits, *, of=20, seconds=60, count=1, name="posts"):
    """Take something, and return what was taken, or ``None`` if it was refused."""
    try:
        return await limits.take(name, count, of=of, seconds=seconds)
    except ReservationRefused:
        return None


async def test_refusal_says_how_much_is_left_and_when_enough_is_free(limits, clock):
    await limits.take("posts", 3, of=5, seconds=64)
    clock.now += 10
    await limits.take("posts", 1, of=5, seconds=64)
    with pytest.raises(ReservationRefused) as caught:
        await limits.take("posts", 2, of=5, seconds=64)
    error = caught.value
    assert (error.code, error.retryable, error.free_in) == ("reservation.refused", True, 55)
    assert error.message == "`posts`: requested 2, but 1 of 5 within 64 s are left"
    assert error.hint == "try again in 55 s"
    clock.now += 54.9
    assert await taken(limits, count=2, of=5, seconds=64) is None
    clock.now += 0.2
    assert await taken(limits, count=2, of=5, seconds=64)


@pytest.mark.parametrize(("waited", "hint"), [(63.9, "try again in 2 s"), (64.9, "try again in 1 s")])
async def test_time_of_the_next_attempt_is_rounded_up(limits, clock, waited, hint):
    await limits.take("posts", of=1, seconds=64)
    clock.now += waited
    with pytest.raises(ReservationRefused) as caught:
        await limits.take("posts", of=1, seconds=64)
    assert caught.value.hint == hint


async def test_context_in_place_of_its_store_is_refused():
    context = SimpleNamespace(store=MemoryStore())
    with pytest.raises(TypeError, match=r"`Reservations` needs a store, such as `ctx\.store`, got SimpleNamespace"):
        Reservations(context)


async def test_amount_is_available_again_when_its_window_has_passed(limits, clock):
    assert await taken(limits, count=20)
    clock.now += 60
    assert await taken(limits) is None
    clock.now += 1  # a 64th of the window
    assert await taken(limits, count=20)


async def test_amount_that_is_given_back_is_available_at_once(limits):
    first = await taken(limits, count=15)
    assert await taken(limits, count=5)
    await first.give_back()
    assert await taken(limits, count=15)
    assert await taken(limits) is None


async def test_amount_is_given_back_only_once(limits):
    first, _ = await taken(limits, count=5), await taken(limits, count=15)
    await first.give_back()
    await first.give_back()
    assert await taken(limits, count=6) is None


async def test_amount_is_not_given_back_after_its_window(limits, clock):
    first = await taken(limits, count=20)
    clock.now += 61
    assert await taken(limits, count=20)
    await first.give_back()
    assert await taken(limits) is None


async def test_limits_with_other_names_and_windows_are_separate(limits):
    assert await taken(limits, count=20)
    assert await taken(limits, count=20, name="other")
    assert await taken(limits, count=20, seconds=3_600)
    assert await taken(limits, count=20, seconds=60.5)
    assert await taken(limits, seconds=60.0) is None
    assert sorted(await limits.store.keys()) == [
        *("reservation/3600.0/posts", "reservation/60.0/other", "reservation/60.0/posts", "reservation/60.5/posts")
    ]


async def test_lower_limit_holds_for_what_was_taken_before(limits):
    assert await taken(limits, count=10, of=20)
    with pytest.raises(ReservationRefused, match="requested 1, but 0 of 5 within 60 s are left"):
        await limits.take("posts", of=5, seconds=60)


async def test_clock_that_is_set_back_blocks_for_no_longer_than_a_window(limits, clock):
    assert await taken(limits, count=20)
    clock.now -= 100_000
    assert await taken(limits) is None
    clock.now += 61
    assert await taken(limits, count=20)


async def test_document_stays_small(limits, clock):
    for _ in range(500):
        assert await taken(limits, of=10_000, seconds=64)
        clock.now += 0.5
    (key,) = await limits.store.keys()
    assert len((await limits.store.get(key)).value) == 65


@pytest.mark.parametrize("number", [0, -1, True, 1.0, "1", None, 2**50 + 1, float("nan")])
async def test_invalid_amount_is_refused(limits, number):
    with pytest.raises(ValueError, match="`of` must be an integer of at least 1"):
        await limits.take("posts", of=number, seconds=60)
    with pytest.raises(ValueError, match="`count` must be an integer of at least 1"):
        await limits.take("posts", number, of=2**50, seconds=60)
    assert await limits.store.keys() == []


async def test_amount_above_the_limit_is_invalid(limits):
    with pytest.raises(ValueError, match="`count` must not exceed the limit of 20, got 21"):
        await limits.take("posts", 21, of=20, seconds=60)


@pytest.mark.parametrize("seconds", [0, -1, True, "60", None, float("nan"), float("inf"), 1e10, 1e-9])
async def test_invalid_window_is_refused(limits, seconds):
    with pytest.raises(ValueError, match=r"`seconds` must be a number from 0\.001 to 1,000,000,000, got"):
        await limits.take("posts", of=20, seconds=seconds)


STEPS = st.lists(st.tuples(st.sampled_from(("wait", "take", "give")), st.floats(0, 40), st.integers(1, 7)), max_size=40)


@given(STEPS)
def test_no_window_contains_more_than_the_limit(steps):
    async def play():
        clock = Clock()
        limits = Reservations(MemoryStore(), clock)
        held = []  # when, how much, and the reservation
        for what, seconds, number in steps:
            if what == "wait":
                clock.now += seconds
            elif what == "give" and held:
                _, _, one = held.pop(number % len(held))
                await one.give_back()
            elif what == "take":
                one = await taken(limits, of=10, count=number)
                # It comes back at the latest after a 64th of the window more.
                late = sum(count for when, count, _ in held if clock.now - when < 60 * 65 / 64 + 1e-3)
                assert one is not None or late + number > 10
                if one is not None:
                    held.append((clock.now, number, one))
                assert sum(count for when, count, _ in held if clock.now - when < 60) <= 10

    anyio.run(play)


@BOTH
async def test_of_100_parallel_takers_exactly_20_get_something(tmp_path, anyio_backend):
    got = Counter()

    async def take(limits):
        got[await taken(limits) is not None] += 1

    async with open_sqlite(tmp_path) as store, anyio.create_task_group() as tasks:
        for _ in range(100):
            tasks.start_soon(take, Reservations(store))
    assert got == {True: 20, False: 80}


@BOTH
async def test_parallel_takers_that_conflict_retry_until_the_limit_is_reached(anyio_backend):
    class Slow(MemoryStore):
        """A store on another machine: other tasks run between reading and writing."""

        async def get(self, key):
            found = await super().get(key)
            await anyio.lowlevel.checkpoint()
            return found

    limits = Reservations(Slow())
    reservations = []

    async def take():
        reservations.append(await taken(limits))

    async def give(one):
        await one.give_back()

    async with anyio.create_task_group() as tasks:
        for _ in range(40):
            tasks.start_soon(take)
    held = [one for one in reservations if one]
    assert len(held) == 20
    async with anyio.create_task_group() as tasks:
        for one in held:
            tasks.start_soon(give, one)
    assert await taken(limits, count=20)


class Contended(MemoryStore):
    """A store in which another writer is always faster."""

    def __init__(self):
        super().__init__()
        self.attempts = 0
        self.retried = anyio.Event()

    async def put(self, key, value, *, version=None, durable=True):
        self.attempts += 1
        if self.attempts > 3:
            self.retried.set()
        raise StoreConflict(key)


@BOTH
async def test_waiting_for_other_writers_can_be_cancelled(anyio_backend):
    store = Contended()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(Reservations(store).take, "posts", of=20, seconds=60))
        await store.retried.wait()
        tasks.cancel_scope.cancel()
    assert await store.keys() == []


async def test_retries_are_bounded(monkeypatch):
    monkeypatch.setattr("sideband.store._reservations._RETRY_SECONDS", 0.05)
    with pytest.raises(StoreConflict):
        await Reservations(Contended()).take("posts", of=20, seconds=60)


async def test_failure_of_the_store_is_passed_on_and_nothing_is_repeated(limits):
    class Failing(MemoryStore):
        attempts = 0

        async def put(self, key, value, *, version=None, durable=True):
            self.attempts += 1
            await super().put(key, value, version=version)
            raise OSError("the disk failed after the write")

    store = Failing()
    with pytest.raises(OSError, match="the disk failed"):
        await Reservations(store).take("posts", of=20, seconds=60)
    assert store.attempts == 1


async def test_failed_attempt_to_give_back_is_not_repeated(clock):
    class Failing(MemoryStore):
        fails = False

        async def put(self, key, value, *, version=None, durable=True):
            written = await super().put(key, value, version=version)
            if self.fails:
                raise OSError("the disk failed after the write")
            return written

    store = Failing()
    limits = Reservations(store, clock)
    first, _ = await taken(limits, count=5), await taken(limits, count=5)
    store.fails = True
    with pytest.raises(OSError, match="the disk failed"):
        await first.give_back()
    store.fails = False
    await first.give_back()
    assert await taken(limits, count=16) is None
    assert await taken(limits, count=15)


TAKER = """
import sys
from pathlib import Path
import anyio
from sideband.errors import ReservationRefused
from sideband.store import Reservations
from sideband_store_sqlite import open_sqlite

async def main():
    got = 0
    async with open_sqlite(Path(sys.argv[1])) as store:
        for _ in range(int(sys.argv[2])):
            await Reservations(store).take("posts", of=20, seconds=3_600)
            got += 1
        print(got, flush=True)
        sys.stdin.read()

anyio.run(main)
"""


def taker(folder):
    """Start a process that takes 5."""
    arguments = [sys.executable, "-c", TAKER, str(folder), "5"]
    return subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


async def test_amount_that_a_killed_process_had_taken_is_available_after_its_window(tmp_path):
    with taker(tmp_path) as process:
        assert process.stdout.readline() == "5\n"
        process.kill()
    clock = Clock()
    async with open_sqlite(tmp_path) as store:
        # The process used the real time, which is before that of this clock.
        now = Reservations(store)
        assert await taken(now, count=16, seconds=3_600) is None
        assert await taken(now, count=15, seconds=3_600)
        clock.now = now.clock() + 3_660
        assert await taken(Reservations(store, clock), count=20, seconds=3_600)
