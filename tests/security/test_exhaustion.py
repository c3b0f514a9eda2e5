"""Skills that use up what there is: time, memory, threads, descriptors, output, the wire. Each ends within its limits,
typed, and another skill's calls go on.
"""

import pytest
from sideband.workers import CallTimeout, SkillFailed, SkillRefused

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
        "raw errors": "while True: os.write(2, b'x\\n' * 30000)",
        "raw output of a thread": """
def flood():
    while True: os.write(1, b'x' * 65536)
threading.Thread(target=flood, daemon=True).start()
await asyncio.sleep(1000)
""",
    },
}

# What a line can't be.
TOO_LARGE = {
    "a line of 1 GB": """
for _ in range(1 << 14):
    raw(b'x' * (1 << 16))
""",
    "a result of 1 GB": """
raw(b'{"__type__":"result","__id__":"%s","value":"' % me().encode())
for _ in range(1 << 14):
    raw(b'x' * (1 << 16))
""",
    "nesting of 100,000": "raw(b'[' * 100_000 + b']' * 100_000 + b'\\n')",
    "nesting of 100,000 objects": "raw(b'{\"a\":' * 100_000 + b'1' + b'}' * 100_000 + b'\\n')",
    "nesting of 100,000 without an end": "raw(b'[' * 100_000 + b'\\n')",
    "nesting in the parameters of an op": """
said = '{"__type__":"dispatch","__id__":"%s","__dispatch_id__":"%s","__caps__":[],'
said += '"__dispatch__":{"op":"vault.read","params":%s}}\\n'
raw((said % (me(), next_id(), '{"a":' * 100_000 + '1' + '}' * 100_000)).encode())
""",
    "millions of values": """
raw(b'{"__type__":"result","__id__":"%s","value":[' % me().encode() + b'[],' * 5_000_000 + b'[]]}\\n')
""",
    "millions of keys": """
keys = b','.join(b'"%d":0' % number for number in range(1_000_000))
raw(b'{"__type__":"result","__id__":"%s",' % me().encode() + keys + b'}\\n')
""",
}

# Results that no line can hold.
UNSENDABLE = {
    "a set": "return {1, 2}",
    "a set within a list": "return [{'a': {1}}]",
    "a cycle": """
cycle = []
cycle.append(cycle)
return cycle
""",
    "a cycle of objects": """
cycle = {}
cycle['self'] = {'again': cycle}
return {'cycle': cycle}
""",
    "not a number": "return float('nan')",
    "infinity within an object": "return {'a': float('-inf')}",
    "a lone surrogate": "return '\\ud800'",
    "a lone surrogate as a key": "return {'\\udfff': 1}",
    "an object": "return object()",
    "a function": "return lambda: None",
    "a module": "return sys",
    "a coroutine": """
async def later(): ...
coroutine = later()
try:
    return coroutine
finally:
    coroutine.close()
""",
    "a generator": "return (n for n in [1])",
    "a class": "return int",
    "an exception": "return ValueError('x')",
    "a task": "return asyncio.current_task()",
    "a complex number": "return 1j",
    "a decimal": """
import decimal
return decimal.Decimal(1)
""",
    "a key that is a tuple": "return {(1, 2): 3}",
    "a key that is bytes": "return {'a': {b'x': 1}}",
    "a reserved key": "return {'__error__': 'x'}",
    "a number of 5,000 digits": "return 10**5000",
    "nesting of 65": """
value = []
for _ in range(65): value = [value]
return value
""",
    "a list in 100,000 lists": """
value = []
for _ in range(100_000): value = [value]
return value
""",
    "17 MiB of text": "return 'x' * (17 << 20)",
    "17 MiB of bytes": "return bytes(17 << 20)",
}

# Results that are what they are, however they pretend.
ODD = {
    "a number that prints as a message": """
class Odd(float):
    def __repr__(self):
        return '0,"__id__":"' + victim + '"'
    __str__ = __repr__
return [Odd(1), {'a': Odd(2)}]
""",
    "a text that encodes as a message": """
class Odd(str):
    def encode(self, *_):
        return b'"}\\n{}'
    __str__ = __repr__ = encode
return [Odd('a')]
""",
    "an object whose items lie": """
class Odd(dict):
    def items(self):
        return [('a', 1), ('a', 2)]
return [Odd(b=1)]
""",
    "an object whose keys lie": """
class Odd(dict):
    def keys(self):
        return ['__id__', '__error__']
    def __getitem__(self, key):
        return victim
return Odd(value=1)
""",
    "an object that grows while it is read": """
class Odd(dict):
    def items(self):
        while True:
            yield str(len(self)), self
            if len(self) > 100:
                return
            self[len(self)] = 1
return [Odd(a=1)]
""",
    "keys that become equal": "return {'a': {1: 'a', '1': 'b'}}",
}

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
HOSTILE = {**ENDLESS, **WANTS_TOO_MUCH, **TOO_LARGE, **UNSENDABLE, **ODD, **LEFT_BEHIND}
# What Python's own error says, where the kernel's limit comes first.
TOLD = {
    "memory": ("MemoryError", "Cannot allocate memory"),
    "threads": ("can't start new thread",),
    "files": ("Too many open files",),
    "output": (),
}


@pytest.fixture(scope="module")
def endless(fight):
    return fight(ENDLESS, seconds=0.5, together=10)


@pytest.fixture(scope="module")
def greedy(fight):
    return fight(WANTS_TOO_MUCH, together=3, policy={"memory": "256M"})


@pytest.fixture(scope="module")
def others(fight):
    return fight({**TOO_LARGE, **UNSENDABLE, **ODD, **LEFT_BEHIND})


@pytest.mark.parametrize("name", ENDLESS)
def test_what_does_not_end_is_ended_when_its_time_is_up(endless, name):
    assert isinstance(endless.attacks[name].error, CallTimeout)
    endless.check_others(name)


@pytest.mark.parametrize("name", [name for name in ENDLESS if "ops" in name])
def test_no_call_gets_more_than_its_number_of_ops(endless, name):
    # The two others are those of the calls before and after it.
    assert endless.executed.count((endless.attacks[name].skill, "own")) <= 5_000 + 2


@pytest.mark.parametrize("name", [name for name in ENDLESS if name.startswith(("print", "log lines"))])
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


@pytest.mark.parametrize("name", TOO_LARGE)
def test_what_is_too_large_for_a_message_ends_its_worker(others, name):
    assert others.attacks[name].code == "worker.protocol"
    others.check_others(name)


@pytest.mark.parametrize("name", UNSENDABLE)
def test_a_result_that_can_not_be_sent_fails_its_call_and_nothing_else(others, name):
    attack = others.attacks[name]
    assert isinstance(attack.error, SkillRefused)
    assert "attack" in attack.error.message
    assert len(attack.after) == 1
    others.check_others(name)


@pytest.mark.parametrize("name", ODD)
def test_a_result_that_pretends_to_be_something_else_is_plain_data_or_an_error(others, name):
    attack = others.attacks[name]
    assert attack.code in {"", "skill.refused", "worker.protocol"}
    others.check_others(name)


@pytest.mark.parametrize("name", LEFT_BEHIND)
def test_what_a_call_leaves_behind_does_not_keep_the_next_one_from_working(others, name):
    assert others.attacks[name].error is None
    others.check_others(name)


def test_no_effect_was_executed_that_a_grant_does_not_cover_and_the_ledger_is_whole(endless, greedy, others):
    for arena in (endless, greedy, others):
        arena.check_record()
