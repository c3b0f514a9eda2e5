"""The host's time: who keeps the host busy rests, and nobody else does."""

import time

import anyio
import pytest
from sideband.workers._host_time import HostTime
from sideband.workers._wire import is_large

pytestmark = pytest.mark.anyio


def use(share, seconds):
    """Keep the host busy. Whether the share is used up."""
    share.begin()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass
    return share.lap()


async def resting(share):
    began = time.perf_counter()
    await share.rest()
    return time.perf_counter() - began


async def keep_busy(share):
    while True:
        share.touch()
        await anyio.sleep(0.01)


async def test_a_little_at_a_time_needs_no_rest(monkeypatch):
    # On a busy machine the real clock would count what others took from this process.
    now = 0.0
    monkeypatch.setattr("sideband.workers._host_time.perf_counter", lambda: now)
    share = HostTime().share()
    for _ in range(200):
        share.begin()
        now += 0.0005
        assert not share.lap()
        now += 0.002


async def test_who_has_no_busy_neighbour_only_lets_others_run():
    time_of_host = HostTime()
    share, _idle_neighbour = time_of_host.share(), time_of_host.share()
    await anyio.sleep(0.15)
    assert use(share, 0.05)
    assert await resting(share) < 0.05
    assert not share.is_spent


async def test_beside_a_busy_neighbour_three_quarters_of_the_time_are_left():
    time_of_host = HostTime()
    share, neighbour = time_of_host.share(), time_of_host.share()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(keep_busy, neighbour)
        assert use(share, 0.05)
        # 48 ms of debt and 2 ms to spend, at a quarter of the time that passes; what it has used counts as passed.
        assert await resting(share) > 0.13
        assert not share.is_spent
        tasks.cancel_scope.cancel()


async def test_all_who_rest_at_once_share_one_quarter():
    time_of_host = HostTime()
    shares = [time_of_host.share() for _ in range(4)]
    neighbour = time_of_host.share()
    rested = []

    async def rest(share):
        rested.append(await resting(share))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(keep_busy, neighbour)
        for share in shares:
            assert use(share, 0.02)
        async with anyio.create_task_group() as resters:
            for share in shares:
                resters.start_soon(rest, share)
        tasks.cancel_scope.cancel()
    # 80 ms in all take 320 ms, and some of it has passed while the others were busy.
    assert max(rested) > 0.2


async def test_a_neighbour_that_is_gone_is_no_reason_to_rest():
    time_of_host = HostTime()
    share, neighbour = time_of_host.share(), time_of_host.share()
    neighbour.touch()
    neighbour.close()
    assert use(share, 0.05)
    assert await resting(share) < 0.05


async def test_what_runs_in_a_thread_counts_and_raises_as_it_would_here():
    time_of_host = HostTime()
    share = time_of_host.share()
    assert await share.run_in_thread(divmod, 7, 2) == (3, 1)
    assert not share.is_spent
    await share.run_in_thread(time.sleep, 0.02)
    assert share.is_spent
    with pytest.raises(ZeroDivisionError):
        await share.run_in_thread(divmod, 7, 0)


@pytest.mark.parametrize(
    "value", ["x" * 70_000, b"x" * 70_000, [0] * 5_000, {"a": [{"b": "x" * 70_000}]}, [[]] * 5_000]
)
def test_what_takes_long_to_send_is_large(value):
    assert is_large(value)


def test_what_contains_itself_is_large():
    endless = []
    endless.append(endless)
    assert is_large(endless)


@pytest.mark.parametrize("value", [None, 1, "x" * 1_000, {"status": 200, "body": "ok"}, [{"a": 1}] * 100])
def test_what_is_sent_at_once_is_not_large(value):
    assert not is_large(value)
