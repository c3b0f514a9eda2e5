"""Skills that use up what there is: time, memory, threads, descriptors, output, the wire. Each ends within its limits,
typed, and another skill's calls go on.
"""

import pytest
from sideband.workers import CallTimeout, SkillFailed

# They end when their time is up, whatever they do against it.
ENDLESS = {
    "a loop": "while True: pass",
    "a loop that lets others run": "while True: await asyncio.sleep(0)",
    "a wait for nothing": "await asyncio.Event().wait()",
    "a sleep in the event loop's thread": "time.sleep(1000)",
    "a lock that it holds itself": """
lock = threading.Lock()
lock.acquire()
lock.acquire()
""",
    "a cancellation swallowed again and again": """
while True:
    try:
        await asyncio.sleep(1000)
    except asyncio.CancelledError:
        pass
""",
    "a cancellation swallowed while spinning": """
while True:
    try:
        await asyncio.sleep(0)
    except BaseException:
        pass
""",
    "a cancellation answered by another wait": """
try:
    await asyncio.sleep(1000)
finally:
    await asyncio.shield(asyncio.sleep(1000))
""",
    "a generator that takes no exception": """
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
    "a finaliser without end": """
class Trap:
    def __del__(self):
        while True: pass
trap = Trap()
del trap
""",
    "a signal handler without end": """
import signal
def forever(*_):
    while True: pass
signal.signal(signal.SIGUSR1, forever)
signal.raise_signal(signal.SIGUSR1)
""",
    "an error whose text never comes": """
class Odd(Exception):
    def __str__(self):
        while True: pass
raise Odd()
""",
    "itself, stopped": """
import signal
os.kill(os.getpid(), signal.SIGSTOP)
""",
    "every signal blocked": """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
while True: pass
""",
    "every signal ignored": """
import signal
for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(number, signal.SIG_IGN)
while True: pass
""",
    "a wait for a signal": """
import signal
signal.pause()
""",
    "a read from a pipe that nobody writes to": """
ends = os.pipe()
os.read(ends[0], 1)
""",
    "an import": """
while True: pass

@tool
async def attack(victim: str) -> object: ...
""",
    "callbacks that call themselves": """
loop = asyncio.get_running_loop()
def again():
    loop.call_soon(again)
again()
await asyncio.sleep(1000)
""",
    "a thread that never lets go": """
sys.setswitchinterval(1000)
def spin():
    while True: pass
threading.Thread(target=spin, daemon=True).start()
await asyncio.sleep(1000)
""",
    "a thread that is waited for": """
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
    "a result that is read without end": """
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
    "a hash of many rounds": """
import hashlib
hashlib.pbkdf2_hmac('sha256', b'x', b'y', 2**31 - 1)
""",
    "a database query": """
import sqlite3
sqlite3.connect(':memory:').execute(
    'WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n').fetchone()
""",
    "a comparison that never ends": """
class Odd:
    def __eq__(self, other):
        while True: pass
    __hash__ = None
[Odd()].index(1)
""",
    "work shared among all its threads": """
def spin():
    while True: pass
for _ in range(30):
    threading.Thread(target=spin, daemon=True).start()
spin()
""",
    "ops that are refused": """
while True:
    try:
        await vault.read(name='neighbour')
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
    "millions of ops at once": """
async def one():
    while True:
        try:
            await vault.read(name='own')
        except OpError:
            pass
await asyncio.gather(*(one() for _ in range(2000)))
""",
    "millions of ops, past the runtime": """
call = me()
while True:
    ask(call, 'own')
""",
    "millions of ops that it gives up at once": """
while True:
    asking = asyncio.ensure_future(vault.read(name='own'))
    await asyncio.sleep(0)
    asking.cancel()
""",
    "progress without end": """
while True:
    await progress.report(current=1, message='x' * 100)
""",
    "progress without end, past the runtime": """
call = me()
while True:
    line(__type__='progress', __id__=call, current=1)
""",
    "log lines without end, past the runtime": """
call = me()
while True:
    line(__type__='log', __id__=call, stream='stdout', text='x' * 1000)
""",
    "cancels without end": """
id = next_id()
ask(me(), 'own', id)
while True:
    line(__type__='cancel', __dispatch_id__=id)
""",
    "print without end": "while True: print('x' * 1000)",
    "print without a line feed": "while True: print('x' * 1000, end='')",
    "raw output of many lines": "while True: os.write(2, b'x\\n' * 30000)",
    "half a message": """
raw(b'{"__type__":"log",')
await asyncio.sleep(1000)
""",
    "a message at one byte a time": """
for byte in b'{"__type__":"log","stream":"stdout","text":"' + b'x' * 10**9:
    raw(bytes([byte]))
    await asyncio.sleep(0.01)
""",
    "large answers that it never reads": """
asking = [asyncio.ensure_future(vault.large()) for _ in range(32)]
await asyncio.sleep(0)
time.sleep(1000)
""",
    "large answers that it reads too slowly": """
import select, socket
asking = [asyncio.ensure_future(vault.large()) for _ in range(32)]
await asyncio.sleep(0)
while True:
    select.select([3], [], [])
    os.read(3, 1)
    time.sleep(0.05)
""",
}

# They want more than there is. Python says so, or the worker is ended.
GREEDY = {
    "memory": {
        "one block of memory": "return len(bytes(1 << 40))",
        "blocks of memory": """
kept = []
while True: kept.append(bytearray(os.urandom(1 << 20)))
""",
        "memory of many small objects": """
kept = []
while True: kept.append({'a': [object()], 'b': str(len(kept))})
""",
        "a text that doubles": """
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
        "memory of C": """
import ctypes
allocate = ctypes.CDLL(None).malloc
allocate.restype = ctypes.c_void_p
while True:
    block = allocate(16 << 20)
    if not block:
        raise MemoryError
    ctypes.memset(block, 1, 16 << 20)
""",
        "a bomb of zeros, unpacked": """
import zlib
packer = zlib.compressobj(1)
bomb = b''.join(packer.compress(bytes(1 << 20)) for _ in range(1024)) + packer.flush()
return len(zlib.decompress(bomb))
""",
        "tasks without end": """
while True: asyncio.ensure_future(asyncio.sleep(1000, bytes(1000)))
""",
        "a queue without end": """
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

# The call returns, and something of it goes on.
LEFT_BEHIND = {
    "a thread that goes on": """
def spin():
    while True: pass
threading.Thread(target=spin, daemon=True).start()
""",
    "callbacks that go on": """
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

WANTS_TOO_MUCH = {name: source for group in GREEDY.values() for name, source in group.items()}
HOSTILE = {**ENDLESS, **WANTS_TOO_MUCH, **LEFT_BEHIND}
# What Python's own error says, where the kernel's limit comes first.
TOLD = {
    "memory": ("MemoryError", "Cannot allocate memory"),
    "threads": ("can't start new thread",),
    "files": ("Too many open files",),
    "output": (),
}


@pytest.fixture(scope="module")
def endless(fight):
    return fight(ENDLESS, seconds=0.5, together=16)


@pytest.fixture(scope="module")
def greedy(fight):
    return fight(WANTS_TOO_MUCH, together=6, policy={"memory": "256M"})


@pytest.fixture(scope="module")
def left_behind(fight):
    return fight(LEFT_BEHIND)


@pytest.mark.parametrize("name", ENDLESS)
def test_what_does_not_end_is_ended_when_its_time_is_up(endless, name):
    assert isinstance(endless.attacks[name].error, CallTimeout)
    endless.check_others(name)


@pytest.mark.parametrize("name", [name for name in ENDLESS if "ops" in name])
def test_no_call_gets_more_than_its_number_of_ops(endless, name):
    # The two others are those of the calls before and after it.
    assert endless.executed.count((endless.attacks[name].skill, "own")) <= 5_000 + 2


@pytest.mark.parametrize("name", [name for name in ENDLESS if name.startswith(("print", "log lines", "raw"))])
def test_no_call_prints_more_than_is_kept(endless, name):
    assert endless.lines[endless.attacks[name].skill] <= 10_001


@pytest.mark.parametrize(("what", "name"), [(what, name) for what, group in GREEDY.items() for name in group])
def test_what_wants_too_much_is_told_so_or_ended(greedy, what, name):
    error = greedy.attacks[name].error
    if isinstance(error, SkillFailed):
        assert any(text in error.message for text in TOLD[what])
    else:
        assert error.code == f"worker.{what}"
    greedy.check_others(name)


@pytest.mark.parametrize("name", LEFT_BEHIND)
def test_what_a_call_leaves_behind_does_not_keep_the_next_one_from_working(left_behind, name):
    assert left_behind.attacks[name].error is None
    left_behind.check_others(name)


def test_no_effect_was_executed_that_a_grant_does_not_cover_and_the_ledger_is_whole(endless, greedy, left_behind):
    for arena in (endless, greedy, left_behind):
        arena.check_record()
