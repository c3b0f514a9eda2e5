"""Power failures: a host is killed, and the files of its state lose what was not synced."""

import os
import random
from collections import Counter

import anyio
from sideband_agent.sessions import MessageEntry

ROUNDS = int(os.environ.get("SIDEBAND_STORM_ROUNDS", "12")) // 3
SEED = int(os.environ.get("SIDEBAND_STORM_SEED", "4711"))


def cut_power(home, dice, synced_sizes):
    """Truncate the files that the hosts append to: only a random part of what was not synced remains."""
    synced = Counter()
    for line in synced_sizes:
        size, _, path = line.partition(" ")
        synced[path] = max(synced[path], int(size))
    files = [*home.glob("ledger/*.jsonl"), *home.glob("store/*-wal")]
    for path in files:
        size = path.stat().st_size
        kept = min(synced[str(path)], size)
        os.truncate(path, dice.choice([kept, dice.randint(kept, size)]))
    for path in home.glob("store/*-shm"):
        path.unlink()  # it is memory, not a file on disk


def test_no_change_is_repeated_or_forgotten_after_a_power_failure(tmp_path, killed_hosts, look, kit):
    dice = random.Random(SEED)
    changed = number = 0
    while changed < ROUNDS:  # some hosts are killed before they have changed anything
        number += 1
        home = tmp_path / str(number)
        home.mkdir()
        killed_hosts.kill(home, dice.uniform(0, 0.2), busy=dice.random() < 0.8)
        cut_power(home, dice, killed_hosts.notes(home, "synced"))
        sent = max(map(int, killed_hosts.notes(home, "sent")), default=0)
        done = set(killed_hosts.notes(home, "effects"))
        changed += bool(done)
        assert killed_hosts.run(home, 4) == 0
        assert not killed_hosts.notes(home, "failures")

        tree, verdict = anyio.run(look, home)
        assert verdict.ok, verdict.problems
        messages = [entry.message for entry in tree.path() if isinstance(entry, MessageEntry)]
        kit.assert_valid(messages)
        effects = Counter(killed_hosts.notes(home, "effects"))
        assert set(effects.values()) <= {1}, (number, [mark for mark, count in effects.items() if count > 1])
        # What a model has seen is in the conversation, and each change has a call there.
        assert sum(message.role == "tool" for message in messages) >= sent
        calls = [call for message in messages if message.role == "assistant" for call in message.tool_calls]
        assert done <= {call.arguments["mark"] for call in calls}
