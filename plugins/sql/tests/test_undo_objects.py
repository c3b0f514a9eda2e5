"""Undo and redo revert a change only in the database that was recorded."""

import apsw
import pytest

pytestmark = pytest.mark.anyio


@pytest.fixture
def effects():
    """Collects the ids of effects."""

    class Effects(list):
        def __call__(self, report):
            self.append(report.id)

    return Effects()


def make(folder):
    folder.mkdir(parents=True)
    connection = apsw.Connection(str(folder / "a.db"))
    connection.execute("CREATE TABLE t (a PRIMARY KEY)")
    connection.execute("INSERT INTO t VALUES ('old')")
    connection.close()
    return folder


def rows(file):
    connection = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return sorted(value for (value,) in connection.execute("SELECT a FROM t"))
    finally:
        connection.close()


@pytest.fixture
def folder(tmp_path):
    return make(tmp_path.resolve() / "place/sub")


@pytest.fixture
def victim(tmp_path):
    """The folder of a database of the user, with the same table."""
    return make(tmp_path.resolve() / "victim")


@pytest.fixture
def undo(host, effects):
    """Return a function that undoes the last effect or a plan, and returns the plan and its errors."""

    async def run(plan=None):
        plan = plan or await host.plan_undo(effects[-1])
        return plan, [step.error for step in await host.undo(plan, on_effect=effects) if step.error]

    async def plan_last():
        return await host.plan_undo(effects[-1])

    run.plan = plan_last
    return run


def replace_by_link(folder, victim):
    folder.rename(folder.with_name("moved away"))
    folder.symlink_to(victim)
    return f"it leads to `{victim}/a.db` now"


def replace_by_folder(folder, victim):
    folder.rename(folder.with_name("moved away"))
    victim.rename(folder)
    return f"`{folder}` is now another folder"


def replace_file(folder, victim):
    (folder / "a.db").rename(folder / "moved away")
    (victim / "a.db").rename(folder / "a.db")
    return "it is now another file"


def replace_file_by_link(folder, victim):
    (folder / "a.db").rename(folder / "moved away")
    (folder / "a.db").symlink_to(victim / "a.db")
    return f"it leads to `{victim}/a.db` now"


REPLACEMENTS = [replace_by_link, replace_by_folder, replace_file, replace_file_by_link]
CHANGES = {"delete": ("DELETE FROM t", []), "insert": ("INSERT INTO t VALUES ('new')", ["new", "old"])}


@pytest.fixture(params=CHANGES)
async def change(request, host, folder, victim, effects):
    """A change of a database that is then found in that of the victim too. Returns the rows of both."""
    sql, expected = CHANGES[request.param]
    await host.op("sql.execute", {"db": str(folder / "a.db"), "sql": sql}, on_effect=effects)
    connection = apsw.Connection(str(victim / "a.db"))
    connection.execute(sql)
    connection.close()
    return expected


@pytest.mark.parametrize("replace", REPLACEMENTS)
async def test_undo_does_not_change_what_replaced_the_database(folder, victim, undo, change, replace):
    what = replace(folder, victim)
    plan, _ = await undo()
    assert rows(folder / "a.db") == change
    assert plan.steps == ()
    assert what in plan.remains[0]


@pytest.mark.parametrize("replace", REPLACEMENTS)
async def test_step_does_not_change_what_replaced_the_database_after_the_plan(undo, folder, victim, change, replace):
    plan = await undo.plan()
    replace(folder, victim)
    _, (error,) = await undo(plan)
    assert error.code == "sql.replaced"
    assert rows(folder / "a.db") == change


@pytest.mark.usefixtures("change")
async def test_undo_does_not_create_a_missing_database(folder, undo):
    plan = await undo.plan()
    (folder / "a.db").unlink()
    assert "does not exist" in (await undo.plan()).remains[0]
    _, (error,) = await undo(plan)
    assert error.code == "sql.missing"
    assert list(folder.iterdir()) == []


async def test_change_through_a_link_is_undone_where_it_led_to(host, folder, victim, effects, undo):
    link = folder.parent / "link"
    link.symlink_to(folder)
    await host.op("sql.execute", {"db": f"{link}/a.db", "sql": "DELETE FROM t"}, on_effect=effects)
    link.unlink()
    link.symlink_to(victim)
    plan, errors = await undo()
    assert (plan.steps[0].text, errors) == (f"revert the change of `{folder}/a.db` (1 row)", [])
    assert rows(folder / "a.db") == ["old"]


async def test_undo_and_redo_of_a_changed_database_that_was_moved_back(folder, victim, undo, change):
    replace_by_link(folder, victim)
    assert (await undo())[0].steps == ()
    folder.unlink()
    folder.with_name("moved away").rename(folder)
    assert (await undo())[1] == []
    assert rows(folder / "a.db") == ["old"]
    assert (await undo())[1] == []
    assert rows(folder / "a.db") == change
