"""``sideband undo``: shows what would be taken back and what can't be, asks, does it, and says by which effects."""

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
        return Undo(remains=("what was there before was not kept",))
    step = UndoStep("shelf.put", {"thing": before}, f"put `{before}` back")
    return Undo((step, step) if before == "anvil" else (step,), ("whoever saw it has seen it",))


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
    """The environment in which the op family `shelf` is found."""
    return plugin("shelf", "op", SHELF)


@pytest.fixture
def put(sideband, shelf):
    """Puts a thing on the shelf; the effect."""

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
def there(tmp_path):
    """The shelf, with a book on it."""
    file = tmp_path / "home" / "shelf"
    file.parent.mkdir(mode=0o700)
    file.write_text("book")
    return file


def test_what_was_there_before_is_there_again(there, put, undo):
    done = undo(put("vase"), "--yes")
    assert done.returncode == 0, done.stderr
    assert there.read_text() == "book"
    assert "put `book` back (shelf.put)" in done.stderr
    assert "done: put `book` back" in done.stdout
    assert "what can't be taken back:\n  - whoever saw it has seen it" in done.stdout


def test_a_dry_run_changes_nothing_and_asks_nobody(there, put, undo):
    done = undo(put("vase"), "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "  1. put `book` back (shelf.put)" in done.stdout
    assert "  - whoever saw it has seen it" in done.stdout
    assert there.read_text() == "vase"


def test_where_nobody_can_be_asked_nothing_is_changed(there, put, undo):
    done = undo(put("vase"))
    assert done.returncode == 3
    assert "undo.declined" in done.stderr
    assert "--yes" in done.stderr
    assert "put `book` back" in done.stderr
    assert there.read_text() == "vase"


def test_a_person_who_says_no_keeps_everything(there, put, terminal, shelf):
    at = terminal("undo", put("vase"), **shelf)
    at.wait_for("put `book` back", "Do this? [y/N]")
    at.type("n\r")
    assert at.wait() == 3
    assert "nothing was changed" in at.text
    assert there.read_text() == "vase"


def test_a_person_who_says_yes_has_it_taken_back(there, put, terminal, shelf):
    at = terminal("undo", put("vase"), **shelf)
    at.wait_for("Do this? [y/N]")
    at.type("y\r")
    assert at.wait() == 0
    assert there.read_text() == "book"


def test_what_was_taken_back_is_not_taken_back_twice(there, put, undo):
    effect = put("vase")
    undo(effect, "--yes")
    there.write_text("clock")
    done = undo(effect, "--yes")
    assert done.returncode == 0
    assert f"{effect} was taken back already by " in done.stdout
    assert there.read_text() == "clock"


def test_undoing_can_be_undone_and_that_too(there, put, undo):
    effect = put("vase")
    first = json.loads(undo(effect, "--yes", "--json").stdout)["effects"][0]["id"]
    assert f"to have it again: sideband undo {first}" in undo(effect, "--yes").stdout
    second = json.loads(undo(first, "--yes", "--json").stdout)["effects"][0]["id"]
    assert there.read_text() == "vase"
    assert f"by {first}, and that by {second}\nto take it back again: sideband undo {second}" in undo(effect).stdout


def test_what_was_taken_back_is_not_called_impossible(tmp_path, sideband):
    effects = json.loads(sideband("op", "files.write", "path=a.txt", "content=one", "--json").stdout)["effects"]
    effect = effects[-1]["id"]
    assert sideband("undo", effect, "--yes").returncode == 0
    assert not (tmp_path / "home" / "files" / "a.txt").exists()
    done = sideband("undo", effect, "--yes")
    assert done.returncode == 0, done.stderr
    assert f"{effect} was taken back already by " in done.stdout


def test_an_effect_of_which_nothing_can_be_taken_back_is_an_error_that_says_why(put, undo):
    done = undo(put("book"), "--yes", "--json")
    assert done.returncode == 1
    error = json.loads(done.stdout)["error"]
    assert error["code"] == "undo.impossible"
    assert "what was there before was not kept" in error["message"]
    assert "sideband audit why" in error["hint"]


@pytest.mark.usefixtures("there")
def test_an_op_that_changes_nothing_leaves_nothing_to_take_back(sideband, undo, shelf):
    looked = json.loads(sideband("op", "shelf.look", "--json", **shelf).stdout)["effects"][0]["id"]
    done = undo(looked, "--yes")
    assert done.returncode == 1
    assert "changes nothing" in done.stderr


def test_an_effect_that_is_not_there_is_a_usage_error(undo):
    done = undo("nothing", "--json")
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["code"] == "effect.missing"


def test_a_step_that_fails_is_told_and_those_after_it_are_not_tried(there, put, undo):
    there.write_text("anvil")
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
    assert there.read_text() == "clock"


def test_a_guard_can_keep_an_effect_from_being_taken_back(there, put, undo, plugin):
    effect = put("vase")
    plugin(
        "keeper",
        "hook",
        "from sideband import hookimpl\nfrom sideband.hooks import Deny\n"
        "@hookimpl\nasync def op_call(event):\n    return Deny('it stays') if event.op == 'shelf.put' else None\n",
    )
    done = undo(effect, "--yes")
    assert done.returncode == 3
    assert "it stays" in done.stderr
    assert there.read_text() == "vase"


@pytest.mark.usefixtures("there")
def test_why_tells_what_took_an_effect_back_and_what_it_takes_back(sideband, put, undo, shelf):
    effect = put("vase")
    taken = json.loads(undo(effect, "--yes", "--json").stdout)["effects"][0]["id"]
    said = sideband("audit", "why", effect, COLUMNS="100", **shelf).stdout
    assert f"taken back  by {taken}: shelf.put, done" in said
    assert 'noted       {"before": "book"}' in said
    assert f"takes back  {effect}" in sideband("audit", "why", taken, COLUMNS="100", **shelf).stdout
    data = json.loads(sideband("audit", "why", effect, "--json", **shelf).stdout)
    assert data["taken_back"] == [{"effect": taken, "op": "shelf.put", "status": "done"}]
