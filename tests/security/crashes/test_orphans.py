"""Whatever is killed, and whenever: nothing survives its host, nothing leaks, and the next call works."""

import itertools
import signal

import pytest

TOOLS = """
import asyncio, ctypes, os

@tool
async def ping() -> str:
    return "pong"

@tool
async def hold() -> None:
    await crash.wait(1000)

@tool
async def spin() -> None:
    while True:
        pass
"""


@pytest.fixture
def crashing(make_host, who, tier):
    crashing = make_host(who, tier)
    for name in ("one", "two"):
        crashing.skill(name, TOOLS)
    return crashing


def test_the_workers_of_a_host_that_is_killed_end_with_it(crashing):
    crashing.open()
    assert crashing.call("one.ping") == "pong"
    crashing.ask("one.spin")
    crashing.ask("two.hold")
    crashing.kill()
    assert crashing.ended() == -signal.SIGKILL
    crashing.nothing_survives()
    crashing.open()
    assert crashing.call("one.ping") == "pong"
    crashing.close()
    crashing.nothing_survives()
