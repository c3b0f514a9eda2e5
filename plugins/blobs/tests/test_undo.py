import subprocess
import sys

import pytest
from sideband.ops import OpDenied

pytestmark = pytest.mark.anyio

# A host that is killed during an op: while it inspects the store, or before or after the change.
CRASHING = """
import os, signal, sys
from pathlib import Path

import anyio
import sideband_blobs.plugin
import sideband_store_sqlite.plugin
from sideband import Host, Plugin
from sideband.blobs import BlobStore


async def kill(*args):
    os.kill(os.getpid(), signal.SIGKILL)


async def main(home, op, params, moment):
    name = op.removeprefix("blobs.")
    change = getattr(BlobStore, name)

    async def change_and_kill(*args):
        if moment == "after":
            await change(*args)
        await kill()

    plugins = [Plugin("op", "blobs", sideband_blobs.plugin), Plugin("store", "sqlite", sideband_store_sqlite.plugin)]
    async with Host(home=home, plugins=plugins, autoload=False) as host:
        if name == "delete":
            await host.op("blobs.put", {"content": "x"})
        setattr(BlobStore, name, change_and_kill)
        if moment == "inspecting":
            BlobStore.find = kill
        await host.op(op, params, key="k")


for op, params, moment in CASES:
    child = os.fork()
    if child == 0:
        try:
            anyio.run(main, Path(sys.argv[1]) / f"{op}-{moment}", op, params, moment)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL, (op, moment)
"""
PARAMS = {
    "blobs.put": {"content": "x"},
    "blobs.delete": {"sha256": "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"},
}


@pytest.fixture
def effects():
    """Collects the ids of effects."""

    class Effects(list):
        def __call__(self, report):
            self.append(report.id)

    return Effects()


async def test_undo_of_put_deletes_the_blob(blobs, host, effects):
    await blobs.put(content="x", on_effect=effects)
    plan = await host.plan_undo(effects[-1])
    assert [step.op for step in plan.steps] == ["blobs.delete"]
    assert "1 bytes" in plan.steps[0].text
    (done,) = await host.undo(plan)
    assert done.result == {"deleted": True}
    assert (await host.plan_undo(effects[-1])).steps == ()


async def test_undo_of_put_keeps_a_blob_that_existed_before(blobs, host, effects):
    await blobs.put(content="x")
    await blobs.put(content="x", on_effect=effects)
    plan = await host.plan_undo(effects[-1])
    assert plan.steps == ()
    assert plan.remains == ("nothing was added: the blob existed before",)


async def test_delete_cannot_be_undone(blobs, host, effects, digest):
    await blobs.put(content="x")
    await blobs.delete(sha256=digest("x"), on_effect=effects)
    await blobs.delete(sha256=digest("x"), on_effect=effects)
    first, second = [(await host.plan_undo(one)).remains[0] for one in effects]
    assert "cannot be restored" in first
    assert "nothing was deleted" in second


@pytest.fixture(scope="module")
def crashed_homes(tmp_path_factory):
    """The homes of the killed hosts."""
    folder = tmp_path_factory.mktemp("homes")
    cases = [(op, params, moment) for op, params in PARAMS.items() for moment in ("inspecting", "before", "after")]
    subprocess.run([sys.executable, "-c", f"CASES = {cases!r}\n{CRASHING}", folder], check=True)
    return folder


@pytest.mark.parametrize(("moment", "status"), [("inspecting", "failed"), ("before", "failed"), ("after", "done")])
@pytest.mark.parametrize("op", PARAMS)
async def test_outcome_is_recovered_after_a_crash(crashed_homes, make_host, op, moment, status):
    async with make_host(crashed_homes / f"{op}-{moment}") as host:
        assert [(one.op, one.status) for one in host.recovered] == [(op, status)]
        if status == "done":
            put = {"sha256": PARAMS["blobs.delete"]["sha256"], "size": 1}
            assert await host.op(op, PARAMS[op], key="k") == (put if op == "blobs.put" else {"deleted": True})


async def test_previews_describe_the_change_without_making_it(host, blobs, digest, previews):
    await blobs.put(content="x")
    previews.clear()
    previews.refuse = True
    for run in (blobs.put(content="größe"), blobs.delete(sha256=digest("x")), blobs.delete(sha256=digest("y"))):
        with pytest.raises(OpDenied):
            await run
    assert previews[0] == "would store a blob of 7 bytes"
    assert "permanently delete" in previews[1]
    assert "do nothing" in previews[2]
    assert len(await host.blobs.list()) == 1
