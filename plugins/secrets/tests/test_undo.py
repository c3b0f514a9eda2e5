"""What changes of secrets say before they are made, after a crash, and when they are to be taken back."""

import os
import signal
import sys
from types import SimpleNamespace

import anyio
import pytest
import sideband_secrets.plugin
import sideband_store_sqlite.plugin
from sideband import Host, Plugin
from sideband.hooks import Deny, hookimpl
from sideband.ops import OpDenied
from sideband_secrets import SecretMissing

pytestmark = pytest.mark.anyio

ORIGIN = "https://api.example.org"
OLD, NEW = "the-old-value", "the-new-value"


@pytest.fixture
def asked():
    """What ops said that they would do; ``asked.refuse`` keeps them from doing it."""

    class Asked(list):
        refuse = False

    return Asked()


@pytest.fixture
async def host(home, asked):
    @hookimpl
    async def op_call(event):
        if event.preview is not None:
            asked.append(await event.preview(event.params))
        return Deny("only asked") if asked.refuse else None

    plugins = [
        Plugin("op", "secrets", sideband_secrets.plugin),
        Plugin("store", "sqlite", sideband_store_sqlite.plugin),
        Plugin("hook", "asking", SimpleNamespace(op_call=op_call)),
    ]
    settings = {"plugins": {"secrets": {"backend": "encrypted"}}}
    async with Host(home=home, settings=settings, plugins=plugins, autoload=False) as host:
        yield host


async def change(host, verb, **params):
    """The id of the effect."""
    effects = []
    await host.op(f"secrets.{verb}", {"name": "token"} | params, on_effect=effects.append)
    return effects[-1].id


def store(host, value=OLD):
    return change(host, "set", value=value, origins=[ORIGIN])


async def read(host):
    return await host.op("secrets.read", {"name": "token"})


class TestPreview:
    @pytest.mark.parametrize(
        ("op", "params", "told"),
        [
            (
                "set",
                {"value": NEW},
                "would store text as `token`, bound to no origin in the place of `token` (bound to",
            ),
            (
                "set",
                {"name": "new", "value": b"\xff", "origins": [ORIGIN]},
                f"would store bytes as `new`, bound to {ORIGIN}",
            ),
            ("rotate", {"value": NEW}, f"would give `token` (bound to {ORIGIN}, stored"),
            ("rotate", {"name": "new", "value": NEW}, "would fail: there is no own secret `new`"),
            ("rollback", {}, "would fail: no earlier value"),
            ("delete", {}, f"would forget `token` (bound to {ORIGIN}"),
            ("delete", {"name": "new"}, "would fail"),
            ("rekey", {"to": "file"}, "would seal the store of secrets (`encrypted`) with a new file"),
        ],
    )
    async def test_it_says_what_would_happen_and_changes_nothing(self, host, asked, op, params, told):
        await store(host)
        before = await host.op("secrets.list", {})
        asked.refuse = True
        with pytest.raises(OpDenied):
            await host.op(f"secrets.{op}", params if op == "rekey" else {"name": "token"} | params)
        assert asked[-1].startswith(told)
        assert NEW not in asked[-1]
        assert OLD not in asked[-1]
        asked.refuse = False
        assert await host.op("secrets.list", {}) == before
        assert await read(host) == OLD

    async def test_it_says_that_a_newer_value_would_be_forgotten(self, host, asked):
        await store(host)
        await change(host, "rotate", value=NEW)
        await change(host, "rollback")
        assert asked[-1].endswith("the value again that it had before; the newer one is forgotten")


class TestUndo:
    async def undo(self, host, effect):
        plan = await host.plan_undo(effect)
        assert not plan.remains
        await host.undo(plan)

    async def test_a_first_value_is_forgotten(self, host):
        await self.undo(host, await store(host))
        with pytest.raises(SecretMissing):
            await read(host)

    async def test_a_rotation_is_rolled_back(self, host):
        await store(host)
        await self.undo(host, await change(host, "rotate", value=NEW))
        assert await read(host) == OLD

    async def test_what_was_changed_again_stays(self, host):
        first = await store(host)
        second = await change(host, "rotate", value=NEW)
        await change(host, "rotate", value="a-third-value")
        for effect in (first, second):
            plan = await host.plan_undo(effect)
            assert not plan.steps
            assert plan.remains == ("`token` was changed again since, or deleted",)

    async def test_what_is_not_kept_can_not_be_had_back(self, host):
        await store(host)
        replaced = await store(host, NEW)
        assert (await host.plan_undo(replaced)).remains == ("the value that `token` had before is not kept",)
        await change(host, "rotate", value=OLD)
        back = await change(host, "rollback")
        assert (await host.plan_undo(back)).remains == ("the newer value of `token` was not kept",)
        gone = await change(host, "delete")
        assert (await host.plan_undo(gone)).remains == ("the value of `token` was not kept",)


_DYING = """
import os, signal, sys
from pathlib import Path
import anyio
import sideband_secrets.plugin, sideband_store_sqlite.plugin
from sideband import Host, Plugin

home, verb, when = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
done = False

def watch(event, arguments):
    global done
    if event == "os.rename" and str(arguments[1]).endswith("store.json"):
        if when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        done = True
    elif done and event != "os.kill":
        os.kill(os.getpid(), signal.SIGKILL)

async def main():
    store = Plugin("store", "sqlite", sideband_store_sqlite.plugin)
    plugins = [Plugin("op", "secrets", sideband_secrets.plugin), store]
    settings = {"plugins": {"secrets": {"backend": "encrypted"}}}
    async with Host(home=home, settings=settings, plugins=plugins, autoload=False) as host:
        await host.op("secrets.set", {"name": "token", "value": "the-old-value"})
        await host.op("secrets.rotate", {"name": "token", "value": "the-middle-value"})
        sys.addaudithook(watch)
        value = {"value": "the-new-value"} if verb in ("set", "rotate") else {}
        await host.op(f"secrets.{verb}", {"name": "token", **value})

anyio.run(main)
"""


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("verb", ["set", "rotate", "rollback", "delete"])
async def test_after_a_crash_the_store_says_whether_it_happened(open_host, home, verb, when):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-c", _DYING, str(home), verb, when]
    died = await anyio.run_process(command, env=environment, check=False)
    assert died.returncode == -signal.SIGKILL, died.stderr
    async with open_host(backend="encrypted") as host:
        assert [(one.op, one.status) for one in host.recovered] == [
            (f"secrets.{verb}", "done" if when == "after" else "failed")
        ]
        if when == "before":
            assert await read(host) == "the-middle-value"
        elif verb == "delete":
            with pytest.raises(SecretMissing):
                await read(host)
        else:
            assert await read(host) == (OLD if verb == "rollback" else NEW)
