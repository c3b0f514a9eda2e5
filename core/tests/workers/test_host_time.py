"""Shares of the host's time: a worker that keeps the host busy must rest."""

import time

import anyio
import pytest
from sideband.workers._host_time import HostTime
from sideband.workers._wire import is_large

pytestmark = pytest.mark.anyio

both_backends = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])


def use(share, seconds):
    """Keep the host busy, and return whether the share is spent."""
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


async def test_small_amounts_of_time_need_no_rest(monkeypatch):
    # The real clock would also count the time that other processes take from this one.
    now = 0.0
    monkeypatch.setattr("sideband.workers._host_time.perf_counter", lambda: now)
    share = HostTime().share()
    for _ in range(200):
        share.begin()
        now += 0.0005
        assert not share.lap()
        now += 0.002


@both_backends
async def test_rest_is_short_without_a_busy_neighbor():
    time_of_host = HostTime()
    share, _idle_neighbor = time_of_host.share(), time_of_host.share()
    await anyio.sleep(0.15)
    assert use(share, 0.05)
    assert await resting(share) < 0.05
    assert not share.is_spent


async def test_spent_share_recovers_at_a_quarter_of_the_time_beside_a_busy_neighbor():
    time_of_host = HostTime()
    share, neighbor = time_of_host.share(), time_of_host.share()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(keep_busy, neighbor)
        assert use(share, 0.05)
        # 48 ms of debt and 2 ms of budget are earned at a quarter of the elapsed time, which includes the 50 ms used.
        assert await resting(share) > 0.13
        assert not share.is_spent
        tasks.cancel_scope.cancel()


@both_backends
async def test_resting_shares_share_one_quarter_of_the_time():
    time_of_host = HostTime()
    shares = [time_of_host.share() for _ in range(4)]
    neighbor = time_of_host.share()
    rested = []

    async def rest(share):
        rested.append(await resting(share))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(keep_busy, neighbor)
        for share in shares:
            assert use(share, 0.02)
        async with anyio.create_task_group() as resters:
            for share in shares:
                resters.start_soon(rest, share)
        tasks.cancel_scope.cancel()
    # 80 ms in total take 320 ms, a part of which has elapsed while the other shares were busy.
    assert max(rested) > 0.2


async def test_closed_neighbor_does_not_prolong_the_rest():
    time_of_host = HostTime()
    share, neighbor = time_of_host.share(), time_of_host.share()
    neighbor.touch()
    neighbor.close()
    assert use(share, 0.05)
    assert await resting(share) < 0.05


async def test_time_in_a_thread_is_charged_and_exceptions_are_raised():
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
def test_value_that_is_slow_to_encode_is_large(value):
    assert is_large(value)


def test_recursive_value_is_large():
    endless = []
    endless.append(endless)
    assert is_large(endless)


@pytest.mark.parametrize("value", [None, 1, "x" * 1_000, {"status": 200, "body": "ok"}, [{"a": 1}] * 100])
def test_small_value_is_not_large(value):
    assert not is_large(value)
