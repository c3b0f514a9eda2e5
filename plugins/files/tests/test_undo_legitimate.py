"""Undo and redo work for folders that were moved, removed or created again for good reasons."""

import pytest

from .undo_scenes import contents, overwrite, replace_by_link

pytestmark = pytest.mark.anyio


@pytest.fixture
async def undo_in_new_host(open_host):
    """Return a function that undoes an effect in another host of the same home, and returns the new effect."""

    async def run(effect):
        new = []
        async with open_host() as host:
            plan = await host.plan_undo(effect)
            assert plan.remains == ()
            for step in await host.undo(plan, on_effect=new.append):
                if step.error:
                    raise step.error
        return new[-1].id

    return run


async def test_folder_that_was_moved_back_is_the_recorded_one(files, place, effects, undo):
    folder = place / "sub"
    folder.mkdir()
    await overwrite(files, folder, effects)
    replace_by_link(folder, place)
    assert (await undo())[0].steps == ()
    folder.unlink()
    (place / "moved away").rename(folder)
    await undo()
    assert contents(folder) == {"x": "chosen by the attacker"}


async def test_undo_and_redo_of_a_deleted_folder_with_its_files_need_no_common_host(
    files, place, effects, undo_in_new_host
):
    folder = place / "sub"
    folder.mkdir()
    for name in "ab":
        (folder / name).write_text(name)
        await files.delete(folder / name, on_effect=effects)
    await files.delete(f"{folder}/", on_effect=effects)
    # a new folder may otherwise get the inode of the old one
    (place / "takes the inode").mkdir()
    for _ in range(2):
        undone = [await undo_in_new_host(effect) for effect in reversed(effects)]
        assert contents(folder) == {"a": "a", "b": "b"}
        redone = [await undo_in_new_host(effect) for effect in reversed(undone)]
        assert not folder.exists()
        effects[:] = redone


async def test_missing_folder_is_created_again_for_all_its_files(files, place, effects, undo):
    folder = place / "sub/deeper"
    folder.mkdir(parents=True)
    for name in "abc":
        (folder / name).write_text(name)
        await files.delete(folder / name, on_effect=effects)
    folder.rmdir()
    (place / "sub").rmdir()
    (place / "takes the inode").mkdir()
    for effect in list(effects):
        assert (await undo(effect))[1] == []
    assert contents(folder) == {"a": "a", "b": "b", "c": "c"}


async def test_successive_changes_are_undone_in_reverse_and_done_again(files, place, effects, undo):
    await files.make_folder(place / "new", on_effect=effects)
    await files.write(place / "new/x", content="1", on_effect=effects)
    await files.write(place / "new/x", content="2", overwrite=True, on_effect=effects)
    await files.move(place / "new/x", target=f"{place}/new/y", on_effect=effects)
    done = list(effects)
    for effect in reversed(done):
        assert (await undo(effect))[1] == []
    assert contents(place) == {}
    (place / "takes the inode").mkdir()
    for effect in reversed(effects[len(done) :]):
        assert (await undo(effect))[1] == []
    assert contents(place / "new") == {"y": "2"}


async def test_path_through_a_link_is_undone_where_it_led_to(scene):
    link = scene.place / "link"
    (scene.place / "real").mkdir()
    link.symlink_to(scene.place / "real")
    (scene.place / "real/x").write_text("old")
    await scene.files.write(link / "x", content="known", overwrite=True, on_effect=scene.effects)
    link.unlink()
    link.symlink_to(scene.victim)
    (scene.victim / "x").write_text("known")
    assert (await scene.host.plan_undo(scene.effects[-1])).steps[0].text == f"restore `{scene.place}/real/x` (3 bytes)"
    await scene.undo()
    assert (scene.place / "real/x").read_text() == "old"
    assert contents(scene.victim) == {"x": "known"}


async def test_folder_above_may_be_replaced(files, place, effects, undo):
    folder = place / "above/sub"
    folder.mkdir(parents=True)
    await overwrite(files, folder, effects)
    (place / "above").rename(place / "before")
    (place / "above").mkdir()
    (place / "before/sub").rename(folder)
    assert (await undo())[1] == []
    assert contents(folder) == {"x": "chosen by the attacker"}
