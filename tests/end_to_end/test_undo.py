"""``sideband undo``: the plan, its confirmation, its execution and its records."""

import json

import pytest

SHELF = '''
from pathlib import Path

from pydantic import BaseModel

from sideband import Level, OpContext, OpFamily, op
from sideband.ops import OpFailed, Undo, UndoStep


class Put(BaseModel):
    thing: str


class Nothing(BaseModel):
    pass


async def plan(recorded, ctx):
    if recorded.status != "done":
        return Undo(remains=(f"it ended as {recorded.status}",))
    before = recorded.note["before"]
    if before is None:
        return Undo(remains=("the previous content was not stored",))
    step = UndoStep("shelf.put", {"thing": before}, f"put `{before}` back")
    return Undo((step, step) if before == "anvil" else (step,), ("it may have been seen",))


@op("shelf.put", level=Level.CONTROLLED, record=["thing"], undo=plan)
async def put(params: Put, ctx: OpContext) -> str:
    """Put a thing on the shelf."""
    shelf = ctx.home / "shelf"
    await ctx.note({"before": shelf.read_text() if shelf.exists() else None})
    if params.thing == "anvil":
        raise OpFailed("the shelf broke", hint="mend it")
    shelf.write_text(params.thing)
    return params.thing


@op("shelf.look")
async def look(params: Nothing, ctx: OpContext) -> str:
    """Look at the shelf."""
    return (ctx.home / "shelf").read_text()


def sideband_ops():
    return OpFamily(name="shelf", ops=(put, look))
'''


@pytest.fixture
def shelf(plugin):
    """The environment with the op family `shelf`."""
    return plugin("shelf", "op", SHELF)


@pytest.fixture
def put(sideband, shelf):
    """Return a function that puts a thing on the shelf and returns the id of the effect."""

    def run(thing):
        done = sideband("op", "shelf.put", f"thing={thing}", "--json", **shelf)
        (effect,) = json.loads(done.stdout)["effects"]
        return effect["id"]

    return run


@pytest.fixture
def undo(sideband, shelf):
    def run(*words):
        return sideband("undo", *words, **shelf)

    return run


@pytest.fixture
def content(tmp_path):
    """The file of the shelf, which holds a book."""
    file = tmp_path / "home" / "shelf"
    file.parent.mkdir(mode=0o700)
    file.write_text("book")
    return file


def test_undo_restores_the_previous_content(content, put, undo):
    done = undo(put("vase"), "--yes")
    assert done.returncode == 0, done.stderr
    assert content.read_text() == "book"
    assert "put `book` back (shelf.put)" in done.stderr
    assert "done: put `book` back" in done.stdout
    assert "cannot be undone:\n  - it may have been seen" in done.stdout


def test_dry_run_shows_the_plan_and_changes_nothing(content, put, undo):
    done = undo(put("vase"), "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "  1. put `book` back (shelf.put)" in done.stdout
    assert "  - it may have been seen" in done.stdout
    assert content.read_text() == "vase"


def test_undo_without_a_terminal_is_declined(content, put, undo):
    done = undo(put("vase"))
    assert done.returncode == 3
    assert "undo.declined" in done.stderr
    assert "--yes" in done.stderr
    assert "put `book` back" in done.stderr
    assert content.read_text() == "vase"


def test_declined_undo_changes_nothing(content, put, terminal, shelf):
    at = terminal("undo", put("vase"), **shelf)
    at.wait_for("put `book` back", "Continue? [y/N]")
    at.type("n\r")
    assert at.wait() == 3
    assert "nothing was changed" in at.text
    assert content.read_text() == "vase"


def test_confirmed_undo_restores_the_previous_content(content, put, terminal, shelf):
    at = terminal("undo", put("vase"), **shelf)
    at.wait_for("Continue? [y/N]")
    at.type("y\r")
    assert at.wait() == 0
    assert content.read_text() == "book"


def test_second_undo_of_an_effect_changes_nothing(content, put, undo):
    effect = put("vase")
    undo(effect, "--yes")
    content.write_text("clock")
    done = undo(effect, "--yes")
    assert done.returncode == 0
    assert f"{effect} is already undone: it was undone by " in done.stdout
    assert content.read_text() == "clock"


def test_undo_can_be_undone_repeatedly(content, put, undo):
    effect = put("vase")
    first = json.loads(undo(effect, "--yes", "--json").stdout)["effects"][0]["id"]
    assert f"to redo it: sideband undo {first}" in undo(effect, "--yes").stdout
    second = json.loads(undo(first, "--yes", "--json").stdout)["effects"][0]["id"]
    assert content.read_text() == "vase"
    shown = undo(effect).stdout
    assert f"by {first}, which was undone by {second}\nto undo it: sideband undo {second}" in shown


def test_second_undo_of_a_created_file_is_not_reported_as_impossible(tmp_path, sideband):
    effects = json.loads(sideband("op", "files.write", "path=a.txt", "content=one", "--json").stdout)["effects"]
    effect = effects[-1]["id"]
    assert sideband("undo", effect, "--yes").returncode == 0
    assert not (tmp_path / "home" / "files" / "a.txt").exists()
    done = sideband("undo", effect, "--yes")
    assert done.returncode == 0, done.stderr
    assert f"{effect} is already undone: it was undone by " in done.stdout


def test_effect_that_cannot_be_undone_is_an_error_with_the_reason(put, undo):
    done = undo(put("book"), "--yes", "--json")
    assert done.returncode == 1
    error = json.loads(done.stdout)["error"]
    assert error["code"] == "undo.impossible"
    assert "the previous content was not stored" in error["message"]
    assert "sideband audit why" in error["hint"]


@pytest.mark.usefixtures("content")
def test_undo_of_a_reading_op_is_an_error(sideband, undo, shelf):
    looked = json.loads(sideband("op", "shelf.look", "--json", **shelf).stdout)["effects"][0]["id"]
    done = undo(looked, "--yes")
    assert done.returncode == 1
    assert "undo.impossible" in done.stderr


def test_unknown_effect_is_a_usage_error(undo):
    done = undo("nothing", "--json")
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["code"] == "effect.missing"


def test_failed_step_is_reported_and_stops_the_undo(content, put, undo):
    content.write_text("anvil")
    effect = put("clock")
    done = undo(effect, "--yes", "--json")
    data = json.loads(done.stdout)
    assert done.returncode == 1
    assert data["error"]["message"] == "the shelf broke"
    assert [(one["key"], one["state"]) for one in data["steps"]] == [
        (f"undo:{effect}:0", "failed"),
        (f"undo:{effect}:1", None),
    ]
    assert [one["status"] for one in data["effects"]] == ["failed"]
    assert content.read_text() == "clock"


def test_guard_can_deny_an_undo(content, put, undo, plugin):
    effect = put("vase")
    plugin(
        "keeper",
        "guard",
        "from sideband import hookimpl\nfrom sideband.hooks import Deny\nclass Keeper:\n    @hookimpl\n"
        "    async def op_call(self, event):\n"
        "        return Deny('it stays') if event.op == 'shelf.put' else None\n"
        "def sideband_guards():\n    return [Keeper]\n",
    )
    done = undo(effect, "--yes")
    assert done.returncode == 3
    assert "it stays" in done.stderr
    assert content.read_text() == "vase"


@pytest.mark.usefixtures("content")
def test_why_shows_the_undoing_and_the_undone_effect(sideband, put, undo, shelf):
    effect = put("vase")
    undoing = json.loads(undo(effect, "--yes", "--json").stdout)["effects"][0]["id"]
    text = sideband("audit", "why", effect, COLUMNS="100", **shelf).stdout
    assert f"undone by   {undoing}: shelf.put, done" in text
    assert 'op note     {"before": "book"}' in text
    assert f"undoes      {effect}" in sideband("audit", "why", undoing, COLUMNS="100", **shelf).stdout
    data = json.loads(sideband("audit", "why", effect, "--json", **shelf).stdout)
    assert data["taken_back"] == [{"effect": undoing, "op": "shelf.put", "status": "done"}]
