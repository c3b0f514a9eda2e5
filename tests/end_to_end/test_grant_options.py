"""``--grant`` adds rights, ``--only`` replaces them, and the options in a hint can be pasted."""

import json
import re
import shlex

import pytest

CODE = """
from sideband.skill import files, shell, sql, tool

@tool
async def look() -> int:
    return 1

@tool
async def store() -> str:
    await sql.execute("CREATE TABLE t (a)", db="notes.db")
    return "stored"

@tool
async def log(place: str) -> str:
    answer = await shell.run("ls", args=["--all", place], read=[place])
    return answer["stdout"]
"""
SQL = "sql:path=notes.db"


def pasted(text):
    """Return the options of the command line that a hint offers."""
    return shlex.split(" ".join(re.findall(r"--grant '(?:[^']|'\"'\"')*'", text)))


@pytest.fixture
def call(sideband, make_skill, tmp_path):
    place = tmp_path / "a place"
    place.mkdir()
    skill = make_skill("modest", CODE, f"{SQL} shell:binary=ls,sub=-l,place={str(place).replace(' ', '%20')}")

    def run(tool, *options, command="call"):
        words = [f"place={place}"] if tool == "log" else []
        return sideband(command, f"modest.{tool}", *words, "--skill-dir", skill, *options)

    return run


def test_grant_adds_to_the_other_rights_of_a_skill(call):
    refused = call("log", "--yes")
    assert refused.returncode == 3
    options = pasted(refused.stderr)
    assert len(options) == 2, refused.stderr  # one capability for the program and its place
    done = call("log", *options)
    assert (done.returncode, done.stdout) == (0, ".\n..\n\n"), done.stderr
    assert call("store", *options).returncode == 0


def test_only_replaces_the_rights_of_a_skill_and_grant_adds_to_it(call):
    call("look", "--yes")
    refused = call("store", "--only", "files:path=a")
    assert refused.returncode == 3
    assert call("store", "--only", "files:path=a", *pasted(refused.stderr)).stdout == "stored\n"


def test_hint_of_a_missing_grant_can_be_pasted(call):
    refused = call("look")
    assert refused.returncode == 3
    assert call("look", *pasted(refused.stderr)).stdout == "1\n"
    assert call("look").returncode == 3


def test_invalid_value_is_refused_when_it_is_given(call, sideband):
    done = call("look", "--yes", "--grant", "sql:mode=foo", "--json")
    error = json.loads(done.stdout)["error"]
    assert (done.returncode, error["code"]) == (2, "capability.invalid")
    assert error["message"].endswith("invalid value `foo` of `mode`; valid values: read, write")


def test_grant_for_another_skill_is_a_usage_error(call):
    assert call("look", "--yes", "--grant", f"other={SQL}").returncode == 2


@pytest.mark.parametrize("option", ["--grant", "--only"])
def test_op_has_only_the_rights_that_are_given(sideband, option):
    words = ["op", "sql.execute", "sql=CREATE TABLE t (a)", "db=notes.db"]
    refused = sideband(*words, option, "sql:path=other.db")
    assert refused.returncode == 3
    assert sideband(*words, option, "sql:path=other.db", *pasted(refused.stderr)).returncode == 0


def test_run_offers_a_grant_for_the_skill_and_accepts_it(sideband, turns, make_skill):
    skill = make_skill("modest", CODE, SQL)
    options = ["--skill-dir", skill, *turns({"tool_calls": [{"name": "modest__look"}] * 2}, "done")]
    refused = sideband("run", "look", *options)
    assert refused.returncode == 3
    assert refused.stderr.count("hint: ") == 1
    assert pasted(refused.stderr) == ["--grant", f"modest={SQL}"]
    assert sideband("run", "look", *options, *pasted(refused.stderr)).returncode == 0


def test_run_offers_a_grant_for_a_script_and_accepts_it(sideband, turns, make_skill, tmp_path):
    script = tmp_path.resolve() / "report"
    script.write_text("#!/usr/bin/env sh\necho reported\n")
    script.chmod(0o755)
    code = f"""
from sideband.skill import shell, tool

@tool
async def report() -> str:
    return (await shell.run({str(script)!r}))["stdout"]
"""
    skill = make_skill("reporter", code, f"shell:binary={script},code=no")
    options = ["--yes", "--skill-dir", skill, *turns({"tool_calls": [{"name": "reporter__report"}]}, "done")]
    refused = sideband("run", "report", *options)
    (_, capability) = pasted(refused.stderr)
    assert capability.startswith(f"reporter=shell:binary={script},")
    assert "hint: " not in sideband("run", "report", *options, *pasted(refused.stderr)).stderr


def test_run_with_one_call_that_was_not_denied_exits_with_0(sideband, turns, make_skill, hello, plugin):
    guard = (
        "from sideband import hookimpl\nfrom sideband.hooks import Deny\n"
        "class Never:\n    @hookimpl\n    def tool_call(self, event):\n"
        "        return Deny('never') if event.tool == 'modest.look' else None\n"
        "def sideband_guards():\n    return [Never]\n"
    )
    calls = [{"name": "modest__look"}, {"name": "hello__greet", "arguments": {"name": "Ada"}}]
    folders = ["--skill-dir", make_skill("modest", CODE, SQL), "--skill-dir", hello]
    done = sideband("run", "look", *folders, *turns({"tool_calls": calls}, "done"), **plugin("never", "guard", guard))
    assert done.returncode == 0
    assert "every tool call" not in done.stderr


@pytest.mark.parametrize(("grant", "problem"), [(SQL, f"--grant 'SKILL={SQL}'"), (f"modst={SQL}", "`modest`")])
def test_run_requires_the_name_of_a_skill(sideband, turns, make_skill, grant, problem):
    done = sideband("run", "look", "--skill-dir", make_skill("modest", CODE, SQL), "--grant", grant, *turns("done"))
    assert done.returncode == 2
    assert problem in done.stderr


def test_guard_denies_what_grant_allows(call, plugin, sideband, make_skill):
    guard = (
        "from sideband import hookimpl\nfrom sideband.hooks import Deny\n"
        "class Never:\n    @hookimpl\n    def op_call(self, event):\n        return Deny('never')\n"
        "def sideband_guards():\n    return [Never]\n"
    )
    skill = make_skill("writer", CODE, SQL)
    words = ["call", "writer.store", "--skill-dir", skill, "--grant", SQL]
    done = sideband(*words, **plugin("never", "guard", guard))
    assert done.returncode == 3
    assert "sql.execute was denied by `never`: never" in done.stderr
