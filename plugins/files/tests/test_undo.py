import stat

import pytest
from sideband_confined_files import FileChanged

pytestmark = pytest.mark.anyio


@pytest.fixture
def plan(host, effects):
    """Return a function that plans to undo the last effect."""

    async def plan_last():
        return await host.plan_undo(effects[-1])

    return plan_last


@pytest.fixture
def undo_last(host, plan, effects):
    """Return a function that undoes the last effect and returns what cannot be undone."""

    async def undo():
        planned = await plan()
        for step in await host.undo(planned, on_effect=effects):
            if step.error:
                raise step.error
        return planned.remains

    return undo


async def test_undo_removes_a_new_file(files, home, effects, undo_last):
    await files.write("a/x", content="new", on_effect=effects)
    assert await undo_last() == ()
    assert not (home / "a/x").exists()


async def test_undo_restores_a_replaced_file_with_its_permissions(files, home, effects, plan, undo_last):
    (home / "x").write_text("old")
    (home / "x").chmod(0o640)
    await files.write("x", content="new", overwrite=True, on_effect=effects)
    (home / "x").chmod(0o600)
    assert [step.text for step in (await plan()).steps] == ["restore `x` (3 bytes)"]
    await undo_last()
    assert (home / "x").read_text() == "old"
    assert stat.S_IMODE((home / "x").stat().st_mode) == 0o640


async def test_undo_removes_appended_content(files, home, effects, undo_last):
    (home / "x").write_text("old")
    await files.write("x", content="new", append=True, on_effect=effects)
    await undo_last()
    assert (home / "x").read_text() == "old"


async def test_undo_restores_a_deleted_file(files, home, effects, undo_last):
    (home / "x").write_text("old")
    (home / "x").chmod(0o750)
    await files.delete("x", on_effect=effects)
    await undo_last()
    assert (home / "x").read_text() == "old"
    assert stat.S_IMODE((home / "x").stat().st_mode) == 0o750


async def test_undo_of_a_copy_restores_the_replaced_file(files, home, effects, undo_last):
    (home / "x").write_text("new")
    await files.copy("x", target="y", on_effect=effects)
    await undo_last()
    assert not (home / "y").exists()
    (home / "y").write_text("old")
    await files.copy("x", target="y", overwrite=True, on_effect=effects)
    await undo_last()
    assert (home / "y").read_text() == "old"


async def test_undo_of_a_move_restores_the_replaced_file(files, home, effects, undo_last):
    (home / "x").write_text("new")
    (home / "y").write_text("old")
    await files.move("x", target="y", overwrite=True, on_effect=effects)
    await undo_last()
    assert ((home / "x").read_text(), (home / "y").read_text()) == ("new", "old")


async def test_undo_of_folder_changes(files, home, effects, undo_last):
    await files.make_folder("a", on_effect=effects)
    await undo_last()
    assert not (home / "a").exists()
    (home / "a").mkdir()
    await files.delete("a/", on_effect=effects)
    await undo_last()
    assert (home / "a").is_dir()


async def test_undo_can_be_undone(files, home, effects, undo_last):
    (home / "x").write_text("old")
    await files.write("x", content="new", overwrite=True, on_effect=effects)
    await undo_last()
    await undo_last()
    assert (home / "x").read_text() == "new"
    await files.delete("x", on_effect=effects)
    await undo_last()
    await undo_last()
    assert not (home / "x").exists()


async def test_undo_restores_files_outside_of_the_home(files, place, effects, undo_last):
    (place / "x").write_text("old")
    await files.write(place / "x", content="new", overwrite=True, on_effect=effects)
    await undo_last()
    assert (place / "x").read_text() == "old"


CHANGES = [
    ("write", "x", {"content": "new", "overwrite": True}),
    ("write", "new", {"content": "new"}),
    ("delete", "x", {}),
    ("copy", "x", {"target": "new"}),
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: f"{change[0]}-{change[1]}")
async def test_file_changed_since_is_not_undone(files, home, effects, plan, change):
    name, path, params = change
    (home / "x").write_text("old")
    await getattr(files, name)(path, on_effect=effects, **params)
    changed = home / params.get("target", path)
    changed.write_text("newer")
    planned = await plan()
    assert planned.steps == ()
    assert "changed since" in planned.remains[0]
    assert changed.read_text() == "newer"


async def test_file_changed_between_plan_and_undo_is_not_overwritten(files, host, home, effects, plan):
    await files.write("x", content="new", on_effect=effects)
    planned = await plan()
    (home / "x").write_text("newer")
    (step,) = await host.undo(planned)
    assert isinstance(step.error, FileChanged)
    assert (home / "x").read_text() == "newer"


async def test_undo_of_an_already_restored_file_is_empty(files, home, effects, plan):
    (home / "x").write_text("old")
    await files.write("x", content="new", overwrite=True, on_effect=effects)
    (home / "x").write_text("old")
    assert "nothing to undo" in (await plan()).remains[0]
    await files.make_folder("a", on_effect=effects)
    (home / "a").rmdir()
    assert "nothing to undo" in (await plan()).remains[0]


async def test_undo_of_a_move_needs_the_same_file_and_a_free_path(files, home, effects, plan):
    (home / "x").write_text("old")
    await files.move("x", target="y", on_effect=effects)
    (home / "x").write_text("another")
    assert "another file" in (await plan()).remains[0]
    (home / "y").write_text("changed")
    assert "changed or deleted" in (await plan()).remains[0]


async def test_undo_of_an_op_without_effect_is_empty(files, home, effects, plan):
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
async def test_undo_reports_content_that_was_too_large(files, home, effects, plan):
    (home / "x").write_text("older")
    await files.write("x", content="new", overwrite=True, on_effect=effects)
    planned = await plan()
    assert planned.steps == ()
    assert "5 bytes exceed `undo_bytes`" in planned.remains[0]
    (home / "y").write_text("older")
    await files.move("x", target="y", overwrite=True, on_effect=effects)
    planned = await plan()
    assert [step.op for step in planned.steps] == ["files.move"]
    assert "`undo_bytes`" in planned.remains[0]
    assert not (home.parent / "blobs").exists()


async def test_undo_fails_if_the_blob_was_deleted(files, host, home, effects, undo_last):
    (home / "x").write_text("old")
    await files.delete("x", on_effect=effects)
    await host.blobs.delete((await host.blobs.list())[0].sha256)
    with pytest.raises(LookupError, match="blob"):
        await undo_last()
    assert not (home / "x").exists()


async def test_restore_replaces_only_the_expected_file(files, host, home, digest):
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
    with pytest.raises(ValueError, match="pass `blob`, `expected` or both"):
        await files.restore("x")
