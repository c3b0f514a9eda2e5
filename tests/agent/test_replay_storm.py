"""Skill calls killed with SIGKILL at random moments: each request reaches an outside server once, and calls finish."""

import json
import os
import random
import signal
import time

import anyio
from sideband.ledger import query

ROUNDS = int(os.environ.get("SIDEBAND_STORM_ROUNDS", "6"))
SEED = int(os.environ.get("SIDEBAND_STORM_SEED", "4711"))
SERVER = "replay_server.py"

POSTER = '''
import asyncio
from sideband.skill import http, now, random, tool, uuid

@tool
async def post(url: str, number: int) -> str:
    """Post to a server, one after the other and then concurrently."""
    for index in range(3):
        seen = (await http.get(f"{url}/look"))["body"].split()[0]
        await http.post(f"{url}/{number}-{index}-{seen}-{uuid()}")
    order = [0, 1, 2, 3]
    random.shuffle(order)
    await asyncio.gather(*(http.post(f"{url}/{number}-c{index}-{now().timestamp()}") for index in order))
    return f"posted {number}"
'''


def test_each_request_is_sent_once_and_only_unknown_effects_stop_a_call(home, outside, serving, write_poster):
    write_poster(POSTER)
    dice = random.Random(SEED)
    order = {
        "home": str(home),
        "tool": "poster__post",
        "arguments": {"url": outside.url},
        "announced": True,
        "policy": {"resume": "replay"},
        "skill_grants": {"poster": ["http:host=127.0.0.1"]},
    }
    killed = answered = 0
    with serving(SERVER) as process:

        def start(calls):
            process.stdin.write(json.dumps({**order, "calls": calls}) + "\n")
            process.stdin.flush()
            return int(process.stdout.readline())

        while killed < ROUNDS:
            pid = start(1_000)
            # Usually a moment at which a call runs, sometimes one before.
            before, deadline = outside.total(), time.monotonic() + (30 if dice.random() < 0.8 else 0)
            while outside.total() == before and time.monotonic() < deadline:
                time.sleep(0.005)
            time.sleep(dice.uniform(0, 0.1))
            os.kill(pid, signal.SIGKILL)
            killed += int(process.stdout.readline()) == signal.SIGKILL
        answered = len(anyio.run(lambda: query(home / "ledger", op="tool.call", status="done", limit=10_000)))
        start(answered + 3)
        assert int(process.stdout.readline()) == 0
    assert not (home / "failure").exists(), (home / "failure").read_text()

    results = json.loads((home / "answer").read_text())["results"]
    posts = outside.seen()
    assert set(posts.values()) == {1}, [path for path, times in posts.items() if times > 1]
    doubts = 0
    for number, (text, is_error, unknown) in enumerate(results):
        paths = [path for path in posts if path.startswith(f"/{number}-")]
        if not is_error:
            assert text == f"posted {number}"
            assert len(paths) == 7, paths
            continue
        assert unknown, text
        doubts += 1
        if "interrupted 4 times" in text:
            continue  # a call is replayed three times
        found = anyio.run(lambda: query(home / "ledger", op="http.post", status="unknown", limit=10_000))
        assert any(one.effect in text for one in found), text
    print(f"{killed} kills, {len(results)} calls, {sum(posts.values())} requests, {doubts} calls unknown")
