"""Runs killed with SIGKILL at random: no input is lost, no recorded effect is repeated, unknown outcomes are shown."""

import os
import random
from collections import Counter

import anyio
import pytest
from sideband_agent.sessions import MessageEntry

ROUNDS = int(os.environ.get("SIDEBAND_STORM_ROUNDS", "12"))
SEED = int(os.environ.get("SIDEBAND_STORM_SEED", "4711"))


@pytest.mark.parametrize("window", [1_000_000, 4_000])
def test_conversation_survives_kills_at_random_moments(home, killed_hosts, look, kit, window):
    """With the small window, the conversation is also compacted every few runs."""
    dice = random.Random(SEED)
    killed = 0
    while killed < ROUNDS:
        # between the first line of code and several runs later
        killed += killed_hosts.kill(home, dice.uniform(0, 0.2), window, busy=dice.random() < 0.8)
    acknowledged = len(killed_hosts.notes(home, "acknowledged"))
    # enough runs for a compaction, even on a machine on which hardly any run completed before its kill
    assert killed_hosts.run(home, acknowledged + 12, window) == 0
    assert not killed_hosts.notes(home, "failures")
    assert killed_hosts.notes(home, "finished")

    tree, verdict = anyio.run(look, home)
    assert verdict.ok
    assert not tree.notices
    kit.assert_valid(tree.context().messages)
    assert any(entry.type == "compaction" for entry in tree.entries) == (window < 1_000_000)
    messages = [entry.message for entry in tree.path() if isinstance(entry, MessageEntry)]
    kit.assert_valid(messages)
    tasks = Counter(message.text for message in messages if message.role == "user")
    assert set(tasks.values()) == {1}
    assert set(killed_hosts.notes(home, "acknowledged")) <= set(tasks)

    effects = Counter(killed_hosts.notes(home, "effects"))
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
