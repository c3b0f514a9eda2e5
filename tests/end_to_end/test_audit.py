"""``sideband audit`` for agents: query by session, run, step and tool, and explanations of effects."""

import json

import pytest

CODE = (
    "from sideband.skill import progress, tool\n@tool\nasync def greet(name: str) -> str:\n"
    "    await progress.report(message='on it')\n    return f'hello {name}'\n"
)
GREETS = {"text": "Let me see.", "tool_calls": [{"name": "hello__greet", "arguments": {"name": "Ada"}}]}


@pytest.fixture
def run(sideband, turns, make_skill):
    """The session and the run of an agent that called a tool."""
    done = sideband(
        "run", "greet Ada", "--skill-dir", make_skill("hello", CODE), *turns(GREETS, "It said hello."), "--json"
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    return result["session"], result["run"]


@pytest.fixture
def found(sideband):
    """Return a function that returns the ops of the matching effects, oldest first."""

    def query(*words):
        done = sideband("audit", "query", *words, "--json")
        assert done.returncode == 0, done.stderr
        return [one["op"] for one in json.loads(done.stdout)][::-1]

    return query


def test_effects_are_found_by_session_run_step_and_tool(run, found):
    session, run_id = run
    assert found("--session", session, "--op", "llm") == ["llm.generate", "llm.generate"]
    assert found("--run", run_id, "--step", "0") == ["llm.generate", "tool.call", "progress.report"]
    assert found("--run", run_id, "--step", "0.0") == ["tool.call", "progress.report"]
    assert found("--session", session, "--tool", "hello.greet") == ["tool.call", "progress.report"]
    assert found("--session", "nothing") == []


def test_effect_of_a_skill_is_explained_from_the_prompt(run, sideband):
    session, run_id = run
    effects = json.loads(sideband("audit", "query", "--op", "progress", "--run", run_id, "--json").stdout)
    done = sideband("audit", "why", effects[0]["effect"], COLUMNS="80")
    assert done.returncode == 0, done.stderr
    position = 0
    for part in (session, "  | greet Ada", "scripted:test", "  | Let me see.", "hello.greet", "  | hello Ada"):
        position = done.stdout.index(part, position)
    assert max(map(len, done.stdout.splitlines())) <= 80
    data = json.loads(sideband("audit", "why", f"{session}:{run_id}:0.0", "--json").stdout)
    assert data["tool_call"]["arguments"] == {"name": "Ada"}
    assert [one["op"] for one in data["effects"]] == ["progress.report"]


def test_unknown_id_is_a_usage_error_with_a_hint(sideband):
    done = sideband("audit", "why", "call_nothing")
    assert done.returncode == 2
    assert "`call_nothing`" in done.stderr
    assert "sideband audit query" in done.stderr


def test_effect_with_erased_content_is_shown_and_verification_reports_it(sideband, tmp_path):
    sideband("op", "sql.execute", "sql=CREATE TABLE secret_name (a)", "db=t.db")
    (segment,) = (tmp_path / "home" / "ledger").glob("*.jsonl")
    lines = segment.read_bytes().splitlines(keepends=True)
    for number, line in enumerate(lines):
        hashed, separator, content = line.partition(b', "content":')
        if content:
            lines[number] = hashed + separator + b"null".ljust(len(content) - 2) + b"}\n"
    segment.write_bytes(b"".join(lines))
    (effect,) = json.loads(sideband("audit", "query", "--op", "sql", "--json").stdout)
    shown = [sideband("audit", *words) for words in (["tail"], ["query"], ["why", effect["effect"]])]
    assert [done.returncode for done in shown] == [0, 0, 0]
    assert all("sql.execute" in done.stdout and "secret_name" not in done.stdout for done in shown)
    assert "parameters  erased" in shown[2].stdout
    done = sideband("audit", "verify")
    assert done.returncode == 1
    assert "the content was erased" in done.stdout + done.stderr
