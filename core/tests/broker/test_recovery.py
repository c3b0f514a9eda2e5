"""Recovery after a host was killed: interrupted effects become done, failed or unknown, and are not repeated."""

import shutil
import signal
import subprocess
import sys

import pytest
from pydantic import BaseModel
from sideband.ledger import LedgerUnwritable, verify
from sideband.ops import EffectUnknown, Level, OpContext, Reconciled, op
from sideband_testing.chaos import file_size_limit

DYING_HOST = """
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


def make_host(*ops):
    mail = SimpleNamespace(sideband_ops=lambda: OpFamily(name="mail", ops=ops))
    plugins = [Plugin("store", "sqlite", sideband_store_sqlite.plugin), Plugin("op", "mail", mail)]
    return Host(home=Path(sys.argv[1]), plugins=plugins, autoload=False)


@op("mail.send", level=Level.RESTRICTED, record=["name"])
async def send(params: Name, ctx: OpContext) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def main():
    async with make_host(send) as host:
        await host.op("mail.send", {"name": "letter"}, key="k")


anyio.run(main)
"""


class Name(BaseModel):
    name: str = ""


@pytest.fixture(scope="module")
def dead_home(tmp_path_factory):
    """Return the home of a host that was killed during an effect. Do not modify it."""
    home = tmp_path_factory.mktemp("dead") / "home"
    done = subprocess.run([sys.executable, "-c", DYING_HOST, str(home)], check=False)
    assert done.returncode == -signal.SIGKILL
    return home


@pytest.fixture
def home_of_a_dead_host(dead_home, tmp_path):
    """Copy the home of a killed host to the home of ``make_host``."""
    return shutil.copytree(dead_home, tmp_path / "home")


def mail(family, **options):
    @op("mail.send", level=Level.RESTRICTED, record=["name"], **options)
    async def send(params: Name, ctx: OpContext) -> str:
        return "sent again"

    return family("mail", send)


@pytest.mark.anyio
async def test_effect_interrupted_by_a_crash_is_unknown_and_not_repeated(home_of_a_dead_host, make_host, family):
    async with make_host(mail(family)) as host:
        assert [(one.op, one.status) for one in host.recovered] == [("mail.send", "unknown")]
        with pytest.raises(EffectUnknown):
            await host.op("mail.send", {"name": "letter"}, key="k")


@pytest.mark.anyio
async def test_reconcile_settles_an_interrupted_effect(home_of_a_dead_host, make_host, family):
    asked = []

    async def reconcile(recorded, ctx):
        asked.append(recorded.params["name"])
        return Reconciled(happened=True, result="sent before")

    async with make_host(mail(family, reconcile=reconcile)) as host:
        assert [one.status for one in host.recovered] == ["done"]
        assert await host.op("mail.send", {"name": "letter"}, key="k") == "sent before"
    assert asked == ["letter"]


@pytest.mark.anyio
async def test_failing_reconcile_leaves_the_effect_unknown(home_of_a_dead_host, make_host, family):
    async def reconcile(recorded, ctx):
        raise ConnectionError("the world is away")

    async with make_host(mail(family, reconcile=reconcile)) as host:
        assert [one.status for one in host.recovered] == ["unknown"]


@pytest.mark.anyio
async def test_effect_is_recovered_once(home_of_a_dead_host, make_host, family):
    async with make_host(mail(family)) as host:
        assert len(host.recovered) == 1
    async with make_host(mail(family)) as host:
        assert host.recovered == ()


@pytest.mark.anyio
async def test_missing_family_leaves_the_effect_unknown(home_of_a_dead_host, make_host):
    async with make_host() as host:
        assert [one.status for one in host.recovered] == ["unknown"]


@pytest.mark.anyio
async def test_ledger_of_a_killed_host_is_intact(home_of_a_dead_host, make_host, family):
    async with make_host(mail(family)) as host:
        verdict = await verify(host.ledger.folder, host.store)
    assert verdict.ok
    assert verdict.entries > 0


@pytest.mark.anyio
async def test_full_disk_blocks_effects_until_there_is_space(make_host, family):
    sent = []

    @op("mail.send", level=Level.RESTRICTED, record=["name"])
    async def send(params: Name, ctx: OpContext) -> None:
        sent.append(params.name)

    async with make_host(family("mail", send)) as host:
        await host.op("mail.send", {"name": "first"})
        size = sum(file.stat().st_size for file in host.ledger.folder.glob("*.jsonl"))
        with file_size_limit(size + 10), pytest.raises(LedgerUnwritable):
            await host.op("mail.send", {"name": "second"})
        await host.op("mail.send", {"name": "third"})
        assert (await verify(host.ledger.folder, host.store)).ok
    assert sent == ["first", "third"]
