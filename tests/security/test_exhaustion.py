"""Skills that exhaust time, memory, threads, descriptors, output or the protocol.

Each call fails with a typed error within its limits, and calls of other skills are not affected.
"""

import pytest
from sideband.workers import CallTimeout, SkillFailed

# Attacks that run until their timeout.
ENDLESS = {
    "a loop": "while True: pass",
    "a loop that yields to other tasks": "while True: await asyncio.sleep(0)",
    "an endless wait": "await asyncio.Event().wait()",
    "a blocking sleep": "time.sleep(1000)",
    "a deadlock with itself": """
lock = threading.Lock()
lock.acquire()
lock.acquire()
""",
    "ignoring cancellation": """
while True:
    try:
        await asyncio.sleep(1000)
    except asyncio.CancelledError:
        pass
""",
    "ignoring cancellation while spinning": """
while True:
    try:
        await asyncio.sleep(0)
    except BaseException:
        pass
""",
    "waiting again after cancellation": """
try:
    await asyncio.sleep(1000)
finally:
    await asyncio.shield(asyncio.sleep(1000))
""",
    "a generator that ignores exceptions": """
import types
@types.coroutine
def forever():
    while True:
        try:
            yield
        except BaseException:
            pass
await forever()
""",
    "an endless finalizer": """
class Trap:
    def __del__(self):
        while True: pass
trap = Trap()
del trap
""",
    "an endless signal handler": """
import signal
def forever(*_):
    while True: pass
signal.signal(signal.SIGUSR1, forever)
signal.raise_signal(signal.SIGUSR1)
""",
    "an error with endless text": """
class Odd(Exception):
    def __str__(self):
        while True: pass
raise Odd()
""",
    "stopping itself": """
import signal
os.kill(os.getpid(), signal.SIGSTOP)
""",
    "blocking every signal": """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
while True: pass
""",
    "ignoring every signal": """
import signal
for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(number, signal.SIG_IGN)
while True: pass
""",
    "a wait for a signal": """
import signal
signal.pause()
""",
    "a read from a pipe without a writer": """
ends = os.pipe()
os.read(ends[0], 1)
""",
    "an endless import": """
while True: pass

@tool
async def attack(victim: str) -> object: ...
""",
    "callbacks that schedule themselves": """
loop = asyncio.get_running_loop()
def again():
    loop.call_soon(again)
again()
await asyncio.sleep(1000)
""",
    "a thread that does not release the GIL": """
sys.setswitchinterval(1000)
def spin():
    while True: pass
threading.Thread(target=spin, daemon=True).start()
await asyncio.sleep(1000)
""",
    "awaiting an endless thread": """
def spin():
    while True: pass
await asyncio.to_thread(spin)
""",
    "a sum in C": "sum(range(10**12))",
    "a power in C": "pow(7, 10**9)",
    "a factorial in C": """
import math
math.factorial(10**8)
""",
    "a number that grows": """
number = 3
while True: number *= number
""",
    "an endless result": """
class Odd(list):
    def __iter__(self):
        while True: yield 1
return Odd([1, 2])
""",
    "a search in C": """
import itertools
'x' in itertools.repeat('y')
""",
    "a regular expression": """
import re
re.match(r'(a|aa)+$', 'a' * 60 + 'b')
""",
    "a key derivation": """
import hashlib
hashlib.pbkdf2_hmac('sha256', b'x', b'y', 2**31 - 1)
""",
    "a database query": """
import sqlite3
sqlite3.connect(':memory:').execute(
    'WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n').fetchone()
""",
    "an endless comparison": """
class Odd:
    def __eq__(self, other):
        while True: pass
    __hash__ = None
[Odd()].index(1)
""",
    "spinning in many threads": """
def spin():
    while True: pass
for _ in range(30):
    threading.Thread(target=spin, daemon=True).start()
spin()
""",
    "denied ops": """
while True:
    try:
        await vault.read(name='neighbor')
    except OpError:
        pass
""",
    "millions of ops": """
while True:
    try:
        await vault.read(name='own')
    except OpError:
        pass
""",
    "millions of concurrent ops": """
async def one():
    while True:
        try:
            await vault.read(name='own')
        except OpError:
            pass
await asyncio.gather(*(one() for _ in range(2000)))
""",
    "millions of ops, bypassing the runtime": """
call = me()
while True:
    ask(call, 'own')
""",
    "millions of cancelled ops": """
while True:
    asking = asyncio.ensure_future(vault.read(name='own'))
    await asyncio.sleep(0)
    asking.cancel()
""",
    "endless progress": """
while True:
    await progress.report(current=1, message='x' * 100)
""",
    "endless progress, bypassing the runtime": """
call = me()
while True:
    line(__type__='progress', __id__=call, current=1)
""",
    "log lines, bypassing the runtime": """
call = me()
while True:
    line(__type__='log', __id__=call, stream='stdout', text='x' * 1000)
""",
    "endless cancel messages": """
id = next_id()
ask(me(), 'own', id)
while True:
    line(__type__='cancel', __dispatch_id__=id)
""",
    "print in a loop": "while True: print('x' * 1000)",
    "print without line feeds": "while True: print('x' * 1000, end='')",
    "raw output of many lines": "while True: os.write(2, b'x\\n' * 30000)",
    "half a message": """
raw(b'{"__type__":"log",')
time.sleep(1000)  # otherwise the answer to a ping would complete the line
""",
    "a message sent byte by byte": """
for byte in b'{"__type__":"log","stream":"stdout","text":"' + b'x' * 10**9:
    raw(bytes([byte]))
    time.sleep(0.01)
""",
    "unread large answers": """
asking = [asyncio.ensure_future(vault.large()) for _ in range(32)]
await asyncio.sleep(0)
time.sleep(1000)
""",
    "large answers, read slowly": """
import select, socket
asking = [asyncio.ensure_future(vault.large()) for _ in range(32)]
await asyncio.sleep(0)
while True:
    select.select([3], [], [])
    os.read(3, 1)
    time.sleep(0.05)
""",
}

# Attacks that exceed a limit. Python raises an error, or the worker is killed.
GREEDY = {
    "memory": {
        "one block of memory": "return len(bytes(1 << 40))",
        "blocks of memory": """
kept = []
while True: kept.append(bytearray(os.urandom(1 << 20)))
""",
        "many small objects": """
kept = []
while True: kept.append({'a': [object()], 'b': str(len(kept))})
""",
        "a string that doubles": """
text = 'x'
while True: text += text
""",
        "lists in lists": """
nested = []
while True: nested = [nested, nested, bytes(1000)]
""",
        "shared memory": """
import mmap
kept = []
while True:
    kept.append(mmap.mmap(-1, 16 << 20))
    kept[-1].write(b'x' * (16 << 20))
""",
        "memory of the C library": """
import ctypes
allocate = ctypes.CDLL(None).malloc
allocate.restype = ctypes.c_void_p
while True:
    block = allocate(16 << 20)
    if not block:
        raise MemoryError
    ctypes.memset(block, 1, 16 << 20)
""",
        "a decompression bomb": """
import zlib
packer = zlib.compressobj(1)
bomb = b''.join(packer.compress(bytes(1 << 20)) for _ in range(1024)) + packer.flush()
return len(zlib.decompress(bomb))
""",
        "endless tasks": """
while True: asyncio.ensure_future(asyncio.sleep(1000, bytes(1000)))
""",
        "an endless queue": """
queue = asyncio.Queue()
while True: queue.put_nowait(bytes(10_000))
""",
        "a database in memory": """
import sqlite3
database = sqlite3.connect(':memory:')
database.execute('CREATE TABLE t (x)')
while True: database.execute('INSERT INTO t VALUES (zeroblob(1000000))')
""",
        "memory at import": """
kept = []
while True: kept.append(bytearray(os.urandom(1 << 20)))

@tool
async def attack(victim: str) -> object: ...
""",
    },
    "threads": {
        "threads": """
for _ in range(10_000):
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
""",
        "threads of an executor": """
from concurrent.futures import ThreadPoolExecutor
pool = ThreadPoolExecutor(10_000)
for _ in range(10_000):
    pool.submit(time.sleep, 1000)
""",
        "threads that start threads": """
def more():
    threading.Thread(target=more, daemon=True).start()
    threading.Thread(target=more, daemon=True).start()
    time.sleep(1000)
problems = []
threading.excepthook = problems.append
more_of_them = [threading.Thread(target=more, daemon=True) for _ in range(200)]
for thread in more_of_them:
    thread.start()
""",
    },
    "files": {
        "descriptors": """
kept = []
while True: kept.append(os.open(__file__, os.O_RDONLY))
""",
        "copies of descriptors": "while True: os.dup(3)",
        "pipes": """
kept = []
while True: kept.append(os.pipe())
""",
        "pairs of sockets": """
import socket
kept = []
while True: kept.append(socket.socketpair())
""",
        "event loops": """
kept = []
while True: kept.append(asyncio.new_event_loop())
""",
    },
    "output": {
        "raw output": "while True: os.write(1, b'x' * 65536)",
        "raw errors": "while True: os.write(2, (b'x' * 1000 + b'\\n') * 60)",
        "raw output of a thread": """
def flood():
    while True: os.write(1, b'x' * 65536)
threading.Thread(target=flood, daemon=True).start()
await asyncio.sleep(1000)
""",
    },
}

# Attacks that continue after their call has returned.
LEFT_BEHIND = {
    "a thread that keeps running": """
def spin():
    while True: pass
threading.Thread(target=spin, daemon=True).start()
""",
    "callbacks that keep running": """
loop = asyncio.get_running_loop()
def again():
    loop.call_soon(again)
again()
""",
    "a timer that floods": """
def flood():
    while True: os.write(1, b'x' * 65536)
threading.Timer(0.01, flood).start()
""",
    "a task in another context": """
import contextvars
async def forever():
    while True:
        await asyncio.sleep(0)
contextvars.Context().run(asyncio.get_running_loop().create_task, forever())
""",
}

EXCEEDS_LIMIT = {name: source for group in GREEDY.values() for name, source in group.items()}
HOSTILE = {**ENDLESS, **EXCEEDS_LIMIT, **LEFT_BEHIND}
# The messages of Python's errors if a limit of the kernel applies before the watchdog.
MESSAGES = {
    "memory": ("MemoryError", "Cannot allocate memory"),
    "threads": ("start new thread",),
    "files": ("Too many open files",),
    "output": (),
}


# Lower limits than in production, so that attacks reach them within their timeout.
OPS, LINES = 20, 500
MANY_OPS = {name: source for name, source in ENDLESS.items() if "ops" in name}


@pytest.fixture(scope="module")
def endless(fight):
    others = {name: source for name, source in ENDLESS.items() if name not in MANY_OPS}
    return fight(others, seconds=0.3, together=16, limits={"MAX_LINES": LINES})


@pytest.fixture(scope="module")
def many_ops(fight):
    return fight(MANY_OPS, seconds=1.5, together=8, limits={"MAX_DISPATCHES": OPS})


@pytest.fixture(scope="module")
def greedy(fight):
    return fight(EXCEEDS_LIMIT, together=6, policy={"memory": "128M"})


@pytest.fixture(scope="module")
def left_behind(fight):
    return fight(LEFT_BEHIND)


def test_endless_call_times_out(endless, many_ops):
    for arena in (endless, many_ops):
        assert arena.unexpected(arena.attacks, lambda attack: isinstance(attack.error, CallTimeout)) == {}


def test_number_of_ops_of_a_call_is_limited(many_ops):
    counts = {name: many_ops.executed.count((attack.skill, "own")) for name, attack in many_ops.attacks.items()}
    assert max(counts.values()) >= OPS
    # Two more for the calls before and after the attack.
    assert {name: count for name, count in counts.items() if count > OPS + 2} == {}


def test_number_of_lines_of_a_call_is_limited(endless):
    names = [name for name in ENDLESS if name.startswith(("print", "log lines", "raw"))]
    counts = {name: endless.lines[endless.attacks[name].skill] for name in names}
    assert max(counts.values()) >= LINES
    # One more for the line that reports the limit.
    assert {name: count for name, count in counts.items() if count > LINES + 1} == {}


@pytest.mark.parametrize("limit", GREEDY)
def test_exceeding_a_limit_raises_or_kills_the_worker(greedy, limit):
    def is_expected(attack):
        if isinstance(attack.error, SkillFailed):
            return any(text in attack.error.message for text in MESSAGES[limit])
        return attack.code == f"worker.{limit}"

    assert greedy.unexpected(GREEDY[limit], is_expected) == {}


def test_call_that_leaves_work_behind_succeeds(left_behind):
    assert left_behind.unexpected(LEFT_BEHIND, lambda attack: attack.error is None) == {}


def test_other_calls_are_not_affected(endless, many_ops, greedy, left_behind):
    for arena in (endless, many_ops, greedy, left_behind):
        arena.check_others()


def test_executed_effects_are_granted_and_the_ledger_is_valid(endless, many_ops, greedy, left_behind):
    for arena in (endless, many_ops, greedy, left_behind):
        arena.check_record()
