"""Ordinary code that must work in a worker: on both tiers, as root and as an ordinary user."""

WORKS = {
    "an event loop": "import asyncio; asyncio.run(asyncio.sleep(0))",
    "many tasks": """
import asyncio
async def main():
    assert sum(await asyncio.gather(*(asyncio.sleep(0.001, 1) for _ in range(500)))) == 500
asyncio.run(main())
""",
    "a stream over a pair": """
import asyncio, socket
async def main():
    left, right = socket.socketpair()
    _, writer = await asyncio.open_connection(sock=left)
    reader, other = await asyncio.open_connection(sock=right)
    writer.write(b'hello\\n')
    assert await reader.readline() == b'hello\\n'
    writer.close(); other.close()
asyncio.run(main())
""",
    "threads": """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(20) as pool:
    assert list(pool.map(len, ['a'] * 100)) == [1] * 100
""",
    "asyncio.to_thread": "import asyncio; assert asyncio.run(asyncio.to_thread(len, 'ab')) == 2",
    "time zones": "from zoneinfo import ZoneInfo; assert ZoneInfo('Europe/Berlin')",
    "local time": "import time; time.tzset(); time.localtime()",
    "decimal": "from decimal import Decimal; assert Decimal('0.1') * 3 == Decimal('0.3')",
    "sqlite in memory": """
import sqlite3
with sqlite3.connect(':memory:') as database:
    database.execute('create table t (x)')
    database.executemany('insert into t values (?)', [(n,) for n in range(1000)])
    assert database.execute('select sum(x) from t').fetchone() == (499500,)
""",
    "tls without a network": "import ssl; ssl.create_default_context()",
    "hashes": "import hashlib; hashlib.sha256(b'x').hexdigest(); hashlib.scrypt(b'x', salt=b'y', n=2, r=1, p=1)",
    "random numbers": "import random, secrets, uuid; secrets.token_hex(); uuid.uuid4(); random.random()",
    "host names for ids": "import uuid; uuid.uuid1()",
    "ctypes": "import ctypes; assert ctypes.CDLL(None).abs(-3) == 3",
    "ctypes callbacks": "f = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(lambda n: n + 1); assert f(1) == 2",
    "compression": "import bz2, gzip, lzma, zlib; assert gzip.decompress(gzip.compress(b'x')) == b'x'",
    "archives in memory": "import io, zipfile; zipfile.ZipFile(io.BytesIO(), 'w').writestr('a', 'b')",
    "xml": "import xml.etree.ElementTree as tree; assert tree.fromstring('<a/>').tag == 'a'",
    "email and mime types": "import mimetypes, email.message; assert mimetypes.guess_type('a.html')[0] == 'text/html'",
    "regular expressions": "import re; assert re.sub('a+', 'b', 'caaat') == 'cbt'",
    "pickles": "import pickle; assert pickle.loads(pickle.dumps({1: 2})) == {1: 2}",
    "logging": "import io, logging; logging.basicConfig(stream=io.StringIO()); logging.warning('x')",
    "warnings and traces": "import traceback, warnings; warnings.catch_warnings(); traceback.format_stack()",
    "own files": "assert open(snapshot + '/skill.py').read() == 'answer = 42\\n'",
    "own folder": "import pathlib; assert sorted(p.name for p in pathlib.Path(snapshot).iterdir())[0] == 'own.txt'",
    "own modules": "import sys; sys.path.insert(0, snapshot); import skill; assert skill.answer == 42",
    "imports that fail": "try:\n    import no_such_module\nexcept ModuleNotFoundError:\n    pass",
    "limits can be read": "import resource; assert resource.getrlimit(resource.RLIMIT_CORE) == (0, 0)",
    "memory maps": "import mmap; mmap.mmap(-1, 65536).close()",
    "signals of its own": """
import signal
seen = []
signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))
signal.raise_signal(signal.SIGUSR1)
assert seen
""",
    "user and platform": "import getpass, os, platform; os.getpid(); os.getuid(); platform.machine(); os.cpu_count()",
    "temporary files fail with OSError": """
import tempfile
try:
    tempfile.TemporaryFile()
except OSError:
    pass
""",
    "processes fail with OSError": """
import subprocess
try:
    subprocess.run(['true'])
except OSError:
    pass
""",
    "every module of the standard library": """
import importlib, sys, warnings
warnings.simplefilter('ignore')
absent = {'antigravity', 'this', 'idlelib', 'tkinter', 'turtle', 'turtledemo', 'test', 'ensurepip', '_tkinter',
          'crypt', '_crypt', 'msilib', 'nt', 'winreg', 'winsound', 'msvcrt', 'nturl2path', 'lib2to3'}
for name in sorted(sys.stdlib_module_names - absent):
    if name.startswith('_'):
        continue
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        pass
""",
}


def test_ordinary_code_works(bench, who, tier):
    outcome = bench.run(who, bench.plan(bench.variant(who, tier)), WORKS)
    assert outcome.code == 0, outcome.errors
    assert outcome.report.keys() == WORKS.keys()
    assert {name: error for name, error in outcome.report.items() if error is not None} == {}
