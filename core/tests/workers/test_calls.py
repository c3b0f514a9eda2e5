"""Calls: arguments, ops, results and exceptions."""

import re

import anyio
import pytest
from sideband.ops import OpDenied
from sideband.workers import ArgumentsInvalid, Isolation, SkillFailed, SkillRefused, _worker

pytestmark = pytest.mark.anyio

both_backends = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])

ECHO = """
@tool
async def back(value):
    return value
"""


VALUES = [
    None,
    True,
    0,
    -1.5,
    "text ☃ \u2028",
    [],
    [1, [2]],
    {},
    {"value": 1},
    {"a": 1, "value": 2},
    {"b": {"value": {}}},
    b"\x00\xff",
    {"nested": [b"", {"deep": b"bytes"}]},
]


async def test_values_round_trip(make_skill, make_pool):
    skill = make_skill(ECHO)
    async with make_pool() as pool:
        answers = [await pool.call(skill.call("back", arguments={"value": value})) for value in VALUES]
    assert [answer.value for answer in answers] == VALUES
    assert {answer.isolation for answer in answers} == {Isolation.NONE}


@both_backends
async def test_concurrent_ops_of_a_call_get_their_own_answers(make_skill, make_pool, answers):
    skill = make_skill("""
        async def three():
            return await asyncio.gather(*(echo.get(key=key) for key in "abc"))
    """)
    async with make_pool() as pool, anyio.create_task_group() as tasks:

        async def answer_backwards():
            await answers.arrived(3)
            for key in "cab":
                answers.release(key)

        tasks.start_soon(answer_backwards)
        answer = await pool.call(skill.call("three", handler=answers.handler))
    assert answer.value == ["answer a", "answer b", "answer c"]


async def test_worker_receives_answers_while_a_task_never_rests(make_skill, make_pool):
    skill = make_skill("""
        async def spin():
            answer = asyncio.ensure_future(echo.get(key=1))
            while not answer.done():
                await asyncio.sleep(0)
            return await answer
    """)
    async with make_pool() as pool:
        assert (await pool.call(skill.call("spin"))).value == {"key": 1}


async def test_concurrent_calls_have_separate_contexts(make_skill, make_pool, gather):
    skill = make_skill("""
        import concurrent.futures, contextvars
        from sideband.skill import capabilities

        pool = concurrent.futures.ThreadPoolExecutor(1)

        async def look(name):
            loop = asyncio.get_running_loop()
            seen = [capabilities()]
            await echo.mark(name=name, where="task")
            await asyncio.gather(*(echo.mark(name=name, where="child") for _ in range(3)))
            seen.append(await asyncio.to_thread(capabilities))
            seen.append(await loop.run_in_executor(pool, capabilities))
            thread = threading.Thread(target=lambda: seen.append(capabilities()))
            thread.start()
            while thread.is_alive():
                await echo.mark(name=name, where="loop")
            called = loop.create_future()
            loop.call_soon(lambda: called.set_result(capabilities()))
            seen.append(await called)
            await asyncio.to_thread(lambda: asyncio.run(echo.mark(name=name, where="thread")))
            sent = asyncio.run_coroutine_threadsafe
            await asyncio.wrap_future(pool.submit(lambda: sent(echo.mark(name=name, where="sent"), loop)).result())
            return seen
    """)
    names = ["a", "b", "c"]
    calls = [
        skill.call("look", id=f"id-{name}", capabilities=(name,), arguments={"name": name}, domain="one")
        for name in names
    ]
    async with make_pool() as pool:
        found = await gather(*(pool.call(call) for call in calls))
    assert [answer.value for answer in found] == [[[name]] * 5 for name in names]
    assert {(call, params["name"]) for call, _, params in skill.dispatched} == {(f"id-{name}", name) for name in names}
    assert {"task", "child", "thread", "sent"} <= {params["where"] for *_, params in skill.dispatched}


REFUSED = [
    ("def plain(): return 1", "plain", "`plain` in .* must be `async def`"),
    ("async def stars(): yield 1", "stars", "`stars` in .* must be `async def`"),
    ("async def star(): return 1", "stars", "no function `stars` .did you mean `star`?"),
    ("async def one(wanted): return 1", "one", r"one\(\) missing 1 required positional argument: 'wanted'"),
    ("async def one(): return {'__type__': 'result'}", "one", "`one` returned the reserved key `__type__`"),
    ("async def one(): return float('nan')", "one", "cannot send the result of `one`: it is NaN"),
    ("async def one(): return '\\ud800'", "one", "lone surrogate"),
    ("async def one(): return 'x' * (17 << 20)", "one", "exceeds the limit of 16,777,216"),
    ("async def one():\n    a = []\n    a.append(a)\n    return a", "one", "cannot send"),
    ("async def one():\n    a = []\n    for _ in range(70): a = [a]\n    return a", "one", "nested deeper than 64"),
    (
        "async def one():\n    a = []\n    for _ in range(99999): a = [a]\n    return a",
        "one",
        "nested deeper than 64",
    ),
]


async def test_function_that_cannot_be_called_or_result_that_cannot_be_sent_is_refused(make_skill, make_pool):
    skill = make_skill("")
    wrong = []
    async with make_pool() as pool:
        for number, (source, function, expected) in enumerate(REFUSED):
            call = skill.call(function, module=skill.add_module(f"case_{number}", source))
            try:
                answer = await pool.call(call)
            except SkillRefused as error:
                if not re.search(f"skill.{function}: .*{expected}", str(error)):
                    wrong.append((source, str(error)))
            else:
                wrong.append((source, answer))
    assert wrong == []


async def test_missing_module_is_refused(make_skill, make_pool):
    skill = make_skill("")
    async with make_pool() as pool:
        with pytest.raises(SkillRefused, match="does not exist"):
            await pool.call(skill.call("one", module="other.py"))


async def test_exception_during_import_has_its_own_code(make_skill, make_pool):
    skill = make_skill("import requests")
    async with make_pool() as pool:
        with pytest.raises(SkillFailed, match="ModuleNotFoundError: No module named 'requests'") as caught:
            await pool.call(skill.call("one"))
    assert caught.value.code == "skill.import"
    assert caught.value.topic == "module:requests"
    assert "tools.py:3" in caught.value.traceback


async def test_module_is_loaded_once_and_can_import_its_siblings(make_skill, make_pool):
    skill = make_skill("""
        import helpers
        async def count():
            helpers.loaded += 1
            return helpers.loaded
    """)
    (skill.folder / "helpers.py").write_text("loaded = 0")
    async with make_pool() as pool:
        assert (await pool.call(skill.call("count"))).value == 1
        assert (await pool.call(skill.call("count"))).value == 2
    assert not (skill.folder / "__pycache__").exists()


async def test_file_of_a_skill_does_not_shadow_a_standard_module(make_skill, make_pool):
    skill = make_skill("async def one():\n    import calendar\n    return calendar.MONDAY")
    (skill.folder / "calendar.py").write_text("")
    async with make_pool() as pool:
        assert (await pool.call(skill.call("one"))).value == 0


async def test_exception_of_a_tool_has_its_traceback(make_skill, make_pool):
    skill = make_skill("""
        def deep():
            raise ValueError("no such repository")

        async def one():
            deep()
    """)
    async with make_pool() as pool:
        with pytest.raises(SkillFailed, match=r"skill.one raised ValueError: no such repository") as caught:
            await pool.call(skill.call("one"))
    assert "tools.py:8 in one" in caught.value.traceback
    assert "workers/runtime" not in caught.value.traceback


HOSTILE = [
    ("class Bad(Exception):\n    def __str__(self): raise SystemError('no')", "`__str__` raised SystemError"),
    ("class Bad(Exception):\n    def __str__(self): return 'x' * 10**8", "characters omitted"),
    ("class Bad(Exception):\n    def __str__(self): return str(self)", "`__str__` raised RecursionError"),
    (
        "class Meta(type):\n    __name__ = property(lambda s: 1/0)\nclass Bad(Exception, metaclass=Meta): pass",
        "Bad",
    ),
    ("class Bad(Exception):\n    def __str__(self): sys.exit(3)", "`__str__` raised SystemExit"),
    ("def Bad(): return KeyError([0] * 10**7)", "KeyError"),
    ("class Bad(BaseException): pass", "Bad"),
    ("def Bad(): return SystemExit(3)", "SystemExit: 3"),
    ("def Bad(): return KeyboardInterrupt()", "KeyboardInterrupt"),
    ("def Bad(): return GeneratorExit()", "GeneratorExit"),
    ("def Bad(): return Bad()", "RecursionError"),
    ("def Bad(): return asyncio.CancelledError()", "CancelledError"),
]


async def test_hostile_exception_ends_its_own_call_only(make_skill, make_pool):
    skill = make_skill("async def good():\n    return os.getpid()")
    wrong = []
    async with make_pool() as pool:
        before = await pool.call(skill.call("good"))
        for number, (source, expected) in enumerate(HOSTILE):
            module = skill.add_module(f"case_{number}", f"{source}\nasync def bad():\n    raise Bad()")
            try:
                await pool.call(skill.call("bad", module=module))
            except SkillFailed as error:
                named = expected in error.message
                if not named or len(error.message) >= 5_000 or len(error.traceback) >= 20_000:
                    wrong.append((source, error.message[:200], len(error.message), len(error.traceback)))
            else:
                wrong.append((source, "the call returned"))
            if await pool.call(skill.call("good")) != before:
                wrong.append((source, "the worker was replaced"))
                before = await pool.call(skill.call("good"))
    assert wrong == []


async def test_exit_in_a_child_task_does_not_end_the_call(make_skill, make_pool):
    skill = make_skill("""
        async def leave():
            sys.exit(3)

        async def one():
            child = asyncio.create_task(leave())
            await echo.wait()
            await asyncio.gather(child, return_exceptions=True)
            return "still here"
    """)
    async with make_pool() as pool:
        assert (await pool.call(skill.call("one"))).value == "still here"


async def test_error_of_an_op_reaches_the_skill_with_all_fields(make_skill, make_pool):
    skill = make_skill("""
        async def one():
            try:
                await echo.get()
            except OpError as error:
                return [error.code, error.message, error.op, error.retryable, error.hint]
    """)

    async def refuse(op, params):
        raise OpDenied(op, "not today", hint="ask again")

    async with make_pool() as pool:
        answer = await pool.call(skill.call("one", handler=refuse))
    code, message, op, retryable, hint = answer.value
    assert "not today" in message
    assert (code, op, retryable, hint) == ("op.denied", "echo.get", False, "ask again")


async def test_uncaught_error_of_an_op_is_the_cause_of_the_failure(make_skill, make_pool):
    skill = make_skill("async def one():\n    await echo.get()")

    async def refuse(op, params):
        raise OpDenied(op, "not today")

    async with make_pool() as pool:
        with pytest.raises(SkillFailed, match=r"OpDenied: echo\.get .*not today") as caught:
            await pool.call(skill.call("one", handler=refuse))
    assert caught.value.__cause__.code == "op.denied"


async def test_arguments_that_cannot_be_sent_are_rejected(make_skill, make_pool):
    skill = make_skill(ECHO)
    async with make_pool() as pool:
        with pytest.raises(ArgumentsInvalid, match="cannot send"):
            await pool.call(skill.call("back", arguments={"value": object()}))


@both_backends
async def test_fifty_concurrent_ops_are_allowed(make_skill, make_pool, reports):
    skill = make_skill("async def many():\n    return len(await asyncio.gather(*(echo.get(n=n) for n in range(50))))")

    async def slow(op, params):
        await anyio.sleep(0.05)

    async with make_pool() as pool:
        assert (await pool.call(skill.call("many", handler=slow))).value == 50
    assert reports == []


async def test_tasks_are_cancelled_when_their_call_ends(make_skill, make_pool):
    skill = make_skill("""
        states = []

        async def linger():
            try:
                await asyncio.sleep(1000)
            except asyncio.CancelledError:
                states.append("cancelled")

        async def leave():
            asyncio.create_task(linger())
            await asyncio.sleep(0)

        async def look():
            return states
    """)
    async with make_pool() as pool:
        await pool.call(skill.call("leave"))
        assert (await pool.call(skill.call("look"))).value == ["cancelled"]


@both_backends
async def test_progress_does_not_block_the_skill_and_is_cancelled_after_the_call(
    make_skill, make_pool, answers, monkeypatch
):
    monkeypatch.setattr(_worker, "_SILENT_SECONDS", 0.05)
    skill = make_skill("""
        from sideband.skill import progress

        async def one():
            await progress.report(current=1, total=2, message="half")
            return await echo.get(key="a")
    """)

    async def handler(op, params):
        if op == "echo.get":
            return op
        return await answers.handler(op, {"key": "progress"})

    async with make_pool() as pool:
        assert (await pool.call(skill.call("one", handler=handler))).value == "echo.get"
    assert {op: dict(params) for _, op, params in skill.dispatched} == {
        "progress.report": {"current": 1, "total": 2, "message": "half"},
        "echo.get": {"key": "a"},
    }
    assert answers.cancelled == ["progress"]


@both_backends
async def test_fire_and_forget_ops_have_no_answer_and_their_own_limit(make_skill, make_pool, reports, monkeypatch):
    monkeypatch.setattr(_worker, "_SILENT_SECONDS", 0.05)
    skill = make_skill("""
        from sideband.workers.runtime import running

        async def one():
            runtime, _ = running()
            answered, answer = [], runtime.dispatches.answer
            runtime.dispatches.answer = lambda message: (answered.append(message["__dispatch_id__"]), answer(message))
            await dispatch("echo.notify", {"quick": True}, answer=False)
            for _ in range(40):
                await dispatch("echo.notify", answer=False)
            await echo.get()
            return answered
    """)

    async def handler(op, params):
        if op == "echo.notify" and not params:
            await anyio.sleep_forever()

    async with make_pool() as pool:
        one = skill.call("one", handler=handler, silent=("echo.notify",))
        assert (await pool.call(one)).value == ["d-42"]
    assert {report.code for report in reports} == {"limit.in_flight"}
    assert [op for _, op, _ in skill.dispatched].count("echo.notify") in (32, 33)


async def test_worker_has_the_callers_timezone_but_not_the_hosts_environment(make_skill, make_pool, monkeypatch):
    monkeypatch.setenv("SIDEBAND_CANARY", "canary")
    skill = make_skill(
        "async def one():\n    return [time.tzname[0], os.environ.get('SIDEBAND_CANARY'), sys.argv, sys.path]"
    )
    async with make_pool() as pool:
        answer = await pool.call(skill.call("one", environment={"timezone": "Asia/Tokyo", "locale": "ja_JP"}))
    zone, canary, argv, path = answer.value
    assert (zone, canary) == ("JST", None)
    assert "canary" not in str(argv)
    assert not [entry for entry in path if "site-packages" in entry]


async def test_positional_argument_of_an_op_without_sdk_is_rejected(make_skill, make_pool):
    skill = make_skill("async def one():\n    await echo.get('x')")
    async with make_pool() as pool:
        with pytest.raises(SkillFailed, match=r"TypeError: echo.get accepts keyword arguments only"):
            await pool.call(skill.call("one"))


async def test_generated_family_is_preferred_to_the_proxy(make_skill, make_pool):
    skill = make_skill("""
        from sideband.skill import weather

        async def one():
            return await weather.today("Oslo")
    """)
    sdk = skill.folder.parent / "sdk"
    sdk.mkdir()
    for item in skill.sdk.iterdir():
        (sdk / item.name).symlink_to(item)
    (sdk / "sideband_sdk").mkdir()
    (sdk / "sideband_sdk" / "weather.py").write_text(
        "from sideband.skill import dispatch\n"
        "async def today(city):\n    return await dispatch('weather.today', {'city': city})\n"
    )
    skill.sdk = sdk
    async with make_pool() as pool:
        assert (await pool.call(skill.call("one"))).value == {"city": "Oslo"}


async def test_values_of_a_call_are_its_own_and_follow_its_seed(make_skill, make_pool, gather):
    skill = make_skill("""
        from sideband.skill import now, random, uuid

        async def draw():
            first = random.random()
            await echo.mark(name="between")
            return [now().isoformat(), first, random.sample(range(100), 3), await asyncio.to_thread(uuid)]
    """)

    def call(name, **environment):
        return skill.call("draw", id=name, domain="one", environment=environment)

    same = {"started": "2026-01-02T03:04:05+00:00", "seed": "a"}
    async with make_pool() as pool:
        found = await gather(
            *(pool.call(one) for one in (call("1", **same), call("2", **{**same, "seed": "b"}), call("3", **same)))
        )
        free = [(await pool.call(call(name))).value for name in "45"]
    first, second, third = (answer.value for answer in found)
    assert first == third
    assert first[0] == same["started"]
    assert [one == other for one, other in zip(first, second, strict=True)] == [True, False, False, False]
    # Without a seed, as for a call without a key, they are arbitrary.
    assert free[0][1:] != free[1][1:]


async def test_seed_of_a_call_does_not_affect_the_modules_random_and_secrets(make_skill, make_pool):
    skill = make_skill("""
        import os, secrets
        import random as plain
        from sideband.skill import random

        async def draw():
            random.random()
            return [plain.random(), secrets.token_hex(), os.urandom(8).hex()]
    """)
    environment = {"started": "2026-01-02T03:04:05+00:00", "seed": "a"}
    async with make_pool() as pool:
        one, two = [
            (await pool.call(skill.call("draw", id=name, environment=environment))).value for name in ("1", "2")
        ]
    assert all(first != second for first, second in zip(one, two, strict=True))
