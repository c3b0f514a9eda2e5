"""``sideband approvals``: list, show, approve and deny what commands without a terminal could not ask."""

import json
import re

import pytest

ASKING = """
from sideband import hookimpl
from sideband.hooks import Ask

class Careful:
    @hookimpl
    def op_call(self, event):
        return Ask("Store this?") if event.op == "blobs.put" else None

    @hookimpl
    def tool_call(self, event):
        return Ask("Greet?") if event.tool == "hello.greet" else None

def sideband_guards():
    return [Careful]
"""
SQL = "sql:path=notes.db"
LOOK = "from sideband.skill import tool\n@tool\nasync def look() -> int:\n    return 7\n"
PUT = ("op", "blobs.put", "content=hello")
GREET = {"tool_calls": [{"name": "hello__greet", "arguments": {"name": "Ada"}}]}


@pytest.fixture
def careful(sideband, plugin):
    """Run the command line with a guard that asks."""
    environment = plugin("careful", "guard", ASKING)

    def run(*words, status=0, **more):
        done = sideband(*words, **environment, **more)
        assert done.returncode == status, done.stderr
        return done

    run.environment = environment
    return run


def id_in(done):
    """Return the id in the hint of a command that failed."""
    (found,) = set(re.findall(r"sideband approvals approve (\w+)", done.stderr))
    return found


def test_effect_is_approved_with_the_command_that_its_error_names(careful):
    refused = careful(*PUT, status=3)
    assert "blobs.put was denied by `careful`: it needs approval, and no approver is available" in refused.stderr
    identifier = id_in(refused)
    listed = careful("approvals", "list").stdout
    assert identifier in listed
    assert "Store this?" in listed
    shown = careful("approvals", "show", identifier[:6]).stdout
    assert 'content = "hello"' in shown
    assert "approved (once) by" in careful("approvals", "approve", identifier, "--reason", "fine").stdout
    careful("op", "blobs.put", "content=hellp", status=3)
    careful(*PUT)
    careful(*PUT, status=3)


def test_id_that_is_too_short_answers_no_request(careful):
    identifier = id_in(careful(*PUT, status=3))
    refused = careful("approvals", "approve", identifier[:3], status=2)
    assert "no request" in refused.stderr
    assert "approved" in careful("approvals", "approve", identifier[:4]).stdout


def test_answers_that_were_used_are_listed_on_request(careful):
    identifier = id_in(careful(*PUT, status=3))
    careful("approvals", "approve", identifier)
    careful(*PUT)
    assert careful("approvals", "list").stdout == "no open requests\n"
    (used,) = json.loads(careful("approvals", "list", "--all", "--json").stdout)
    assert (used["state"], used["request"]["id"], used["answer"]["verdict"]) == ("used", identifier, "allow")


def test_run_parks_and_continues_with_resume_once_its_call_is_approved(careful, turns, hello):
    options = ["--skill-dir", hello, *turns(GREET, "done")]
    parked = careful("run", "greet Ada", *options, status=3)
    assert "sideband run --resume" in parked.stderr
    careful("run", "--resume", *options, status=3)
    approved = careful("approvals", "approve", id_in(parked)).stdout
    (session,) = re.findall(r"`sideband run --resume --session (\w+)`", approved)
    resumed = careful("run", "--resume", "--session", session, *options)
    assert resumed.stdout.endswith("done\n")
    (call,) = json.loads(careful("audit", "query", "--op", "tool.call", "--status", "done", "--json").stdout)
    answer = call["entries"][0]["decisions"][-1]
    assert (answer["said"], answer["scope"], "(sideband approvals)" in answer["by"]) == ("approve", "once", True)


def test_model_sees_the_reason_of_a_denial(careful, turns, hello):
    options = ["--skill-dir", hello, *turns(GREET, "done")]
    identifier = id_in(careful("run", "greet Ada", *options, status=3))
    assert "denied by" in careful("approvals", "deny", identifier, "--reason", "too early").stdout
    careful("run", "--resume", *options, status=3)
    assert "not approved (too early): Greet?" in careful("sessions", "show", "last").stdout


def test_grant_of_a_skill_is_given_after_it_was_shown(sideband, make_skill):
    words = ["call", "modest.look", "--skill-dir", make_skill("modest", LOOK, SQL)]
    refused = sideband(*words)
    assert refused.returncode == 3
    identifier = id_in(refused)
    unconfirmed = sideband("approvals", "approve", identifier, "--always", "--json")
    assert unconfirmed.returncode == 3
    assert json.loads(unconfirmed.stdout)["error"]["code"] == "approval.unconfirmed"
    assert f"  {SQL}" in unconfirmed.stderr
    assert sideband(*words).returncode == 3
    approved = sideband("approvals", "approve", identifier, "--always", "--yes")
    assert f"requests:\n  {SQL}\n" in approved.stdout
    assert "\nalways: for all tools of this version of the skill\n" in approved.stdout
    assert sideband(*words).stdout == "7\n"
    assert "is revoked\n" in sideband("approvals", "deny", identifier).stdout
    assert sideband(*words).returncode == 3
    (*_, record) = json.loads(sideband("audit", "query", "--op", "approval.answer", "--json").stdout)
    assert record["entries"][0]["decisions"][0]["scope"] == "always"


@pytest.mark.parametrize("answer", ["y", "n"])
def test_grant_is_confirmed_at_a_terminal(sideband, terminal, make_skill, answer):
    words = ["call", "modest.look", "--skill-dir", make_skill("modest", LOOK, SQL)]
    identifier = id_in(sideband(*words))
    at = terminal("approvals", "approve", identifier, "--always")
    at.wait_for("always: for all tools of this version of the skill\n▌ Grant this? [y/N]")
    at.type(f"{answer}\r")
    assert at.wait() == (0 if answer == "y" else 3)
    assert sideband(*words).returncode == (0 if answer == "y" else 3)


def test_scope_that_is_not_offered_and_unknown_ids_are_usage_errors(careful):
    identifier = id_in(careful(*PUT, status=3))
    assert (
        "does not offer the scope `session`"
        in careful("approvals", "approve", identifier, "--session", status=2).stderr
    )
    assert "`nothing`" in careful("approvals", "show", "nothing", status=2).stderr
