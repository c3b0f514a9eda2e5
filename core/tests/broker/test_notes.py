"""Notes: an op records data before it changes anything, and ``reconcile`` and ``undo`` get it."""

import shutil
import signal
import subprocess
import sys

import pytest
from pydantic import BaseModel
from sideband.ledger import find
from sideband.ops import EffectUnknown, Level, OpContext, Reconciled, op

pytestmark = pytest.mark.anyio


class Name(BaseModel):
    name: str = ""


@pytest.fixture
def noting(family):
    """Return a function that creates a plugin with an op that makes the given notes."""

    def make(*notes, **options):
        @op("mail.send", level=Level.RESTRICTED, record=["name"], **options)
        async def send(params: Name, ctx: OpContext) -> None:
            for note in notes:
                await ctx.note(note)

        return family("mail", send)

    return make


async def test_note_is_a_line_between_intent_and_outcome_and_part_of_the_record(make_host, noting, ledger_lines):
    async with make_host(noting({"digest": "abc"})) as host:
        await host.op("mail.send", {"name": "letter"})
        effect = next(line["effect"] for line in ledger_lines() if line["kind"] == "note")
        record = await find(host.ledger.folder, effect)
    kinds = [line["kind"] for line in ledger_lines() if line.get("effect") == effect]
    assert kinds == ["intent", "note", "outcome"]
    assert (record.note, record.status, record.params) == ({"digest": "abc"}, "done", {"name": "letter"})


async def test_later_notes_are_merged_into_earlier_ones(make_host, noting, outcomes):
    async with make_host(noting({"a": 1, "b": 1}, {"b": 2, "c": 3})) as host:
        await host.op("mail.send", {})
    assert outcomes()[0]["note"] == {"a": 1, "b": 2, "c": 3}


async def test_notes_are_redacted(make_host, noting, ledger_lines):
    async with make_host(noting({"before": "it was canary-7f3a9c51"})) as host:
        host.redactor.protect("canary-7f3a9c51", "canary")
        await host.op("mail.send", {})
    assert "canary-7f3a9c51" not in str(ledger_lines())
    assert "[redacted:canary]" in str(ledger_lines())


async def test_note_that_is_too_large_fails_before_the_change(make_host, family, ledger_lines):
    changed = []

    @op("mail.send", level=Level.RESTRICTED)
    async def send(params: Name, ctx: OpContext) -> None:
        await ctx.note({"before": "x" * 70_000})
        changed.append(True)

    async with make_host(family("mail", send)) as host:
        with pytest.raises(Exception, match="65,536 bytes"):
            await host.op("mail.send", {})
    assert changed == []
    assert "note" not in [line["kind"] for line in ledger_lines()]


async def test_note_outside_a_running_effect_is_rejected(make_host, noting):
    seen = []

    async def undo(recorded, ctx):
        with pytest.raises(PermissionError) as caught:
            await ctx.note({"a": 1})
        seen.append(caught.value.message)
        raise ValueError("enough")

    async with make_host(noting(undo=undo)) as host:
        effects = []
        await host.op("mail.send", {}, on_effect=lambda report: effects.append(report.id))
        with pytest.raises(RuntimeError, match="enough"):
            await host.plan_undo(effects[0])
    assert "notes require a running effect" in seen[0]


DYING = """
import os, signal, sys
from pathlib import Path
from types import SimpleNamespace

import anyio
import sideband_store_sqlite.plugin
from pydantic import BaseModel
from sideband import Host, Plugin
from sideband.ops import Level, OpContext, OpFamily, op


class Name(BaseModel):
    name: str = ""


@op("mail.send", level=Level.RESTRICTED, record=["name"])
async def send(params: Name, ctx: OpContext) -> None:
    await ctx.note({"digest": "abc"})
    await ctx.note({"size": 3})
    os.kill(os.getpid(), signal.SIGKILL)


async def main():
    mail = SimpleNamespace(sideband_ops=lambda: OpFamily(name="mail", ops=(send,)))
    plugins = [Plugin("store", "sqlite", sideband_store_sqlite.plugin), Plugin("op", "mail", mail)]
    async with Host(home=Path(sys.argv[1]), plugins=plugins, autoload=False) as host:
        await host.op("mail.send", {"name": "letter"}, key="k")


anyio.run(main)
"""


@pytest.fixture(scope="module")
def dead_home(tmp_path_factory):
    """Return the home of a host that was killed during an effect. Do not modify it."""
    home = tmp_path_factory.mktemp("dead") / "home"
    done = subprocess.run([sys.executable, "-c", DYING, str(home)], check=False)
    assert done.returncode == -signal.SIGKILL
    return home


@pytest.fixture
def home_of_a_dead_host(dead_home, tmp_path):
    """Copy the home of a killed host to the home of ``make_host``."""
    return shutil.copytree(dead_home, tmp_path / "home")


async def test_reconcile_gets_the_notes_after_a_crash(home_of_a_dead_host, make_host, noting, outcomes):
    asked = []

    async def reconcile(recorded, ctx):
        asked.append((recorded.op, recorded.key, dict(recorded.params), dict(recorded.note), bool(recorded.time)))
        return Reconciled(happened=True)

    async with make_host(noting(reconcile=reconcile)) as host:
        assert [one.status for one in host.recovered] == ["done"]
    assert asked == [("mail.send", "k", {"name": "letter"}, {"digest": "abc", "size": 3}, True)]
    assert outcomes()[-1]["note"] == {"digest": "abc", "size": 3}


async def test_repeatable_effect_frees_its_key_for_the_same_request_only(home_of_a_dead_host, make_host, noting):
    async def reconcile(recorded, ctx):
        return Reconciled(happened=False, repeatable=True)

    async with make_host(noting(reconcile=reconcile)) as host:
        assert [one.status for one in host.recovered] == ["unknown"]
        with pytest.raises(ValueError, match="already used with another op"):
            await host.op("mail.send", {"name": "another letter"}, key="k")
        assert await host.op("mail.send", {"name": "letter"}, key="k") is None


async def test_key_of_an_unknown_effect_remains_claimed(home_of_a_dead_host, make_host, noting):
    async with make_host(noting()) as host:
        with pytest.raises(EffectUnknown):
            await host.op("mail.send", {"name": "letter"}, key="k")


async def test_effect_that_happened_cannot_be_repeatable():
    with pytest.raises(ValueError, match="mutually exclusive"):
        Reconciled(happened=True, repeatable=True)
