"""Skills that damage the interpreter of their worker. They affect at most that worker."""

import pytest
from sideband import SidebandError

HOSTILE = {
    "stopping the loop": "asyncio.get_running_loop().stop()",
    "unsetting the loop": "asyncio.set_event_loop(None)",
    "closing the selector of the loop": "asyncio.get_running_loop()._selector.close()",
    "removing the reader of the protocol": "asyncio.get_running_loop().remove_reader(3)",
    "stopping the clock of the loop": "asyncio.get_running_loop().time = lambda: 0",
    "no more tasks": "asyncio.get_running_loop().create_task = None",
    "no more garbage collection": "gc.disable(); gc.freeze(); gc.set_threshold(0)",
    "no more modules": "sys.modules.clear()",
    "no more imports": "import builtins; builtins.__import__ = None",
    "no more built-ins": "import builtins; vars(builtins).clear()",
    "no more paths": "sys.path.clear(); sys.meta_path.clear(); sys.path_hooks.clear()",
    "no more standard descriptors": "os.close(0); os.close(1); os.close(2)",
    "no more threads": "threading.Thread.start = None",
    "no more json": "import json; json.JSONEncoder.encode = json.JSONDecoder.decode = None",
    "no more printable exceptions": "import reprlib; reprlib.Repr.repr = None",
    "a trace function that exits": "sys.settrace(lambda *_: sys.exit(3))",
    "a profile function that exits": "sys.setprofile(lambda *_: sys.exit(3))",
    "a trace function for threads": "threading.settrace(lambda *_: os._exit(3))",
    "an audit hook that raises": """
def refuse(event, _):
    if event not in ('object.__getattr__', 'sys._getframe'):
        raise RuntimeError(event)
sys.addaudithook(refuse)
""",
    "an endless exit handler": """
import atexit
def forever():
    while True: pass
atexit.register(forever)
threading._register_atexit(forever)
""",
    "hooks of generators": """
def refuse(_): raise SystemExit
sys.set_asyncgen_hooks(refuse, refuse)
""",
    "replacing error functions of the runtime": """
from sideband.workers.runtime import _runtime
_runtime.failure = _runtime.describe = None
raise ValueError
""",
    "a wake-up descriptor for signals": """
import signal, socket
left, right = socket.socketpair()
left.setblocking(False)
signal.set_wakeup_fd(left.fileno())
""",
    "an interval timer": """
import signal
signal.signal(signal.SIGALRM, lambda *_: os._exit(3))
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
""",
    "another locale": "import locale; locale.setlocale(locale.LC_ALL, 'tr_TR.UTF-8')",
    "another time zone": "os.environ['TZ'] = 'X' * 10_000; time.tzset()",
    "another working directory": "os.chdir('..')",
    "no environment": "os.environ.clear()",
    "another decimal precision": "import decimal; decimal.setcontext(decimal.Context(prec=1))",
    "no limit of digits": "sys.set_int_max_str_digits(0)",
    "tasks that ignore cancellation": """
async def stubborn():
    while True:
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            pass
for _ in range(1000):
    asyncio.ensure_future(stubborn())
await asyncio.sleep(0)
""",
    "an open asynchronous generator": """
async def stubborn():
    try:
        yield 1
    finally:
        await asyncio.sleep(1000)
async for _ in stubborn():
    return 1
""",
}


@pytest.fixture(scope="module")
def arena(fight):
    return fight(HOSTILE, seconds=0.5, patience=3.0)


def test_damage_fails_at_most_the_own_call(arena):
    expected = (type(None), SidebandError)
    assert arena.unexpected(HOSTILE, lambda attack: isinstance(attack.error, expected)) == {}


def test_other_calls_are_not_affected(arena):
    arena.check_others()


def test_executed_effects_are_granted_and_the_ledger_is_valid(arena):
    arena.check_record()
