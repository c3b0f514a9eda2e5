import logging
from types import SimpleNamespace

import anyio
import pytest
from sideband.hooks import (
    Cancel,
    Collected,
    Compacted,
    Compaction,
    Effect,
    Ephemeral,
    HookFailed,
    HookRegistry,
    HookTimeout,
    Redactor,
    Redactors,
    Section,
    Sections,
    Settled,
    hookimpl,
)
from sideband.ops import Origin

pytestmark = pytest.mark.anyio

COMPACTION = Compaction("s1", "e5", [{"role": "user", "content": "hi"}])


async def test_first_answer_wins_and_names_its_plugin(make_hooks, answering):
    seen = []
    hooks = make_hooks(
        normal=[
            ("a", answering("compaction", None)),
            ("b", answering("compaction", Compacted("short"))),
            ("c", answering("compaction", Cancel("no"), seen)),
        ]
    )
    assert await hooks.first(COMPACTION) == Compacted("short", plugin="b")
    assert seen == []


async def test_compaction_can_be_cancelled(make_hooks, answering):
    hooks = make_hooks(normal=[("a", answering("compaction", Cancel("busy")))])
    assert await hooks.first(COMPACTION) == Cancel("busy", plugin="a")


async def test_failure_falls_through_to_the_next_plugin_then_the_default(make_hooks, answering, failing, reports):
    hooks = make_hooks(normal=[("a", failing("compaction")), ("b", answering("compaction", Compacted("short")))])
    assert (await hooks.first(COMPACTION)).plugin == "b"
    hooks = make_hooks(normal=[("a", failing("compaction")), ("b", answering("compaction", "a summary"))])
    assert await hooks.first(COMPACTION) is None
    assert [report.plugin for report in reports] == ["a", "a", "b"]


async def test_collect_returns_items_in_order_with_their_plugins(make_hooks, answering):
    one, two, three = (Section(name, "text") for name in ("one", "two", "three"))
    hooks = make_hooks(
        normal=[("b", answering("sections", [two, three])), ("a", answering("sections", (one,)))],
        observers=[("c", answering("sections", None))],
    )
    assert await hooks.collect(Sections()) == (Collected("a", one), Collected("b", two), Collected("b", three))


async def test_collect_skips_all_items_of_a_failing_plugin(make_hooks, answering, failing, reports):
    hooks = make_hooks(
        normal=[
            ("a", failing("ephemeral")),
            ("b", answering("ephemeral", [{"role": "user"}, "a string"])),
            ("c", answering("ephemeral", {"role": "user"})),
            ("d", answering("ephemeral", [{"role": "user"}])),
        ]
    )
    assert await hooks.collect(Ephemeral([])) == (Collected("d", {"role": "user"}),)
    assert [report.plugin for report in reports] == ["a", "b", "c"]
    assert "returned str, but may return list of dict" in str(reports[1].error)


async def test_invalid_pattern_is_a_failure_of_its_plugin(make_hooks, answering, reports):
    hooks = make_hooks(normal=[("a", answering("redactors", lambda event: [Redactor("x", "(")]))])
    assert await hooks.collect(Redactors()) == ()
    assert "not a valid regular expression" in str(reports[0].error)
    with pytest.raises(TypeError):
        Redactor("x", 1)


async def test_observe_calls_all_plugins_in_order_despite_failures(make_hooks, answering, failing, reports):
    seen = []
    hooks = make_hooks(
        ("g", answering("effect", None, seen)),
        normal=[("b", failing("effect")), ("c", answering("effect", None, seen))],
        observers=[("a", answering("effect", None, seen))],
    )
    event = Effect("e1", "http.get", "done", Origin())
    assert await hooks.observe(event) is None
    assert seen == [event] * 3
    assert [report.plugin for report in reports] == ["b"]


async def test_tracing_reports_every_call(make_hooks, answering, failing, reports):
    hooks = make_hooks(
        normal=[
            ("a", answering("compaction", None)),
            ("b", failing("compaction")),
            ("c", answering("compaction", Compacted("short"))),
        ],
        trace=True,
    )
    await hooks.first(COMPACTION)
    assert [(report.plugin, report.outcome.value, report.answer) for report in reports] == [
        ("a", "done", ""),
        ("b", "failed", ""),
        ("c", "done", "Compacted"),
    ]
    assert all(report.ms >= 0 for report in reports)


async def test_failing_report_receiver_does_not_break_the_dispatch(caplog, answering, failing):
    from types import SimpleNamespace

    def receiver(report):
        raise RuntimeError("full")

    seen = []
    hooks = HookRegistry(report=receiver)
    hooks.register("a", SimpleNamespace(settled=hookimpl(failing("settled"))))
    hooks.register("b", SimpleNamespace(settled=hookimpl(answering("settled", None, seen))))
    await hooks.observe(Settled("s1"))
    assert len(seen) == 1
    assert "the receiver of hook reports failed" in caplog.text


async def test_failures_are_logged_by_default(caplog, failing):
    from types import SimpleNamespace

    hooks = HookRegistry()
    hooks.register("a", SimpleNamespace(settled=hookimpl(failing("settled"))))
    with caplog.at_level(logging.WARNING, "sideband.hooks"):
        await hooks.observe(Settled("s1"))
    assert "plugin `a` failed in `settled`: ValueError: boom" in caplog.text
    assert f"; raised in {failing.__code__.co_filename}, line " in caplog.text


async def test_function_of_a_plugin_is_called_with_its_context(make_hooks, answering):
    hooks = HookRegistry()
    hooks.register("a", SimpleNamespace(settled=hookimpl(answering("settled", None))), context=SimpleNamespace(own=7))

    async def function(event, ctx):
        return event.session, ctx.own

    assert await hooks.call(Settled("s1"), "a", function, seconds=5) == ("s1", 7)
    assert await hooks.call(Settled("s1"), "a", lambda event, ctx: None, seconds=5) is None
    with pytest.raises(KeyError):
        await hooks.call(Settled("s1"), "unknown", function, seconds=5)


async def test_failure_of_a_function_of_a_plugin_is_raised_and_reported(make_hooks, answering, reports):
    hooks = make_hooks(normal=[("a", answering("settled", None))])

    def function(event, ctx):
        raise ValueError("boom")

    with pytest.raises(HookFailed, match="plugin `a` failed in `settled`: ValueError: boom"):
        await hooks.call(Settled("s1"), "a", function, seconds=5)
    with pytest.raises(HookTimeout, match="plugin `a` exceeded the deadline of `settled`"):
        await hooks.call(Settled("s1"), "a", lambda event, ctx: anyio.sleep_forever(), seconds=0.01)
    assert [(report.plugin, report.outcome) for report in reports] == [("a", "failed"), ("a", "timeout")]
