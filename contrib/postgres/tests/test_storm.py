"""Four machines share a store. Their hosts are killed, and the server crashes, at random moments.

No effect with a key happens twice, no acknowledged entry of a session is lost, and no claim or lock is held for ever.
"""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import anyio
import pytest
from sideband import Host
from sideband.ledger import fetch_copies, query, verify
from sideband_agent.sessions import MessageEntry, Sessions

from .storm_host import PLUGINS

ROUNDS = int(os.environ.get("SIDEBAND_STORM_ROUNDS", "6"))
SEED = int(os.environ.get("SIDEBAND_STORM_SEED", "4711"))
HOSTS = 4


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.server.seen[self.path.removeprefix("/")] += 1
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def outside():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.seen, server.url = Counter(), f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=[0.05])
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def machines(tmp_path, own_server, schema, outside):
    """Return a function that starts the host of a machine. All that run at the end are killed."""
    running = []
    command = [sys.executable, Path(__file__).with_name("storm_host.py")]

    def start(number, *keys):
        home = tmp_path / f"machine-{number}"
        home.mkdir(exist_ok=True)
        words = [home, own_server.address, schema, outside.url, f"{SEED}-{number}-{len(running)}", *keys]
        with (tmp_path / f"errors-{number}").open("ab") as errors:
            running.append(subprocess.Popen([*command, *map(str, words)], stdout=errors, stderr=errors))
        return running[-1]

    yield start
    for one in running:
        one.kill()
        one.wait()


def noted(folder, name):
    return [line.split() for file in folder.glob(f"machine-*/{name}") for line in file.read_text().splitlines()]


def wait_for_progress(folder, hosts):
    """Wait until a host has written entries, so that it is killed in the middle of its work."""
    before, until = len(noted(folder, "acknowledged")), time.monotonic() + 60
    while len(noted(folder, "acknowledged")) < before + 5:
        assert time.monotonic() < until, "the hosts do nothing"
        assert all(one.poll() is None for one in hosts), "a host has ended"
        time.sleep(0.01)  # a process of its own is watched


async def look(home, settings, keys):
    """Return the texts of all sessions, the records of all effects with keys, and what each key recalls."""
    async with Host(home=home, settings=settings, plugins=PLUGINS, autoload=False) as host:
        sessions, texts = Sessions(host.store, home), Counter()
        for one in await sessions.list():
            async with await sessions.open(one.id) as session:  # its lock is free
                texts.update(
                    f"{one.channel} {entry.message.text}" for entry in session.path() if isinstance(entry, MessageEntry)
                )
        folders = [host.ledger.folder, *await fetch_copies(host.store, host.ledger.folder)]
        verdicts = [await verify(folder, host.store) for folder in folders]
        records = [one for folder in folders for one in await query(folder, op="http.post", limit=1_000_000)]
        recalled = {key: await host.broker.recall(key) for key in keys}
        return texts, verdicts, records, recalled


def test_no_effect_happens_twice_and_no_entry_is_lost_through_kills_of_hosts_and_crashes_of_the_server(
    machines, tmp_path, own_server, schema, outside
):
    dice = random.Random(SEED)
    hosts = [machines(number) for number in range(HOSTS)]
    for number in range(ROUNDS):
        wait_for_progress(tmp_path, hosts)
        if number % 3 == 1:
            own_server.restart("immediate" if number % 2 else "fast")
            continue
        victim = dice.randrange(HOSTS)
        hosts[victim].send_signal(signal.SIGKILL)
        hosts[victim].wait()
        hosts[victim] = machines(victim)
    wait_for_progress(tmp_path, hosts)
    for one in hosts:
        one.kill()
        one.wait()
    keys = sorted({key for key, _ in noted(tmp_path, "refused")} | set(outside.seen))
    ends = [machines(number, *keys) for number in range(HOSTS)]
    assert [one.wait(120) for one in ends] == [0] * HOSTS

    table = {"address": own_server.address, "schema": schema, "grace_seconds": 0.1}
    texts, verdicts, records, recalled = anyio.run(look, tmp_path / "reader", {"plugins": {"postgres": table}}, keys)
    assert max(outside.seen.values()) == 1, outside.seen.most_common(3)
    acknowledged = [" ".join(words) for words in noted(tmp_path, "acknowledged")]
    assert len(acknowledged) > 20
    assert [text for text in acknowledged if texts[text] != 1] == []
    assert max(texts.values()) == 1
    assert len(verdicts) == HOSTS + 1
    assert [one.problems for one in verdicts] == [()] * len(verdicts)
    # No key is claimed by a host that has ended. A host that is killed between an effect and its outcome, in the ledger
    # and in the store, leaves it unknown; a killed host has at most as many as it used at once.
    done = {key for key, found in recalled.items() if found is not None and found[0] == "done"}
    assert done <= {one.key for one in records if one.state == "done"} & set(outside.seen)
    assert set(recalled) - done <= {one.key for one in records}
    assert len(set(recalled) - done) <= HOSTS + ROUNDS
    print(f"{len(acknowledged)} entries, {len(done)} of {len(recalled)} keys done, others unknown")
