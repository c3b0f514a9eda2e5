"""Runs killed with SIGKILL at random: no input is lost, no recorded effect is repeated, unknown outcomes are shown."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import anyio
import pytest
import sideband_store_sqlite.plugin
from sideband import Host, Plugin
from sideband.ledger import verify
from sideband_agent.sessions import MessageEntry, Sessions

ROUNDS = int(os.environ.get("SIDEBAND_STORM_ROUNDS", "12"))
SEED = int(os.environ.get("SIDEBAND_STORM_SEED", "4711"))
SERVER = Path(__file__).with_name("crash_server.py")


@pytest.fixture
def server():
    with subprocess.Popen(
        [sys.executable, SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.stdin.close()


def start(server, home, last, window):
    server.stdin.write(f"{home} {last} {window}\n")
    server.stdin.flush()
    return int(server.stdout.readline())


def lines(path):
    return path.read_text().splitlines() if path.exists() else []


async def look(home):
    plugins = [Plugin("store", "sqlite", sideband_store_sqlite.plugin)]
    async with Host(home=home, plugins=plugins, autoload=False) as host:
        sessions = Sessions(host.store, home)
        (info,) = await sessions.list()
        tree = await sessions.read(info.id)
        verdict = await verify(host.ledger.folder, host.store)
        return tree, verdict


@pytest.mark.parametrize("window", [1_000_000, 4_000])
def test_conversation_survives_kills_at_random_moments(tmp_path, server, kit, window):
    """With the small window, the conversation is also compacted every few runs."""
    home = tmp_path / "home"
    home.mkdir()
    dice = random.Random(SEED)
    killed = 0
    while killed < ROUNDS:
        pid = start(server, home, 1_000_000, window)
        # a random moment between the first line of code and several runs later; the kill must not wait for anything
        time.sleep(dice.uniform(0, 0.35))
        os.kill(pid, signal.SIGKILL)
        killed += int(server.stdout.readline()) == signal.SIGKILL
    acknowledged = len(lines(home / "acknowledged"))
    # enough runs for a compaction, even on a machine on which hardly any run completed before its kill
    start(server, home, acknowledged + 12, window)
    assert int(server.stdout.readline()) == 0
    assert not lines(home / "failures")
    assert lines(home / "finished")

    tree, verdict = anyio.run(look, home)
    assert verdict.ok
    assert not tree.notices
    kit.assert_valid(tree.context().messages)
    assert any(entry.type == "compaction" for entry in tree.entries) == (window < 1_000_000)
    messages = [entry.message for entry in tree.path() if isinstance(entry, MessageEntry)]
    kit.assert_valid(messages)
    tasks = Counter(message.text for message in messages if message.role == "user")
    assert set(tasks.values()) == {1}
    assert set(lines(home / "acknowledged")) <= set(tasks)

    effects = Counter(lines(home / "effects"))
    assert set(effects.values()) == {1}, [mark for mark, count in effects.items() if count > 1]
    doubts = 0
    marks = {}
    for entry in tree.entries:
        if isinstance(entry, MessageEntry) and entry.message.role == "assistant":
            marks.update({call.id: call.arguments["mark"] for call in entry.message.tool_calls})
        elif isinstance(entry, MessageEntry) and entry.message.role == "tool":
            mark = marks[entry.message.call]
            if not entry.message.is_error:
                assert effects[mark] == 1, mark
            else:
                doubts += 1
                assert "unknown" in entry.message.text
                assert entry.message.metadata["unknown"] is True
    print(f"{killed} kills, {len(tasks)} runs, {sum(effects.values())} effects, {doubts} shown as unknown")
