"""Plugins that hang, crash, exit, lie about types, cancel and mutate, in a hook of each kind."""

import asyncio
import sys
from types import SimpleNamespace

import anyio
import pytest
from sideband.hooks import (
    Allow,
    Compacted,
    Compaction,
    HookOutcome,
    HookRegistry,
    Input,
    Section,
    Sections,
    Settled,
    ToolCall,
    Transform,
    hookimpl,
)
from sideband.plugins import Plugin, PluginHost

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])]

DEADLINE = 0.05


async def hangs(event, answer):
    await anyio.sleep_forever()


async def raises(event, answer):
    raise ValueError("boom")


def exits(event, answer):
    sys.exit(3)


def lies(event, answer):
    return {"not": "an answer"}


async def is_slow(event, answer):
    for _ in range(20):
        await anyio.lowlevel.checkpoint()
    return answer


async def cancels_its_scope(event, answer):
    with anyio.CancelScope() as scope:
        scope.cancel()
        await anyio.sleep_forever()
    return answer


def on_asyncio():
    return anyio.get_cancelled_exc_class() is asyncio.CancelledError


async def awaits_what_is_cancelled(event, answer):
    if on_asyncio():
        lost = asyncio.get_running_loop().create_future()
        lost.cancel()
        await lost
    raise ValueError("trio has only scopes")


async def swallows_its_cancellation(event, answer):
    try:
        await anyio.sleep_forever()
    except anyio.get_cancelled_exc_class():
        return answer


async def leaves_a_task(event, answer):
    if on_asyncio():
        left.append(asyncio.create_task(asyncio.sleep(3600)))
    return answer


def mutates(event, answer):
    event.text = event.session = event.tool = event.messages = "forged"


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("no text")


def raises_what_has_no_text(event, answer):
    raise Unprintable


left = []
FAILS, TIMES_OUT, ANSWERS = HookOutcome.FAILED, HookOutcome.TIMEOUT, HookOutcome.DONE
CASES = {
    hangs: TIMES_OUT,
    raises: FAILS,
    exits: FAILS,
    lies: FAILS,
    is_slow: ANSWERS,
    cancels_its_scope: ANSWERS,
    awaits_what_is_cancelled: FAILS,
    swallows_its_cancellation: TIMES_OUT,
    leaves_a_task: ANSWERS,
    mutates: FAILS,
    raises_what_has_no_text: FAILS,
}

SECTION = Section("theirs", "text")
OWN = Section("own", "text")
KINDS = {
    "update": ("hook", Input("hi"), Transform("theirs"), Transform("own")),
    "collect": ("hook", Sections(), [SECTION], [OWN]),
    "first": ("hook", Compaction("s1", "e1", []), Compacted("theirs"), Compacted("own")),
    "decide": ("guard", ToolCall("c1", "notes.list", {}), Allow("theirs"), Allow("own")),
    "observe": ("hook", Settled("s1"), None, None),
}


def said(kind, outcome):
    """Return the answers that had an effect, as texts."""
    if kind == "update":
        return {outcome.text}
    if kind == "collect":
        return {one.value.name for one in outcome}
    if kind == "first":
        return set() if outcome is None else {outcome.summary}
    if kind == "decide":
        return {note.text for note in outcome.notes} if outcome.allowed else {"denied"}
    return set()


def expected(kind, ends):
    """Return what section 4 of the design says for a plugin of each kind, before which another one has answered."""
    if kind == "observe":
        return set()
    if kind == "decide":
        return {"own", "theirs"} if ends is ANSWERS else {"denied"}
    if kind == "collect":
        return {"own", "theirs"} if ends is ANSWERS else {"own"}
    if kind == "update":
        return {"theirs"} if ends is ANSWERS else {"own"}
    # The first answer wins, and no plugin answers before: a timeout is that of the dispatch.
    return {ANSWERS: {"theirs"}, FAILS: {"own"}, TIMES_OUT: set()}[ends]


@pytest.mark.parametrize("kind", KINDS)
async def test_hostile_plugin_behaves_as_its_hook_declares_and_the_message_names_package_hook_and_remedy(
    tmp_path, kind
):
    group, event, theirs, own = KINDS[kind]
    active = hangs

    def hostile(case):
        def implementation(event):
            return case(event, theirs) if case is active else None

        implementation.__name__ = event.hook
        return SimpleNamespace(**{event.hook: hookimpl(implementation)})

    def friendly(event):
        return own

    # The answer of another plugin comes before; if the first one wins, after.
    other = SimpleNamespace(**{event.hook: hookimpl(friendly)})
    named = {
        ("z" if kind == "first" else "a"): other,
        **{f"h-{number}": hostile(one) for number, one in enumerate(CASES)},
    }
    inline = [Plugin(group, name, _plugin(group, one), "acme-hooks", "1.2") for name, one in named.items()]
    reports = []
    hooks = HookRegistry(report=reports.append, deadlines={event.hook: DEADLINE})
    async with PluginHost(home=tmp_path, inline=inline, autoload=False, hooks=hooks):
        for number, (active, ends) in enumerate(CASES.items()):
            reports.clear()
            outcome = await getattr(hooks, kind)(event)
            if kind == "observe" and ends is ANSWERS:
                continue
            assert said(kind, outcome) == expected(kind, ends), active.__name__
            if ends is ANSWERS:
                assert reports == [], active.__name__
                continue
            report, *others = reports
            later = sorted(name for name in named if name > report.plugin) if ends is TIMES_OUT else []
            assert [(one.plugin, one.outcome) for one in others] == [(one, HookOutcome.NOT_REACHED) for one in later]
            assert (report.plugin, report.package) == (f"h-{number}", "acme-hooks 1.2")
            assert report.outcome is ends, active.__name__
            for part in (f"plugin `h-{number}` (acme-hooks 1.2)", f"`{event.hook}`"):
                assert part in report.error.message
            assert f"add `h-{number}` to `[policy.deny]`" in report.error.hint
            if kind == "decide":
                assert "(acme-hooks 1.2)" in outcome.reason
                assert "[policy.deny]" in outcome.hint
    while left:
        left.pop().cancel()


async def test_plugin_that_cancels_the_task_of_its_caller_ends_it_without_an_answer(tmp_path, make_hooks, reports):
    """No dispatcher can tell this from a cancellation from outside, which must not be held up."""
    if not on_asyncio():
        return
    reached = []

    async def tool_call(event):
        asyncio.current_task().cancel()
        await anyio.lowlevel.checkpoint()

    async def caller():
        reached.append(await make_hooks(("a", tool_call)).decide(ToolCall("c1", "notes.list", {})))

    with pytest.raises(asyncio.CancelledError):
        await asyncio.create_task(caller())
    assert reached == reports == []


def _plugin(group, one):
    """Return the value of a plugin: for a guard, a class."""
    if group != "guard":
        return one
    return SimpleNamespace(sideband_guards=lambda: type("Guard", (), {"tool_call": staticmethod(one.tool_call)}))
