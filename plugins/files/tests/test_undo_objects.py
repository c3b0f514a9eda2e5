"""Undo, redo and restore act only on the folder and the content that were recorded."""

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from sideband.broker import recover
from sideband.ledger import Intent, find
from sideband.ops import Level, OpError, Origin, Recorded
from sideband_confined_files import ConfinedFolder, FileError
from sideband_files._undo import undo_change, undo_folder, undo_move

from .undo_scenes import CHANGES, REPLACEMENTS, contents, create, delete, fill, overwrite, replace_by_link

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("replacement", REPLACEMENTS)
@pytest.mark.parametrize("change", CHANGES)
async def test_undo_does_not_change_what_replaced_the_folder(scene, change, replacement):
    run, content = CHANGES[change]
    folder = scene.place / "sub"
    folder.mkdir()
    await run(scene.files, folder, scene.effects)
    fill(scene.victim, content)
    before = contents(scene.victim)
    REPLACEMENTS[replacement](folder, scene.victim)
    plan, _ = await scene.undo()
    assert contents(folder) == before
    assert plan.steps == ()
    what = (
        f"`{folder}` is now a symbolic link to `{scene.victim}`" if replacement == "link" else "is now another folder"
    )
    assert what in plan.remains[0]


@pytest.mark.parametrize("replacement", REPLACEMENTS)
@pytest.mark.parametrize("change", CHANGES)
async def test_step_does_not_change_what_replaced_the_folder_after_the_plan(scene, change, replacement):
    run, content = CHANGES[change]
    folder = scene.place / "sub"
    folder.mkdir()
    await run(scene.files, folder, scene.effects)
    plan = await scene.host.plan_undo(scene.effects[-1])
    fill(scene.victim, content)
    before = contents(scene.victim)
    REPLACEMENTS[replacement](folder, scene.victim)
    _, (error,) = await scene.undo(plan=plan)
    assert error.code == "file.replaced"
    assert contents(folder) == before


@pytest.mark.parametrize("replacement", REPLACEMENTS)
async def test_redo_does_not_change_what_replaced_the_folder(scene, replacement):
    folder = scene.place / "sub"
    folder.mkdir()
    await create(scene.files, folder, scene.effects)
    await scene.undo()
    REPLACEMENTS[replacement](folder, scene.victim)
    plan, _ = await scene.undo()
    assert plan.steps == ()
    assert contents(folder) == {}


async def test_undo_does_not_follow_a_link_above_the_folder(files, place, victim, effects, undo):
    folder = place / "a/b/c"
    folder.mkdir(parents=True)
    await overwrite(files, folder, effects)
    (victim / "b/c").mkdir(parents=True)
    (victim / "b/c/x").write_text("known")
    replace_by_link(place / "a", victim)
    plan, _ = await undo()
    assert (victim / "b/c/x").read_text() == "known"
    assert f"`{place}/a` is now a symbolic link to `{victim}`" in plan.remains[0]


async def test_undo_does_not_create_a_missing_folder_in_what_replaced_its_parent(scene):
    for number, replace in enumerate(REPLACEMENTS.values()):
        folder = scene.place / f"{number}/sub"
        folder.mkdir(parents=True)
        await delete(scene.files, folder, scene.effects)
        folder.rmdir()
        plan = await scene.host.plan_undo(scene.effects[-1])
        replace(scene.place / f"{number}", scene.victim)
        assert (await scene.undo())[0].steps == ()
        _, (error,) = await scene.undo(plan=plan)
        assert error.code == "file.replaced"
        assert contents(folder.parent) == {}
        (scene.place / "moved away").rename(scene.place / f"moved away {number}")


async def test_undo_in_the_folder_of_the_host_does_not_follow_a_link(files, home, victim, effects, undo):
    (home / "sub").mkdir()
    (home / "sub/x").write_text("old")
    await files.write("sub/x", content="known", overwrite=True, on_effect=effects)
    (victim / "x").write_text("known")
    replace_by_link(home / "sub", victim)
    plan, _ = await undo()
    assert f"`sub` is now a symbolic link to `{victim}`" in plan.remains[0]
    assert (victim / "x").read_text() == "known"


@pytest.mark.parametrize("kind", ["link", "folder", "pipe"])
async def test_plan_reports_what_replaced_a_file(scene, kind):
    await create(scene.files, scene.place, scene.effects)
    (scene.victim / "x").write_text("known")
    (scene.place / "x").unlink()
    if kind == "link":
        (scene.place / "x").symlink_to(scene.victim / "x")
    elif kind == "folder":
        (scene.place / "x").mkdir()
    else:
        os.mkfifo(scene.place / "x")
    plan, _ = await scene.undo()
    assert plan.steps == ()
    what = {"link": f"a symbolic link to `{scene.victim}/x`", "folder": "a folder", "pipe": "a pipe"}[kind]
    assert f"`{scene.place}/x` is now {what}" in plan.remains[0]


async def test_undo_does_not_change_another_hard_link_of_a_file(files, place, victim, effects, undo):
    await overwrite(files, place, effects)
    (place / "x").unlink()
    (victim / "x").write_text("known")
    (place / "x").hardlink_to(victim / "x")
    before = (victim / "x").stat()
    await undo()
    after = (victim / "x").stat()
    assert (victim / "x").read_text() == "known"
    assert (after.st_ino, after.st_mode, after.st_uid) == (before.st_ino, before.st_mode, before.st_uid)


async def test_folder_with_the_inode_of_the_recorded_one_is_another_folder(files, place, effects, undo):
    folder = place / "sub"
    folder.mkdir()
    await delete(files, folder, effects)
    inode = folder.stat().st_ino
    for _ in range(100):
        folder.rmdir()
        folder.mkdir()
        if folder.stat().st_ino == inode:
            break
    else:
        pytest.skip("this file system does not use the number of an inode again")
    plan, _ = await undo()
    assert "another folder" in plan.remains[0]
    assert contents(folder) == {}


async def test_folder_that_is_moved_to_a_path_while_it_is_created_again_is_another_folder(scene, monkeypatch):
    folder, make_folder = scene.place / "sub", os.mkdir
    folder.mkdir()
    await delete(scene.files, folder, scene.effects)
    plan = await scene.host.plan_undo(scene.effects[-1])
    (scene.victim / "y").write_text("known")
    folder.rmdir()

    def make_and_move(*arguments, **options):
        make_folder(*arguments, **options)
        if "dir_fd" in options and scene.victim.exists():
            scene.victim.rename(folder)

    monkeypatch.setattr(os, "mkdir", make_and_move)
    for _ in range(2):
        _, errors = await scene.undo(plan=plan)
        assert "another folder" in str(errors[0])
    assert contents(folder) == {"y": "known"}


SWAPPER = """
import os, sys
name, real, other = sys.argv[1:]
print("begun", flush=True)
while True:
    os.rename(name, real)
    os.rename(other, name)
    os.rename(name, other)
    os.rename(real, name)
"""


@contextmanager
def swapping(name, real, other):
    """Let a process exchange two folders at a path as fast as possible."""
    with subprocess.Popen([sys.executable, "-c", SWAPPER, name, real, other], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        yield
        process.kill()


def contents_of(descriptor):
    """Return the distinct contents of the files in an open folder, and close it."""
    found = {path.read_text() for path in Path(f"/proc/self/fd/{descriptor}").iterdir()}
    os.close(descriptor)
    return found


@pytest.mark.parametrize("replacement", REPLACEMENTS)
async def test_folder_swapped_during_undo_protects_what_it_is_swapped_with(scene, replacement):
    folder, other = scene.place / "sub", scene.place / "other"
    folder.mkdir()
    held = os.open(scene.victim, os.O_RDONLY)
    for number in range(40):
        (folder / f"{number}").write_text("chosen by the attacker")
        await scene.files.write(folder / f"{number}", content="known", overwrite=True, on_effect=scene.effects)
        (scene.victim / f"{number}").write_text("known")
    if replacement == "link":
        other.symlink_to(scene.victim)
    else:
        scene.victim.rename(other)
    plans = [await scene.host.plan_undo(effect) for effect in scene.effects]
    with swapping(folder, scene.place / "real", other):
        outcomes = [step.error for plan in plans * 5 for step in await scene.host.undo(plan)]
    assert any(isinstance(error, FileError) for error in outcomes)
    assert contents_of(held) == {"known"}


async def test_recorded_folders_do_not_widen_a_grant(files, place, victim, digest):
    (place / "link").symlink_to(victim)
    (victim / "x").write_text("known")
    folders = await ConfinedFolder(Path("/")).folders(f"{victim}/x".lstrip("/"))
    grants = [f"files:path={place}/*,mode=*,hidden=*"]
    spellings = [
        "{}/../victim/x",
        "{}/./x",
        "{}//x",
        "{}/link/x",
        "{}/link/../../victim/x",
        "{}/x\n",
        "~/x",
        "/proc/self/x",
    ]
    for path in (spelling.format(place) for spelling in spellings):
        for op, params in (
            ("restore", {"expected": digest("known")}),
            ("delete", {}),
            ("make_folder", {}),
            ("move", {"target": f"{place}/new"}),
            ("move", {"path": f"{place}/link/x", "target": path, "target_folders": folders}),
        ):
            with pytest.raises(OpError):
                await getattr(files, op)(**{"path": path, "folders": folders, **params}, grants=grants)
    assert contents(victim) == {"x": "known"}
    assert [path.name for path in place.iterdir()] == ["link"]


async def test_folder_is_not_deleted_in_place_of_the_one_that_was_made(files, host, place, effects, undo):
    await files.make_folder(place / "x", on_effect=effects)
    plan = await host.plan_undo(effects[-1])
    (place / "x").rename(place / "moved away")
    (place / "x").mkdir()
    assert "another folder" in (await host.plan_undo(effects[-1])).remains[0]
    _, (error,) = await undo(plan=plan)
    assert error.code == "file.replaced"
    assert (place / "x").is_dir()


@pytest.mark.parametrize("replacement", REPLACEMENTS)
async def test_outcome_of_a_lost_effect_is_unknown_if_its_folder_was_replaced(scene, replacement):
    for number, (run, content) in enumerate(CHANGES.values()):
        folder, victim = scene.place / f"{number}/sub", scene.victim / f"{number}"
        folder.mkdir(parents=True)
        victim.mkdir()
        await run(scene.files, folder, scene.effects)
        fill(victim, content)
        record = await find(scene.host.ledger.folder, scene.effects[-1])
        assert await recovered_status(scene.host, record) == "done"
        REPLACEMENTS[replacement](folder, victim)
        assert await recovered_status(scene.host, record) == "unknown"


class LostEffect:
    """A ledger that contains one effect without an outcome."""

    def __init__(self, record):
        grant = ("files:mode=*", "files:path=*,place=system,mode=*,hidden=*")
        self.intent = Intent(
            effect="dead-1",
            op=record.op,
            key=None,
            params=record.params,
            grant=grant,
            origin=Origin(),
            level=Level.CONTROLLED,
            note=record.note,
        )

    async def orphans(self):
        return [self.intent]

    async def outcome(self, outcome, *, due):
        pass


async def recovered_status(host, record):
    """Return the status of an effect as if the host had died during it."""
    (recovered,) = await recover(host.broker, LostEffect(record), host.broker._claims)
    return recovered.status


@pytest.mark.parametrize("plan", [undo_change, undo_folder, undo_move])
async def test_record_without_folders_is_not_undone(plan):
    note = {"path": "x", "before": None, "after": None, "folder": "made"}
    planned = await plan(Recorded(effect="1", op="files.write", note=note), None)
    assert planned.steps == ()
    assert "does not contain the folders" in planned.remains[0]
