"""Skills that crash, break what they run in, or raise what can't be printed. Calls end typed, nothing else does."""

import pytest
from sideband.workers import SkillFailed, SkillRefused, WorkerExited

# The process ends, and with it the call.
DIES = {
    "an exit": "os._exit(0)",
    "an exit with a code": "os._exit(7)",
    "an exit with the code of a failed lock-down": "os._exit(97)",
    "an exit in a thread": """
threading.Thread(target=os._exit, args=(3,)).start()
await asyncio.sleep(1000)
""",
    "an exit by the system": """
import ctypes
ctypes.CDLL(None).exit(5)
""",
    "an abort": "os.abort()",
    "a null pointer": """
import ctypes
ctypes.string_at(0)
""",
    "a null pointer in a thread": """
import ctypes
threading.Thread(target=ctypes.string_at, args=(0,)).start()
await asyncio.sleep(1000)
""",
    "a call of a null pointer": """
import ctypes
ctypes.CFUNCTYPE(None)(8)()
""",
    "None overwritten": """
import ctypes
ctypes.memset(id(None), 0xff, 64)
gc.collect()
""",
    "a fatal error of Python": """
import ctypes
ctypes.pythonapi.Py_FatalError(b'forged')
""",
    "byte code that is none": """
def victim_of_it(): return 1
victim_of_it.__code__ = victim_of_it.__code__.replace(co_code=bytes([100, 255, 83, 0]) * 2, co_consts=())
victim_of_it()
os.abort()
""",
    "a fault with a handler for faults": """
import ctypes, faulthandler
faulthandler.enable(open(os.dup(2), 'w'))
ctypes.string_at(0)
""",
    "an exit by a timer of faults": """
import faulthandler
faulthandler.dump_traceback_later(0.05, exit=True, file=open(os.dup(2), 'w'))
time.sleep(1000)
""",
    "a jump into data": """
import ctypes
data = ctypes.create_string_buffer(64)
ctypes.CFUNCTYPE(None)(ctypes.addressof(data))()
""",
    "a stack of C that overflows": """
import ctypes
Again = ctypes.CFUNCTYPE(None)
@Again
def again():
    again()
sys.setrecursionlimit(10**9)
again()
""",
    "a stack of Python that overflows": """
sys.setrecursionlimit(10**9)
class Deep:
    def __getattr__(self, name):
        return getattr(self, name + 'x')
def deep():
    return [deep for _ in [0] if max([0], key=lambda _: deep())]
deep()
""",
    "a stack that overflows in a small thread": """
threading.stack_size(32768)
sys.setrecursionlimit(10**9)
def deep():
    return max([0], key=lambda _: deep())
threading.Thread(target=deep).start()
await asyncio.sleep(1000)
""",
    "the protocol closed": """
os.close(3)
await asyncio.sleep(1000)
""",
    "the protocol shut in one direction": """
import socket
socket.socket(fileno=os.dup(3)).shutdown(socket.SHUT_WR)
await asyncio.sleep(1000)
""",
    "the protocol shut in the other direction": """
import socket
socket.socket(fileno=os.dup(3)).shutdown(socket.SHUT_RD)
await asyncio.sleep(1000)
""",
    "every descriptor closed": """
os.closerange(0, 1000)
await asyncio.sleep(1000)
""",
    "the protocol replaced by a pipe": """
os.dup2(os.pipe()[0], 3)
await asyncio.sleep(1000)
""",
    "an exit at import": """
os._exit(3)

@tool
async def attack(victim: str) -> object: ...
""",
    "a null pointer at import": """
import ctypes
ctypes.string_at(0)

@tool
async def attack(victim: str) -> object: ...
""",
    "an exit in a finaliser": """
class Trap:
    def __del__(self):
        os._exit(4)
trap = Trap()
del trap
""",
    "an exit while its error is described": """
class Trap(Exception):
    def __str__(self):
        os._exit(5)
raise Trap()
""",
    "an exit while its result is read": """
class Trap(dict):
    def items(self):
        os._exit(6)
return [Trap(a=1)]
""",
}

# A signal to itself: a worker may end of it, or the kernel may keep it from the first process of a namespace.
SIGNALS = {
    f"{how} {name}": code.format(name=name)
    for name in (
        "SIGKILL",
        "SIGTERM",
        "SIGALRM",
        "SIGHUP",
        "SIGSEGV",
        "SIGINT",
        "SIGPIPE",
        "SIGXCPU",
        "SIGSYS",
        "SIGTTOU",
    )
    for how, code in {
        "by kill": "import signal\nos.kill(os.getpid(), signal.{name})\nawait asyncio.sleep(0.05)\nreturn 'alive'",
        "to a thread": """
import signal
signal.signal(signal.SIGUSR1, signal.SIG_DFL)
signal.pthread_kill(threading.get_ident(), signal.{name})
await asyncio.sleep(0.05)
return 'alive'
""",
    }.items()
}

# What it raises is told, cut and printable, and nothing of it runs in the host.
RAISES = {
    "an error whose text hangs for a moment": """
class Odd(Exception):
    def __str__(self):
        time.sleep(0.2)
        return 'late'
raise Odd()
""",
    "an error whose text exits": """
class Odd(Exception):
    def __str__(self):
        raise SystemExit(3)
raise Odd()
""",
    "an error whose text interrupts": """
class Odd(Exception):
    def __str__(self):
        raise KeyboardInterrupt
    __repr__ = __str__
raise Odd()
""",
    "an error whose text raises itself": """
class Odd(Exception):
    def __str__(self):
        raise self
raise Odd()
""",
    "an error whose text is no text": """
class Odd(Exception):
    def __str__(self):
        return 7
raise Odd()
""",
    "an error whose text lies about its kind": """
class Text(str):
    def __len__(self): return 0
    def __getitem__(self, _): raise SystemExit
    def encode(self, *_): return b'"}\\n'
    def __str__(self): return self
class Odd(Exception):
    def __str__(self): return Text('a lie' * 10_000)
raise Odd()
""",
    "an error whose text never ends": """
def deep(): return deep()
class Odd(Exception):
    def __str__(self): return deep()
raise Odd()
""",
    "an error of 100 MB": "raise ValueError('x' * 10**8)",
    "an error with 10 million arguments": "raise ValueError(*range(10**7))",
    "an error with arguments that can't be printed": """
class Odd:
    def __repr__(self): raise SystemExit
raise ValueError(Odd(), Odd())
""",
    "an error with surrogates": "raise ValueError('\\ud800\\udfff')",
    "an error with line feeds of the protocol": 'raise ValueError(\'\\n{"__type__":"ready"}\\n\')',
    "an error with control characters": "raise ValueError('\\x1b[2J\\x00\\x07\\u202e')",
    "an error whose kind has another name": """
class Meta(type):
    @property
    def __name__(cls): raise SystemExit
    def __getattribute__(cls, name): raise SystemExit
class Odd(Exception, metaclass=Meta): pass
raise Odd()
""",
    "an error whose kind has a name of 10 MB": "raise type('x' * 10**7, (Exception,), {})()",
    "an error whose kind pretends to be another": """
class Odd(Exception):
    @property
    def __class__(self): raise SystemExit
raise Odd()
""",
    "an error whose attributes all raise": """
class Odd(Exception):
    def __getattribute__(self, name): raise SystemExit
raise Odd()
""",
    "an error that causes itself": """
error = ValueError('round')
error.__cause__ = error
raise error
""",
    "errors that cause each other": """
first, second = ValueError(1), ValueError(2)
first.__cause__, second.__cause__ = second, first
raise first
""",
    "100,000 errors, each while handling the other": """
error = None
for number in range(100_000):
    new = ValueError(number)
    new.__context__ = error
    error = new
raise error
""",
    "errors in groups in groups": """
error = ValueError('inmost')
for _ in range(500): error = ExceptionGroup('outer', [error] * 2)
raise error
""",
    "a trace of 100,000 frames": """
sys.setrecursionlimit(150_000)
def deep(n):
    if not n: raise ValueError('deep')
    deep(n - 1)
deep(100_000)
""",
    "a trace with a file's name of the runtime": """
code = compile('raise ValueError(1)', 'sideband/workers/runtime/_runtime.py', 'exec')
exec(code)
""",
    "an exit of Python": "sys.exit(3)",
    "an exit with an object": "sys.exit(object())",
    "an exit of a task": """
async def leave(): sys.exit(3)
await asyncio.create_task(leave())
""",
    "an interrupt": "raise KeyboardInterrupt",
    "an interrupt of the main thread": """
import _thread
_thread.interrupt_main()
time.sleep(0.1)
raise ValueError('not interrupted')
""",
    "a kind below all errors": """
class Odd(BaseException): pass
raise Odd('odd')
""",
    "the end of a generator": "raise GeneratorExit",
    "the end of an iteration": "raise StopIteration(1)",
    "the end of an asynchronous iteration": "raise StopAsyncIteration",
    "a cancellation of its own": "raise asyncio.CancelledError('mine')",
    "its own task, cancelled": """
asyncio.current_task().cancel()
await asyncio.sleep(1000)
""",
    "a class that is raised": "raise type('Odd', (Exception,), {'__init__': lambda self: sys.exit(4)})",
    "an error with a hostile finaliser": """
class Odd(Exception):
    def __del__(self): raise SystemExit
raise Odd('odd')
""",
    "an error that can be pickled to a command": """
class Odd(Exception):
    def __reduce__(self): return os.system, ('true',)
raise Odd('odd')
""",
    "an awaitable that yields what no loop knows": """
class Odd:
    def __await__(self): yield 42
await Odd()
""",
    "an awaitable that yields its own task": """
class Odd:
    def __await__(self): yield asyncio.current_task()
await Odd()
""",
    "an awaitable that is none": """
class Odd:
    def __await__(self): return 42
await Odd()
""",
    "a loop within the loop": "asyncio.get_running_loop().run_until_complete(asyncio.sleep(0))",
    "the loop, closed": "asyncio.get_running_loop().close()",
    "a limit of recursion below what there is": """
sys.setrecursionlimit(1)
raise ValueError('it was set')
""",
    "recursion": """
def deep(): return deep()
deep()
""",
    "recursion in a text": """
nested = []
for _ in range(100_000): nested = [nested]
repr(nested)
""",
    "recursion in a comparison": """
left, right = [], []
left.append(right); right.append(left)
left == right
raise ValueError('no recursion')
""",
    "recursion in an encoder": """
import json
nested = []
for _ in range(100_000): nested = [nested]
json.dumps(nested)
""",
    "recursion in a parser": "compile('(' * 10_000 + ')' * 10_000, 'x', 'eval')",
    "recursion in a pickle": """
import pickle
nested = []
for _ in range(100_000): nested = [nested]
pickle.dumps(nested)
""",
    "an asynchronous generator that ignores its end": """
async def stubborn():
    try:
        yield 1
    finally:
        yield 2
generator = stubborn()
await anext(generator)
await generator.aclose()
""",
    "an error thrown into itself": """
def generator():
    yield from generator_itself
generator_itself = generator()
next(generator_itself)
""",
    "standard output that is none": """
sys.stdout = sys.stderr = None
raise ValueError('silent')
""",
    "standard output that raises": """
class Odd:
    def write(self, text): raise SystemExit
    flush = write
sys.stdout = sys.stderr = Odd()
print('x')
""",
    "hooks for errors that raise": """
def hook(*_): raise SystemExit
sys.excepthook = sys.unraisablehook = threading.excepthook = hook
threading.Thread(target=lambda: 1 / 0).start()
raise ValueError('hooked')
""",
    "the loop's handler of errors that raises": """
def handler(loop, context): raise SystemExit
loop = asyncio.get_running_loop()
loop.set_exception_handler(handler)
loop.call_soon(lambda: 1 / 0)
await asyncio.sleep(0.01)
raise ValueError('handled')
""",
    "callbacks that exit": """
asyncio.get_running_loop().call_soon(sys.exit, 5)
await asyncio.sleep(0.01)
raise ValueError('still here')
""",
    "an import that raises": """
raise ValueError('at import')

@tool
async def attack(victim: str) -> object: ...
""",
    "an import that exits": """
sys.exit(3)

@tool
async def attack(victim: str) -> object: ...
""",
    "an import that interrupts": """
raise KeyboardInterrupt

@tool
async def attack(victim: str) -> object: ...
""",
    "an import of itself": """
import attack as again
again.attack.nothing

@tool
async def attack(victim: str) -> object: ...
""",
    "an import of a module that is no module": """
sys.modules['odd'] = 7
import odd
from odd import thing
""",
}

# What is called there is no tool any more.
REFUSED = {
    "a tool that became a number": """
@tool
async def attack(victim: str) -> object: ...

globals()['attack'] = 7
""",
    "a tool that is gone": """
@tool
async def attack(victim: str) -> object: ...

del globals()['attack']
""",
    "a tool that became a plain function": """
@tool
async def attack(victim: str) -> object: ...

def plain(victim): os._exit(3)
globals()['attack'] = plain
""",
    "a tool with the code of a plain function": """
@tool
async def attack(victim: str) -> object: ...

def plain(victim): os._exit(3)
attack.__code__ = plain.__code__
""",
    "a tool with other arguments": """
@tool
async def attack(victim: str) -> object: ...

async def other(): os._exit(3)
attack.__code__ = other.__code__
""",
    "a tool that became an object that can be called": """
@tool
async def attack(victim: str) -> object: ...

class Odd:
    async def __call__(self, victim): os._exit(3)
globals()['attack'] = Odd()
""",
}

HOSTILE = {**DIES, **SIGNALS, **RAISES, **REFUSED}


@pytest.fixture(scope="module")
def arena(fight):
    return fight({**DIES, **SIGNALS, **RAISES, **REFUSED}, backend="trio")


@pytest.mark.parametrize("name", DIES)
def test_a_crash_fails_its_call_typed_and_the_next_one_gets_a_new_worker(arena, name):
    assert isinstance(arena.attacks[name].error, WorkerExited)
    arena.check_others(name)


@pytest.mark.parametrize("name", SIGNALS)
def test_a_signal_to_itself_hurts_nobody_else(arena, name):
    attack = arena.attacks[name]
    assert attack.output == "alive" or attack.code in {"worker.exited", "skill.raised", "call.timeout"}
    arena.check_others(name)


@pytest.mark.parametrize("name", RAISES)
def test_what_a_skill_raises_is_told_and_cut_whatever_it_is(arena, name):
    error = arena.attacks[name].error
    assert isinstance(error, SkillFailed)
    assert len(error.message) < 5_000
    assert len(error.traceback) < 20_000
    (error.message + error.traceback).encode()
    arena.check_others(name)
    assert len(arena.attacks[name].after) == 1


@pytest.mark.parametrize("name", [name for name in RAISES if name.startswith("an error whose text")])
def test_the_kind_of_an_error_is_told_even_where_its_text_can_not_be_had(arena, name):
    assert " raised Odd: " in arena.attacks[name].error.message


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_tool_any_more_is_refused_and_not_run(arena, name):
    assert isinstance(arena.attacks[name].error, SkillRefused)
    arena.check_others(name)


def test_no_effect_was_executed_that_a_grant_does_not_cover_and_the_ledger_is_whole(arena):
    arena.check_record()
