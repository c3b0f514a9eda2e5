"""Changes of secrets: previews, reconciliation after a crash, and undo."""

import subprocess
import sys

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
def previews():
    """The previews so far. If ``previews.refuse`` is set, the ops are denied."""

    class Previews(list):
        refuse = False

    return Previews()


@pytest.fixture
async def host(home, previews):
    @hookimpl
    async def op_call(event):
        if event.preview is not None:
            previews.append(await event.preview(event.params))
        return Deny("preview only") if previews.refuse else None

    plugins = [
        Plugin("op", "secrets", sideband_secrets.plugin),
        Plugin("store", "sqlite", sideband_store_sqlite.plugin),
        Plugin("guard", "previewing", type("Guard", (), {"op_call": staticmethod(op_call)})),
    ]
    settings = {"plugins": {"secrets": {"backend": "encrypted"}}}
    async with Host(home=home, settings=settings, plugins=plugins, autoload=False) as host:
        yield host


async def change(host, verb, **params):
    """Run an op and return the id of its effect."""
    effects = []
    await host.op(f"secrets.{verb}", {"name": "token"} | params, on_effect=effects.append)
    return effects[-1].id


def store(host, value=OLD):
    return change(host, "set", value=value, origins=[ORIGIN])


async def read(host):
    return await host.op("secrets.read", {"name": "token"})


class TestPreview:
    @pytest.mark.parametrize(
        ("op", "params", "expected"),
        [
            (
                "set",
                {"value": NEW},
                f"would store text as `token`, bound to no origin, permanently replacing `token` (bound to {ORIGIN}",
            ),
            (
                "set",
                {"name": "new", "value": b"\xff", "origins": [ORIGIN]},
                f"would store bytes as `new`, bound to {ORIGIN}",
            ),
            ("rotate", {"value": NEW}, f"would replace the value of `token` (bound to {ORIGIN}, stored"),
            ("rotate", {"name": "new", "value": NEW}, "would fail: secret `new` does not exist"),
            ("rollback", {}, "would fail: no previous value"),
            ("delete", {}, f"would delete `token` (bound to {ORIGIN}"),
            ("delete", {"name": "new"}, "would fail: secret `new` does not exist"),
            ("rekey", {"to": "file"}, "would encrypt the secrets store (`encrypted`) with a new file"),
        ],
    )
    async def test_preview_describes_the_change_without_making_it(self, host, previews, op, params, expected):
        await store(host)
        before = await host.op("secrets.list", {})
        previews.refuse = True
        with pytest.raises(OpDenied):
            await host.op(f"secrets.{op}", params if op == "rekey" else {"name": "token"} | params)
        assert previews[-1].startswith(expected)
        assert NEW not in previews[-1]
        assert OLD not in previews[-1]
        previews.refuse = False
        assert await host.op("secrets.list", {}) == before
        assert await read(host) == OLD

    async def test_preview_of_a_rollback_mentions_the_discarded_value(self, host, previews):
        await store(host)
        await change(host, "rotate", value=NEW)
        await change(host, "rollback")
        assert previews[-1].startswith("would restore the previous value of `token`")
        assert previews[-1].endswith("and discard the current one")


class TestUndo:
    async def undo(self, host, effect):
        plan = await host.plan_undo(effect)
        assert not plan.remains
        await host.undo(plan)

    async def test_undo_of_the_first_set_deletes_the_secret(self, host):
        await self.undo(host, await store(host))
        with pytest.raises(SecretMissing):
            await read(host)

    async def test_undo_of_a_rotation_restores_the_previous_value(self, host):
        await store(host)
        await self.undo(host, await change(host, "rotate", value=NEW))
        assert await read(host) == OLD

    async def test_secret_that_was_changed_since_is_not_undone(self, host):
        first = await store(host)
        second = await change(host, "rotate", value=NEW)
        await change(host, "rotate", value="a-third-value")
        for effect in (first, second):
            plan = await host.plan_undo(effect)
            assert not plan.steps
            assert plan.remains == ("`token` was changed or deleted since",)

    async def test_discarded_values_cannot_be_restored(self, host):
        await store(host)
        replaced = await store(host, NEW)
        assert (await host.plan_undo(replaced)).remains == ("the previous value of `token` is not kept",)
        await change(host, "rotate", value=OLD)
        rolled_back = await change(host, "rollback")
        assert (await host.plan_undo(rolled_back)).remains == ("the newer value of `token` is not kept",)
        deleted = await change(host, "delete")
        assert (await host.plan_undo(deleted)).remains == ("the deleted value of `token` is not kept",)


VERBS = ("set", "rotate", "rollback", "delete")
# Each host is killed before or after it replaces the store.
CRASHING = """
import os, signal, sys
from pathlib import Path
import anyio
import sideband_secrets.plugin, sideband_store_sqlite.plugin
from sideband import Host, Plugin

done = False

def watch(event, arguments):
    global done
    if event == "os.rename" and str(arguments[1]).endswith("store.json"):
        if when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        done = True
    elif done and event != "os.kill":
        os.kill(os.getpid(), signal.SIGKILL)

async def main(home):
    store = Plugin("store", "sqlite", sideband_store_sqlite.plugin)
    plugins = [Plugin("op", "secrets", sideband_secrets.plugin), store]
    settings = {"plugins": {"secrets": {"backend": "encrypted"}}}
    async with Host(home=home, settings=settings, plugins=plugins, autoload=False) as host:
        await host.op("secrets.set", {"name": "token", "value": "the-old-value"})
        await host.op("secrets.rotate", {"name": "token", "value": "the-middle-value"})
        sys.addaudithook(watch)
        value = {"value": "the-new-value"} if verb in ("set", "rotate") else {}
        await host.op(f"secrets.{verb}", {"name": "token", **value})

for verb, when in CASES:
    child = os.fork()
    if child == 0:
        try:
            anyio.run(main, Path(sys.argv[1]) / f"{verb}-{when}")
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL, (verb, when)
"""


@pytest.fixture(scope="module")
def crashed_homes(tmp_path_factory):
    """The homes of the killed hosts."""
    folder = tmp_path_factory.mktemp("homes")
    cases = [(verb, when) for verb in VERBS for when in ("before", "after")]
    subprocess.run([sys.executable, "-c", f"CASES = {cases!r}\n{CRASHING}", folder], check=True)
    return folder


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("verb", VERBS)
async def test_outcome_is_recovered_after_a_crash(open_host, home, crashed_homes, verb, when):
    (crashed_homes / f"{verb}-{when}").rename(home)
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


class TestChangeAfterThePlan:
    """Undo reverts only the change that it was planned for."""

    @pytest.mark.parametrize("verb", ["set", "rotate"])
    async def test_undo_does_not_revert_a_later_change(self, host, verb):
        effect = await store(host)
        if verb == "rotate":
            effect = await change(host, "rotate", value=NEW)
        plan = await host.plan_undo(effect)
        await change(host, "rotate", value="changed-since")
        (step,) = await host.undo(plan)
        assert step.error.code == "secrets.changed"
        assert await read(host) == "changed-since"

    async def test_undo_of_a_deleted_secret_reports_that_it_is_missing(self, host):
        plan = await host.plan_undo(await store(host))
        await change(host, "delete")
        (step,) = await host.undo(plan)
        assert step.error.code == "secrets.missing"
