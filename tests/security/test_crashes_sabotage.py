"""Skills that damage what they run in. They lose at most their own worker."""

import pytest
from sideband import SidebandError

HOSTILE = {
    "the loop, stopped": "asyncio.get_running_loop().stop()",
    "the loop, forgotten": "asyncio.set_event_loop(None)",
    "the loop's selector, closed": "asyncio.get_running_loop()._selector.close()",
    "the loop's reader, removed": "asyncio.get_running_loop().remove_reader(3)",
    "the loop's clock, stopped": "asyncio.get_running_loop().time = lambda: 0",
    "no more tasks": "asyncio.get_running_loop().create_task = None",
    "no more garbage collection": "gc.disable(); gc.freeze(); gc.set_threshold(0)",
    "no more modules": "sys.modules.clear()",
    "no more imports": "import builtins; builtins.__import__ = None",
    "no more built-ins": "import builtins; vars(builtins).clear()",
    "no more paths": "sys.path.clear(); sys.meta_path.clear(); sys.path_hooks.clear()",
    "no more standard descriptors": "os.close(0); os.close(1); os.close(2)",
    "no more threads": "threading.Thread.start = None",
    "no more json": "import json; json.JSONEncoder.encode = json.JSONDecoder.decode = None",
    "no more exceptions that can be printed": "import reprlib; reprlib.Repr.repr = None",
    "a trace function that exits": "sys.settrace(lambda *_: sys.exit(3))",
    "a profile function that exits": "sys.setprofile(lambda *_: sys.exit(3))",
    "a trace function for threads": "threading.settrace(lambda *_: os._exit(3))",
    "an audit hook that refuses all": """
def refuse(event, _):
    if event not in ('object.__getattr__', 'sys._getframe'):
        raise RuntimeError(event)
sys.addaudithook(refuse)
""",
    "a handler at exit that never ends": """
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
    "the runtime's error type, replaced": """
from sideband.workers.runtime import _runtime
_runtime.failure = _runtime.describe = None
raise ValueError
""",
    "a wake-up descriptor of signals": """
import signal, socket
left, right = socket.socketpair()
left.setblocking(False)
signal.set_wakeup_fd(left.fileno())
""",
    "a timer of signals": """
import signal
signal.signal(signal.SIGALRM, lambda *_: os._exit(3))
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
""",
    "a language of another kind": "import locale; locale.setlocale(locale.LC_ALL, 'tr_TR.UTF-8')",
    "another time zone": "os.environ['TZ'] = 'X' * 10_000; time.tzset()",
    "another folder": "os.chdir('..')",
    "no environment": "os.environ.clear()",
    "decimals of another precision": "import decimal; decimal.setcontext(decimal.Context(prec=1))",
    "the limit of digits, lifted": "sys.set_int_max_str_digits(0)",
    "zombies of tasks": """
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
    "a generator left open": """
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


@pytest.mark.parametrize("name", HOSTILE)
def test_a_skill_that_damages_its_own_worker_loses_at_most_that(arena, name):
    attack = arena.attacks[name]
    assert attack.error is None or isinstance(attack.error, SidebandError)
    arena.check_others(name)


def test_no_effect_was_executed_that_a_grant_does_not_cover_and_the_ledger_is_whole(arena):
    arena.check_record()
