"""Ordinary code that must work in a skill, on the strongest tier, through a whole host."""

import pytest

# Each must return `True`.
ORDINARY = {
    "gathered tasks": """
return sum(await asyncio.gather(*(asyncio.sleep(0.001, n) for n in range(500)))) == 124_750
""",
    "a task group with a failing task": """
try:
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(asyncio.sleep(1000))
        raise ValueError('mine')
except ExceptionGroup as group:
    return [type(error) for error in group.exceptions] == [ValueError]
""",
    "timeouts": """
try:
    async with asyncio.timeout(0.01):
        await asyncio.sleep(1000)
except TimeoutError:
    return True
""",
    "queues, locks, events and semaphores": """
queue, lock, event, room = asyncio.Queue(2), asyncio.Lock(), asyncio.Event(), asyncio.Semaphore(2)
async def produce():
    for n in range(10):
        async with lock, room:
            await queue.put(n)
    event.set()
producing = asyncio.create_task(produce())
found = [await queue.get() for _ in range(10)]
await event.wait()
await producing
return found == list(range(10))
""",
    "asynchronous generators and context managers": """
import contextlib
@contextlib.asynccontextmanager
async def numbers():
    async def count():
        for n in range(3):
            await asyncio.sleep(0)
            yield n
    async with contextlib.aclosing(count()) as counted:
        yield counted
async with numbers() as found:
    return [n async for n in found] == [0, 1, 2]
""",
    "50 ops at once": """
return await asyncio.gather(*(vault.read(name='own') for _ in range(50))) == ['what own keeps'] * 50
""",
    "ops in tasks of tasks": """
async def one(): return await asyncio.create_task(vault.read(name='own'))
return await asyncio.create_task(one()) == 'what own keeps'
""",
    "a cancelled op, followed by another": """
asking = asyncio.ensure_future(vault.read(name='own'))
await asyncio.sleep(0)
asking.cancel()
return await vault.read(name='own') == 'what own keeps'
""",
    "ops from a loop in a thread": """
def work(): return asyncio.run(vault.read(name='own'))
return await asyncio.to_thread(work) == 'what own keeps'
""",
    "ops from a thread, through its own loop": """
loop = asyncio.get_running_loop()
def work(): return asyncio.run_coroutine_threadsafe(vault.read(name='own'), loop).result(10)
return await asyncio.to_thread(work) == 'what own keeps'
""",
    "an expected denial": """
try:
    await vault.read(name='neighbor')
except OpError as error:
    return (error.code, error.op, error.retryable) == ('op.denied', 'vault.read', False)
""",
    "a large answer and a large result": """
answer = await vault.large()
return len(answer) == 4 << 20
""",
    "progress and lines printed": """
import logging, warnings
await progress.report(current=1, total=2, message='half')
print('a line', flush=True)
print('another', file=sys.stderr)
logging.getLogger('x').warning('a warning')
warnings.warn('one more')
return True
""",
    "threads, locks and thread-local data": """
local, lock, total = threading.local(), threading.Lock(), []
def work(n):
    local.n = n
    with lock:
        total.append(local.n)
threads = [threading.Thread(target=work, args=(n,)) for n in range(20)]
for thread in threads: thread.start()
for thread in threads: thread.join()
return sorted(total) == list(range(20))
""",
    "a pool of threads": """
from concurrent.futures import ThreadPoolExecutor, as_completed
with ThreadPoolExecutor(20) as pool:
    return sum(done.result() for done in as_completed(pool.submit(pow, n, 2) for n in range(100))) == 328_350
""",
    "a timer and a barrier": """
barrier = threading.Barrier(2)
threading.Timer(0.01, barrier.wait).start()
return await asyncio.to_thread(barrier.wait, 10) in (0, 1)
""",
    "context variables": """
import contextvars
name = contextvars.ContextVar('name', default='none')
name.set('mine')
async def child():
    name.set('its')
    return name.get()
return [await asyncio.create_task(child()), name.get(), await asyncio.to_thread(name.get)] == ['its', 'mine', 'mine']
""",
    "time zones": """
from datetime import datetime, UTC
from zoneinfo import ZoneInfo, available_timezones
moment = datetime(2024, 7, 1, 12, tzinfo=UTC).astimezone(ZoneInfo('Asia/Kathmandu'))
return moment.strftime('%H:%M %z') == '17:45 +0545' and len(available_timezones()) > 300
""",
    "decimals, fractions and statistics": """
from decimal import Decimal
from fractions import Fraction
from statistics import fmean
return (Decimal('0.1') * 3, Fraction(1, 3) * 3, fmean([1, 2])) == (Decimal('0.3'), 1, 1.5)
""",
    "a database in memory": """
import sqlite3
with sqlite3.connect(':memory:') as database:
    database.execute('CREATE TABLE t (x, y)')
    database.executemany('INSERT INTO t VALUES (?, ?)', [(n, str(n)) for n in range(10_000)])
    database.create_function('twice', 1, lambda n: 2 * n)
    found = database.execute('SELECT max(twice(x)), count(*) FROM t WHERE y LIKE \\'9%\\' ORDER BY 1').fetchone()
return found == (19_998, 1_111)
""",
    "a large sort in a database in memory": """
import sqlite3
database = sqlite3.connect(':memory:')
database.execute('PRAGMA temp_store = MEMORY')
database.execute('CREATE TABLE t AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 200000) '
                 'SELECT x, hex(randomblob(16)) AS y FROM n')
return len(database.execute('SELECT * FROM t ORDER BY y').fetchall()) == 200_000
""",
    "json, csv, toml, xml and html": """
import csv, html, io, json, tomllib
import xml.etree.ElementTree as tree
rows = list(csv.DictReader(io.StringIO('a,b\\n1,"2,3"\\n')))
return (rows, json.loads(json.dumps({'a': [1.5, None]})), tomllib.loads('a = 1'), tree.fromstring('<a>b</a>').text,
        html.unescape('&lt;')) == ([{'a': '1', 'b': '2,3'}], {'a': [1.5, None]}, {'a': 1}, 'b', '<')
""",
    "compression and archives": """
import bz2, gzip, io, lzma, tarfile, zipfile, zlib
data = b'abc' * 10_000
for module in (bz2, gzip, lzma, zlib):
    assert module.decompress(module.compress(data)) == data
archive = io.BytesIO()
with zipfile.ZipFile(archive, 'w', zipfile.ZIP_DEFLATED) as file:
    file.writestr('a/b.txt', data)
with tarfile.open(fileobj=io.BytesIO(), mode='w:gz') as file:
    file.addfile(tarfile.TarInfo('x'))
return zipfile.ZipFile(archive).read('a/b.txt') == data
""",
    "hashes, signatures and tls without a network": """
import hashlib, hmac, ssl
hashlib.scrypt(b'x', salt=b'y', n=16, r=1, p=1)
ssl.create_default_context()
same = hmac.compare_digest(hmac.new(b'k', b'm', 'sha256').digest(), hmac.digest(b'k', b'm', 'sha256'))
return same and hashlib.sha256(b'').hexdigest()[:8] == 'e3b0c442'
""",
    "random numbers": """
import random, secrets, uuid
return len({uuid.uuid4(), uuid.uuid4(), uuid.uuid1(), secrets.token_hex(), random.random(), random.random()}) == 6
""",
    "dataclasses, enumerations, types and abstract classes": """
import abc, dataclasses, enum, typing
class Color(enum.StrEnum):
    RED = enum.auto()
@dataclasses.dataclass(frozen=True, slots=True)
class Point(typing.Generic[typing.TypeVar('T')]):
    x: int
    color: Color = Color.RED
class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self): ...
return dataclasses.asdict(Point(1)) == {'x': 1, 'color': 'red'} and typing.get_type_hints(Point)['x'] is int
""",
    "regular expressions, texts and templates": """
import re, string, textwrap, unicodedata
return (re.sub(r'(\\w)(\\d)', r'\\2\\1', 'a1 b2'), string.Template('$x').substitute(x=1), textwrap.dedent('  a'),
        unicodedata.normalize('NFC', 'e\\u0301')) == ('1a 2b', '1', 'a', '\\u00e9')
""",
    "dates, calendars and clocks": """
import calendar, datetime
time.sleep(0.001)
return datetime.date.fromisoformat('2024-02-29').strftime('%j') == '060' and calendar.isleap(2024)
""",
    "collections, heaps, iterators and caches": """
import bisect, collections, functools, heapq, itertools
@functools.cache
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
return (fib(300) % 1000, heapq.nsmallest(2, [3, 1, 2]), bisect.bisect([1, 3], 2), list(itertools.pairwise('abc'))[0],
        collections.Counter('aab').most_common(1)) == (600, [1, 2], 1, ('a', 'b'), [('a', 2)])
""",
    "pickles, copies and weak references": """
import copy, pickle, weakref
class Thing: pass
thing = Thing()
return pickle.loads(pickle.dumps({1: {2}})) == copy.deepcopy({1: {2}}) and weakref.ref(thing)() is thing
""",
    "urls, addresses and messages": """
import email.message, ipaddress, mimetypes, urllib.parse
return (urllib.parse.urlsplit('https://a.b/c?d=e').query, ipaddress.ip_address('::1').is_loopback,
        mimetypes.guess_type('a.png')[0]) == ('d=e', True, 'image/png')
""",
    "its own modules and files": """
import importlib.resources, pathlib
import tools
folder = pathlib.Path(__file__).parent
found = sorted(path.name for path in folder.glob('*.py'))
return found == ['attack.py', 'forge.py', 'tools.py'] and callable(tools.fine)
""",
    "code generated at run time": """
space = {}
exec(compile('def twice(n):\\n    return 2 * n', 'made', 'exec'), space)
return space['twice'](21) == 42 and eval('1 + 1') == 2
""",
    "C functions and callbacks": """
import ctypes
compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
numbers = (ctypes.c_int * 3)(3, 1, 2)
ctypes.CDLL(None).qsort(numbers, 3, 4, compare(lambda a, b: a[0] - b[0]))
return list(numbers) == [1, 2, 3]
""",
    "200 MB of memory": """
block = bytearray(200 << 20)
block[::4096] = b'x' * len(block[::4096])
del block
return True
""",
    "memory maps and arrays": """
import array, mmap, struct
with mmap.mmap(-1, 1 << 20) as memory:
    memory[:8] = struct.pack('<q', 7)
    return array.array('q', memory[:8])[0] == 7
""",
    "deep recursion": """
sys.setrecursionlimit(20_000)
def depth(n): return n if not n else 1 + depth(n - 1)
return depth(15_000) == 15_000
""",
    "traces, warnings and exceptions with notes": """
import traceback, warnings
try:
    1 / 0
except ZeroDivisionError as error:
    error.add_note('a note')
    return 'a note' in ''.join(traceback.format_exception(error)) and 'attack.py' in traceback.format_exc()
""",
    "signals to its own process": """
import signal
seen = []
signal.signal(signal.SIGUSR1, lambda number, _: seen.append(number))
signal.raise_signal(signal.SIGUSR1)
return seen == [signal.SIGUSR1]
""",
    "a stream over a socket pair": """
import socket
left, right = socket.socketpair()
reader, writer = await asyncio.open_connection(sock=left)
other, answer = await asyncio.open_connection(sock=right)
answer.write(b'hello\\n')
found = await reader.readline()
writer.close(); answer.close()
return found == b'hello\\n'
""",
    "an event loop in a thread": """
def work(): return asyncio.run(asyncio.sleep(0.001, 'slept'))
return await asyncio.to_thread(work) == 'slept'
""",
    "a temporary file, which fails with a message": """
import tempfile
try:
    tempfile.TemporaryFile()
except OSError as error:
    return bool(str(error))
""",
    "a program, which fails with a message": """
import subprocess
try:
    subprocess.run(['true'])
except OSError as error:
    return bool(str(error))
""",
    "a connection, which fails with a message": """
import socket, urllib.request, urllib.error
try:
    urllib.request.urlopen('http://127.0.0.1:9', timeout=5)
except OSError as error:
    return bool(str(error))
""",
    "user, platform and working directory": """
import getpass, locale, os, platform
locale.getlocale()
return os.cpu_count() > 0 and platform.python_version() and os.getpid() > 0 and os.getcwd() != '' and True
""",
}


@pytest.fixture(scope="module")
def arena(fight):
    return fight(ORDINARY)


def test_ordinary_code_works(arena):
    outcomes = {name: (attack.error, attack.output, len(attack.after)) for name, attack in arena.attacks.items()}
    assert outcomes.keys() == ORDINARY.keys()
    assert {name: outcome for name, outcome in outcomes.items() if outcome != (None, True, 1)} == {}
    arena.check_others()


def test_printed_lines_arrive(arena):
    texts = [line.text for line in arena.attacks["progress and lines printed"].logs]
    assert texts[:2] == ["a line", "another"]
    assert any("a warning" in text for text in texts)
    assert any("one more" in text for text in texts)


def test_workers_draw_different_random_numbers(fight):
    draw = "import random, secrets, uuid\nreturn [random.random(), secrets.token_hex(8), str(uuid.uuid4())]"
    found = fight(dict.fromkeys("abcd", draw))
    drawn = [tuple(attack.output) for attack in found.attacks.values()]
    assert all(len({values[index] for values in drawn}) == 4 for index in range(3))


def test_all_calls_ran_on_the_strongest_tier(arena):
    assert arena.isolations == {"full"}
