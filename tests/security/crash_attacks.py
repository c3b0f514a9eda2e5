"""Code of skills that crash or raise unusual errors, by the name of the attack."""

# Attacks that end the process.
DIES = {
    "an exit": "os._exit(0)",
    "an exit with a code": "os._exit(7)",
    "an exit with the code of a failed lockdown": "os._exit(97)",
    "an exit in a thread": """
threading.Thread(target=os._exit, args=(3,)).start()
await asyncio.sleep(1000)
""",
    "an exit with the C library": """
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
    "overwriting None": """
import ctypes
ctypes.memset(id(None), 0xff, 64)
gc.collect()
""",
    "a fatal error of Python": """
import ctypes
ctypes.pythonapi.Py_FatalError(b'forged')
""",
    "invalid byte code": """
def victim_of_it(): return 1
victim_of_it.__code__ = victim_of_it.__code__.replace(co_code=bytes([100, 255, 83, 0]) * 2, co_consts=())
victim_of_it()
os.abort()
""",
    "a null pointer with faulthandler": """
import ctypes, faulthandler
faulthandler.enable(open(os.dup(2), 'w'))
ctypes.string_at(0)
""",
    "an exit by a timer of faulthandler": """
import faulthandler
faulthandler.dump_traceback_later(0.05, exit=True, file=open(os.dup(2), 'w'))
time.sleep(1000)
""",
    "a jump into data": """
import ctypes
data = ctypes.create_string_buffer(64)
ctypes.CFUNCTYPE(None)(ctypes.addressof(data))()
""",
    "a stack overflow in a thread with a small stack": """
threading.stack_size(32768)
sys.setrecursionlimit(10**9)
def deep():
    return max([0], key=lambda _: deep())
threading.Thread(target=deep).start()
await asyncio.sleep(1000)
""",
    "closing the protocol": """
os.close(3)
await asyncio.sleep(1000)
""",
    "shutting down the protocol for writing": """
import socket
socket.socket(fileno=os.dup(3)).shutdown(socket.SHUT_WR)
await asyncio.sleep(1000)
""",
    "shutting down the protocol for reading": """
import socket
socket.socket(fileno=os.dup(3)).shutdown(socket.SHUT_RD)
await asyncio.sleep(1000)
""",
    "closing every descriptor": """
os.closerange(0, 1000)
await asyncio.sleep(1000)
""",
    "replacing the protocol by a pipe": """
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
    "an exit in a finalizer": """
class Trap:
    def __del__(self):
        os._exit(4)
trap = Trap()
del trap
""",
    "an exit in the text of its error": """
class Trap(Exception):
    def __str__(self):
        os._exit(5)
raise Trap()
""",
    "an exit in its result": """
class Trap(dict):
    def items(self):
        os._exit(6)
return [Trap(a=1)]
""",
}

# Attacks that end the process, or raise RecursionError since Python 3.12.
OVERFLOWS = {
    "a C stack overflow": """
import ctypes
Again = ctypes.CFUNCTYPE(None)
@Again
def again():
    again()
sys.setrecursionlimit(10**9)
again()
""",
    "a Python stack overflow": """
sys.setrecursionlimit(10**9)
class Deep:
    def __getattr__(self, name):
        return getattr(self, name + 'x')
def deep():
    return [deep for _ in [0] if max([0], key=lambda _: deep())]
deep()
""",
}

# Signals to itself. They may kill the worker; process 1 of a namespace does not receive them.
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
        "to its process": """
import signal
os.kill(os.getpid(), signal.{name})
await asyncio.sleep(0.05)
return 'alive'
""",
        "to its thread": """
import signal
signal.signal(signal.SIGUSR1, signal.SIG_DFL)
signal.pthread_kill(threading.get_ident(), signal.{name})
await asyncio.sleep(0.05)
return 'alive'
""",
    }.items()
}

# Errors. They are reported, truncated and printable, and none of their code runs in the host.
RAISES = {
    "an error whose text takes long": """
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
    "an error whose text is a number": """
class Odd(Exception):
    def __str__(self):
        return 7
raise Odd()
""",
    "an error whose text is a hostile subclass of str": """
class Text(str):
    def __len__(self): return 0
    def __getitem__(self, _): raise SystemExit
    def encode(self, *_): return b'"}\\n'
    def __str__(self): return self
class Odd(Exception):
    def __str__(self): return Text('a forgery ' * 10_000)
raise Odd()
""",
    "an error whose text recurses": """
def deep(): return deep()
class Odd(Exception):
    def __str__(self): return deep()
raise Odd()
""",
    "an error of 100 MB": "raise ValueError('x' * 10**8)",
    "an error with 10 million arguments": "raise ValueError(*range(10**7))",
    "an error with arguments that cannot be printed": """
class Odd:
    def __repr__(self): raise SystemExit
raise ValueError(Odd(), Odd())
""",
    "an error with surrogates": "raise ValueError('\\ud800\\udfff')",
    "an error with a line of the protocol": 'raise ValueError(\'\\n{"__type__":"ready"}\\n\')',
    "an error with control characters": "raise ValueError('\\x1b[2J\\x00\\x07\\u202e')",
    "an error whose type hides its name": """
class Meta(type):
    @property
    def __name__(cls): raise SystemExit
    def __getattribute__(cls, name): raise SystemExit
class Odd(Exception, metaclass=Meta): pass
raise Odd()
""",
    "an error whose type has a name of 10 MB": "raise type('x' * 10**7, (Exception,), {})()",
    "an error with a hostile __class__": """
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
    "100,000 chained errors": """
error = None
for number in range(100_000):
    new = ValueError(number)
    new.__context__ = error
    error = new
raise error
""",
    "nested exception groups": """
error = ValueError('innermost')
for _ in range(500): error = ExceptionGroup('outer', [error] * 2)
raise error
""",
    "a traceback of 100,000 frames": """
sys.setrecursionlimit(150_000)
def deep(n):
    if not n: raise ValueError('deep')
    deep(n - 1)
deep(100_000)
""",
    "a traceback with a file name of the runtime": """
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
    "a subclass of BaseException": """
class Odd(BaseException): pass
raise Odd('odd')
""",
    "GeneratorExit": "raise GeneratorExit",
    "StopIteration": "raise StopIteration(1)",
    "StopAsyncIteration": "raise StopAsyncIteration",
    "CancelledError": "raise asyncio.CancelledError('mine')",
    "cancelling its own task": """
asyncio.current_task().cancel()
await asyncio.sleep(1000)
""",
    "an error class whose constructor exits": "raise type('Odd', (Exception,), {'__init__': lambda self: sys.exit(4)})",
    "an error with a hostile finalizer": """
class Odd(Exception):
    def __del__(self): raise SystemExit
raise Odd('odd')
""",
    "an error whose pickle runs a program": """
class Odd(Exception):
    def __reduce__(self): return os.system, ('true',)
raise Odd('odd')
""",
    "an awaitable that yields a number": """
class Odd:
    def __await__(self): yield 42
await Odd()
""",
    "an awaitable that yields its own task": """
class Odd:
    def __await__(self): yield asyncio.current_task()
await Odd()
""",
    "an invalid awaitable": """
class Odd:
    def __await__(self): return 42
await Odd()
""",
    "running the loop in the loop": "asyncio.get_running_loop().run_until_complete(asyncio.sleep(0))",
    "closing the loop": "asyncio.get_running_loop().close()",
    "a recursion limit below the current depth": """
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
    "an asynchronous generator that ignores aclose": """
async def stubborn():
    try:
        yield 1
    finally:
        yield 2
generator = stubborn()
await anext(generator)
await generator.aclose()
""",
    "a generator that yields from itself": """
def generator():
    yield from generator_itself
generator_itself = generator()
next(generator_itself)
""",
    "standard output replaced by None": """
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
    "exception hooks that raise": """
def hook(*_): raise SystemExit
sys.excepthook = sys.unraisablehook = threading.excepthook = hook
threading.Thread(target=lambda: 1 / 0).start()
raise ValueError('hooked')
""",
    "an exception handler of the loop that raises": """
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
    "an import of a number": """
sys.modules['odd'] = 7
import odd
from odd import thing
""",
}

# Attacks that replace the tool.
REFUSED = {
    "a tool that became a number": """
@tool
async def attack(victim: str) -> object: ...

globals()['attack'] = 7
""",
    "a tool that was deleted": """
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
    "a tool that became a callable object": """
@tool
async def attack(victim: str) -> object: ...

class Odd:
    async def __call__(self, victim): os._exit(3)
globals()['attack'] = Odd()
""",
}

HOSTILE = {**DIES, **OVERFLOWS, **SIGNALS, **RAISES, **REFUSED}
