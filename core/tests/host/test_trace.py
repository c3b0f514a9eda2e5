"""The observer of hook calls."""

from types import SimpleNamespace

import pytest
import sideband_store_sqlite.plugin
from pydantic import BaseModel
from sideband import Host
from sideband.hooks import (
    Allow,
    Ask,
    Compacted,
    Compaction,
    Deny,
    HookReport,
    Input,
    OpCall,
    Section,
    Sections,
    Settled,
    Transform,
    hookimpl,
)
from sideband.ops import Level, OpFamily, op
from sideband.plugins import Plugin

pytestmark = pytest.mark.anyio

SECRET = "correct-horse-battery"


class Params(BaseModel):
    text: str = ""


@op("clock.now", level=Level.MONITORED)
async def now(params: Params, ctx) -> str:
    return "noon"


class Guard:
    @hookimpl
    async def op_call(self, event: OpCall, ctx):
        ctx.protect(SECRET)
        return {"no": Deny(f"not \x1b[31m{SECRET}"), "ask": Ask("Really?")}.get(event.params.get("text"), Allow("fine"))


class Everything:
    @hookimpl
    def input(self, event: Input):
        return Transform("changed") if event.text == "change" else None

    @hookimpl
    def sections(self, event: Sections):
        return [Section("a", "text"), Section("b", "text")]

    @hookimpl
    def compaction(self, event: Compaction):
        return Compacted("short")

    @hookimpl
    def settled(self, event: Settled):
        raise ValueError(SECRET)


PLUGINS = [
    Plugin("store", "sqlite", sideband_store_sqlite.plugin),
    Plugin("op", "clock", SimpleNamespace(sideband_ops=lambda: OpFamily(name="clock", ops=(now,)))),
    Plugin("guard", "careful", SimpleNamespace(sideband_guards=lambda: Guard), "acme-careful", "1.2"),
    Plugin("hook", "all", Everything(), "acme-\x1b[31mall", "2.0"),
]


async def test_each_call_is_reported_with_package_time_and_action_and_without_secrets(tmp_path):
    calls: list[HookReport] = []
    async with Host(home=tmp_path, settings={}, plugins=PLUGINS, autoload=False, on_hook=calls.append) as host:
        await host.op("clock.now", {})
        for text in ("no", "ask"):
            with pytest.raises(PermissionError):
                await host.op("clock.now", {"text": text})
        calls.clear()
        await host.op("clock.now", {})
        with pytest.raises(PermissionError):
            await host.op("clock.now", {"text": "no"})
        await host.hooks.update(Input("keep"))
        await host.hooks.update(Input("change"))
        await host.hooks.collect(Sections())
        await host.hooks.first(Compaction("s1", "e1", []))
        await host.hooks.observe(Settled("s1"))
        agent = host.hooks.derive(lambda context: context)
        await agent.update(Input("keep"))
    assert [(one.hook, one.package, one.result) for one in calls] == [
        ("op_call", "acme-careful 1.2", "allowed"),
        ("op_call", "acme-careful 1.2", "denied"),
        ("input", "acme-\x1b[31mall 2.0", "kept"),
        ("input", "acme-\x1b[31mall 2.0", "changed"),
        ("sections", "acme-\x1b[31mall 2.0", "added"),
        ("compaction", "acme-\x1b[31mall 2.0", "answered"),
        ("settled", "acme-\x1b[31mall 2.0", "failed"),
        ("input", "acme-\x1b[31mall 2.0", "kept"),
    ]
    assert [one.reason for one in calls[:2]] == ["fine", "not \x1b[31m[redacted:secret]"]
    assert calls[4].reason == "2 items"
    assert SECRET not in str(calls)
    assert "[redacted:secret]" in calls[6].reason
    assert all(one.ms >= 0 for one in calls)


async def test_reports_and_messages_name_no_package_of_a_plugin_that_is_passed_to_the_host(tmp_path):
    calls: list[HookReport] = []
    plugins = [PLUGINS[0], Plugin("hook", "mine", Everything())]
    async with Host(home=tmp_path, settings={}, plugins=plugins, autoload=False, on_hook=calls.append) as host:
        await host.hooks.observe(Settled("s1"))
    assert [(one.plugin, one.package) for one in calls] == [("mine", "")]
    assert calls[0].reason == "plugin `mine` failed in `settled`: ValueError: correct-horse-battery"
