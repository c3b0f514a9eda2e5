"""A host that is killed at any moment leaves a valid ledger that records the outcome of each effect."""

import os
import random
import signal
import sqlite3
import threading
import time
from collections import Counter
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

# `make storm` kills more hosts than `make test`.
ROUNDS = int(os.environ.get("SIDEBAND_STORM_ROUNDS", "12"))
SEED = int(os.environ.get("SIDEBAND_STORM_SEED", "20261122"))
ROUNDS_A_HOME = 6
STATUSES = {"done", "failed", "denied", "cancelled", "unknown"}

WRITER = """
import asyncio

@tool
async def write(tokens: list[str]) -> int:
    async def one(token):
        try:
            await sql.execute(f"INSERT INTO effects VALUES ('{token}')", db="storm.db")
        except OpError as error:
            # A killed host may already have executed it, so it is not repeated.
            if error.code != "effect.unknown":
                raise
    await asyncio.gather(*map(one, tokens))
    return len(tokens)
"""

CALLER = """
import asyncio

@tool
async def post(url: str, tokens: list[str]) -> int:
    async def one(token):
        try:
            await http.post(f"{url}/{token}")
        except OpError as error:
            if error.code != "effect.unknown":
                raise
    await asyncio.gather(*map(one, tokens))
    return len(tokens)
"""

TELLER = """
@tool
async def tell(url: str, tokens: list[str]) -> int:
    for number, token in enumerate(tokens):
        await progress.report(current=number, total=len(tokens))
        await http.get(f"{url}/{token}")
        await sql.query("SELECT count(*) FROM effects", db="storm.db")
    async with http.session(base_url=url) as session:
        await session.post(f"/{tokens[0]}-session")
    return len(tokens)
"""


@pytest.fixture(scope="module")
def world():
    """Run a service that counts the requests for each path."""
    seen = Counter()
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            with lock:
                seen[self.path.rpartition("/")[2]] += 1
            try:
                self.rfile.read(int(self.headers.get("content-length", "0")))
                self.send_response(200)
                self.send_header("content-length", "2")
                self.end_headers()
                self.wfile.write(b"{}")
            except OSError:
                self.close_connection = True

        do_POST = do_GET  # noqa: N815  name required by the base class

        def handle(self):
            try:
                super().handle()
            except OSError:
                # A killed host closes its connections.
                return

        def log_message(self, *words): ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", seen
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def make_home(make_host):
    def make(backend):
        crashing = make_host(backend=backend)
        for name, code in (("writer", WRITER), ("caller", CALLER), ("teller", TELLER)):
            crashing.skill(name, code)
        (crashing.home / "data").mkdir(parents=True, mode=0o700)
        crashing.home.chmod(0o700)
        with closing(sqlite3.connect(crashing.home / "data" / "storm.db")) as database:
            database.execute("CREATE TABLE effects (token TEXT)")
        return crashing

    return make


def rows(crashing):
    with closing(sqlite3.connect(crashing.home / "data" / "storm.db")) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return Counter(token for (token,) in database.execute("SELECT token FROM effects"))


def tokens(records, op, parameter):
    """Return the statuses of each token in the ledger, oldest first."""
    found = {}
    for name, status, _, params in reversed(records):
        if name == op:
            token = params[parameter].rpartition("/")[2] if parameter == "url" else params[parameter].split("'")[1]
            found.setdefault(token, []).append(status)
    return found


def is_keyed(token):
    return token.startswith("k-")


def agree(recorded, happened):
    """Check that the recorded statuses are consistent with the effects that happened."""
    for token, statuses in recorded.items():
        if "done" in statuses:
            assert happened[token], f"{token} is {statuses}, but did not happen"
        elif not {"unknown", "cancelled"} & set(statuses):
            assert not happened[token], f"{token} is {statuses}, but happened"
    for token, times in happened.items():
        assert times == 1, f"{token} happened {times} times"
        assert token in recorded, f"{token} happened without a record"


def judge(checked, crashing, seen):
    assert checked["problems"] == []
    records = checked["records"]
    assert {status for _, status, _, _ in records} <= STATUSES
    assert set(checked["recovered"]) <= {"unknown", "done", "failed"}
    agree(tokens(records, "sql.execute", "sql"), rows(crashing))
    posted = tokens(records, "http.post", "url")
    agree(posted, Counter({token: times for token, times in seen.items() if token in posted}))


def check_no_leftovers(crashing):
    assert list(crashing.temporary.iterdir()) == []
    assert crashing.groups() == []
    assert list(crashing.home.glob("ledger/hosts/*")) == []
    for name in ("skills", "sdk"):
        for folder in (crashing.home / name).iterdir():
            assert len(folder.name) == 64


def let_work(crashing, chance, url, number):
    """Start a host and kill it: usually while it is busy, sometimes before it is open."""
    crashing.start("storm", seed=chance.random(), round=number, url=url)
    if chance.random() < 0.7:
        crashing.hosts.expect("worked")
        time.sleep(chance.uniform(0, 0.25))
    else:
        time.sleep(chance.uniform(0, 0.7))
    crashing.kill()
    assert crashing.ended() == -signal.SIGKILL


def interrupt_recovery(crashing, chance, number):
    """Start a host that recovers the effects of the previous one, and kill it too unless it finishes first."""
    crashing.start("check", round=number, call=False)
    time.sleep(chance.uniform(0, 0.08))
    crashing.kill()
    assert crashing.ended() in {-signal.SIGKILL, 0}


def test_ledger_is_valid_after_a_kill_at_any_moment(make_home, world):
    print(f"SIDEBAND_STORM_SEED={SEED} SIDEBAND_STORM_ROUNDS={ROUNDS}")
    chance = random.Random(SEED)
    url, seen = world
    recovered = Counter()
    for number in range(ROUNDS):
        if number % ROUNDS_A_HOME == 0:
            crashing = make_home(("asyncio", "trio")[number // ROUNDS_A_HOME % 2])
            seen.clear()
        let_work(crashing, chance, url, number)
        crashing.check_no_survivors()
        if chance.random() < 0.2:
            interrupt_recovery(crashing, chance, number)
        last = number % ROUNDS_A_HOME == ROUNDS_A_HOME - 1
        crashing.start("check", round=number, call=last)
        checked = crashing.hosts.expect("checked")
        assert crashing.ended() == 0
        judge(checked, crashing, seen)
        recovered.update(checked["recovered"])
        if last:
            check_no_leftovers(crashing)
            crashing.check_no_survivors()
    print(f"recovered: {dict(recovered)}")
    # Otherwise the hosts were not killed at critical moments.
    assert recovered["unknown"] > ROUNDS
