import stat

import pytest
from sideband_confined_files import FileChanged

pytestmark = pytest.mark.anyio


@pytest.fixture
def effects():
    """Remembers the effects of ops."""

    class Effects(list):
        def __call__(self, report):
            self.append(report.id)

    return Effects()


@pytest.fixture
def plan(host, effects):
    """The plan to take back the last effect."""

    async def plan_it():
        return await host.plan_undo(effects[-1])

    return plan_it


@pytest.fixture
def take_back(host, plan, effects):
    """Takes back the last effect, and answers what remains."""

    async def take():
        planned = await plan()
        for step in await host.undo(planned, on_effect=effects):
            if step.error:
                raise step.error
        return planned.remains

    return take


async def test_a_new_file_is_removed(files, home, effects, take_back):
    await files.write("a/x", content="new", on_effect=effects)
    assert await take_back() == ()
    assert not (home / "a/x").exists()


async def test_a_file_that_was_replaced_is_put_back_with_its_mode(files, home, effects, plan, take_back):
    (home / "x").write_text("old")
    (home / "x").chmod(0o640)
    await files.write("x", content="new", overwrite=True, on_effect=effects)
    (home / "x").chmod(0o600)
    assert [step.text for step in (await plan()).steps] == ["put back `x` (3 bytes) as it was"]
    await take_back()
    assert (home / "x").read_text() == "old"
    assert stat.S_IMODE((home / "x").stat().st_mode) == 0o640


async def test_what_was_added_to_a_file_is_taken_off(files, home, effects, take_back):
    (home / "x").write_text("old")
    await files.write("x", content="new", append=True, on_effect=effects)
    await take_back()
    assert (home / "x").read_text() == "old"


async def test_a_file_that_was_deleted_is_there_again(files, home, effects, take_back):
    (home / "x").write_text("old")
    (home / "x").chmod(0o750)
    await files.delete("x", on_effect=effects)
    await take_back()
    assert (home / "x").read_text() == "old"
    assert stat.S_IMODE((home / "x").stat().st_mode) == 0o750


async def test_a_copy_is_removed_and_what_it_has_replaced_put_back(files, home, effects, take_back):
    (home / "x").write_text("new")
    await files.copy("x", target="y", on_effect=effects)
    await take_back()
    assert not (home / "y").exists()
    (home / "y").write_text("old")
    await files.copy("x", target="y", overwrite=True, on_effect=effects)
    await take_back()
    assert (home / "y").read_text() == "old"


async def test_a_file_that_was_moved_is_moved_back_and_what_it_has_replaced_put_back(files, home, effects, take_back):
    (home / "x").write_text("new")
    (home / "y").write_text("old")
    await files.move("x", target="y", overwrite=True, on_effect=effects)
    await take_back()
    assert ((home / "x").read_text(), (home / "y").read_text()) == ("new", "old")


async def test_folders_are_removed_and_made_again(files, home, effects, take_back):
    await files.make_folder("a", on_effect=effects)
    await take_back()
    assert not (home / "a").exists()
    (home / "a").mkdir()
    await files.delete("a/", on_effect=effects)
    await take_back()
    assert (home / "a").is_dir()


async def test_taking_back_is_taken_back(files, home, effects, take_back):
    (home / "x").write_text("old")
    await files.write("x", content="new", overwrite=True, on_effect=effects)
    await take_back()
    await take_back()
    assert (home / "x").read_text() == "new"
    await files.delete("x", on_effect=effects)
    await take_back()
    await take_back()
    assert not (home / "x").exists()


async def test_files_elsewhere_are_put_back_too(files, place, effects, take_back):
    (place / "x").write_text("old")
    await files.write(place / "x", content="new", overwrite=True, on_effect=effects)
    await take_back()
    assert (place / "x").read_text() == "old"


CHANGES = [
    ("write", "x", {"content": "new", "overwrite": True}),
    ("write", "new", {"content": "new"}),
    ("delete", "x", {}),
    ("copy", "x", {"target": "new"}),
]


@pytest.mark.parametrize("change", CHANGES)
async def test_what_was_changed_again_since_is_not_taken_back(files, home, effects, plan, change):
    name, path, params = change
    (home / "x").write_text("old")
    await getattr(files, name)(path, on_effect=effects, **params)
    changed = home / params.get("target", path)
    changed.write_text("newer")
    planned = await plan()
    assert planned.steps == ()
    assert "changed again since" in planned.remains[0]
    assert changed.read_text() == "newer"


async def test_what_is_changed_between_plan_and_undo_stays(files, host, home, effects, plan):
    await files.write("x", content="new", on_effect=effects)
    planned = await plan()
    (home / "x").write_text("newer")
    (step,) = await host.undo(planned)
    assert isinstance(step.error, FileChanged)
    assert (home / "x").read_text() == "newer"


async def test_what_is_as_before_need_not_be_taken_back(files, home, effects, plan):
    (home / "x").write_text("old")
    await files.write("x", content="new", overwrite=True, on_effect=effects)
    (home / "x").write_text("old")
    assert "as it was before" in (await plan()).remains[0]
    await files.make_folder("a", on_effect=effects)
    (home / "a").rmdir()
    assert "as it was before" in (await plan()).remains[0]


async def test_a_moved_file_goes_back_only_if_it_is_that_file_and_its_place_is_free(files, home, effects, plan):
    (home / "x").write_text("old")
    await files.move("x", target="y", on_effect=effects)
    (home / "x").write_text("another")
    assert "another file" in (await plan()).remains[0]
    (home / "y").write_text("changed")
    assert "changed or deleted" in (await plan()).remains[0]


async def test_what_changed_nothing_says_so(files, home, effects, plan):
    (home / "a").mkdir()
    await files.make_folder("a", on_effect=effects)
    assert "nothing was changed" in (await plan()).remains[0]
    with pytest.raises(FileExistsError):
        await files.write("a", content="", on_effect=effects)
    assert (await plan()).remains == ("nothing was changed",)
    with pytest.raises(FileNotFoundError):
        await files.move("x", target="y", on_effect=effects)
    assert (await plan()).remains == ("nothing was moved",)
    for name in ("x", "y"):
        (home / name).write_text(name)
    with pytest.raises(FileExistsError):
        await files.move("x", target="y", on_effect=effects)
    assert (await plan()).remains == ("nothing was moved",)


@pytest.mark.parametrize("settings", [{"undo_bytes": 3}, {"undo_bytes": 0}])
async def test_what_is_too_large_to_be_kept_is_said_to_be_gone(files, home, effects, plan):
    (home / "x").write_text("older")
    await files.write("x", content="new", overwrite=True, on_effect=effects)
    planned = await plan()
    assert planned.steps == ()
    assert "it had 5 bytes, more than `undo_bytes` allows" in planned.remains[0]
    (home / "y").write_text("older")
    await files.move("x", target="y", overwrite=True, on_effect=effects)
    planned = await plan()
    assert [step.op for step in planned.steps] == ["files.move"]
    assert "`undo_bytes`" in planned.remains[0]
    assert not (home.parent / "blobs").exists()


async def test_what_is_no_longer_kept_can_not_be_put_back(files, host, home, effects, take_back):
    (home / "x").write_text("old")
    await files.delete("x", on_effect=effects)
    await host.blobs.delete((await host.blobs.list())[0].sha256)
    with pytest.raises(LookupError, match="there is no blob"):
        await take_back()
    assert not (home / "x").exists()


async def test_restoring_replaces_only_what_was_expected(files, host, home, digest):
    blob = await host.blobs.put(b"old")
    (home / "x").write_text("now")
    with pytest.raises(FileExistsError):
        await files.restore("x", blob=blob.sha256)
    with pytest.raises(FileChanged):
        await files.restore("x", blob=blob.sha256, expected=digest("other"))
    with pytest.raises(FileChanged):
        await files.restore("x", expected=digest("other"))
    restored = await files.restore("x", blob=blob.sha256, expected=digest("now"), permissions=0o640)
    assert restored == {"path": "x", "sha256": digest("old"), "size": 3}
    assert await files.restore("x", expected=digest("old")) == {"path": "x", "sha256": None, "size": 0}
    with pytest.raises(ValueError, match="give `blob`, `expected` or both"):
        await files.restore("x")
