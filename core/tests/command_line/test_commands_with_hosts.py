"""Commands of any package that have an open host: their options, their results and their errors."""

import json
import logging

import pytest
from sideband.__main__ import main

SOURCE = """
    from sideband import SidebandError
    from sideband.approvals import ApprovalRequest
    from sideband.commands import Command, CommandOutput

    RESULTS = {
        "text": "done\\x1b[31m",
        "data": {"n": 1},
        "both": CommandOutput({"n": 1}, "one"),
        "failed": CommandOutput({"n": 0}, "none", 4),
        "nothing": None,
    }

    class Refused(SidebandError):
        code = "tell.refused"
        exit_code = 3

    async def run(arguments, host):
        if arguments.action == "refuse":
            raise Refused("no", hint="ask again")
        if arguments.action == "ask":
            return "allowed" if host.approver is not None else "no approver"
        if arguments.action == "settings":
            return {"timeout": host.settings.settings.policy.timeout}
        return RESULTS[arguments.action or "data"]

    def configure(parser):
        actions = parser.add_subparsers(dest="action")
        for name in (*RESULTS, "refuse", "ask", "settings"):
            actions.add_parser(name)

    def sideband_commands():
        return Command("{name}", "Tell.", configure, run, "host")
"""


@pytest.fixture
def tell(command, capsys, monkeypatch):
    """Return a function that runs a command with a host: its exit code, output and messages."""
    monkeypatch.setattr(logging, "lastResort", logging.lastResort)
    command("tell", SOURCE)

    def run(*words):
        code = main(["tell", *words])
        return code, *capsys.readouterr()

    return run


@pytest.mark.parametrize(
    ("action", "code", "text", "data"),
    [
        ("text", 0, "done\\x1b[31m\n", "done\x1b[31m"),
        ("data", 0, '{\n  "n": 1\n}\n', {"n": 1}),
        ("both", 0, "one\n", {"n": 1}),
        ("failed", 4, "none\n", {"n": 0}),
        ("nothing", 0, "", None),
    ],
)
def test_result_is_printed_as_text_or_as_json(tell, action, code, text, data):
    assert tell(action)[:2] == (code, text)
    ended, printed, _ = tell(action, "--json")
    assert (ended, json.loads(printed)) == (code, data)


def test_error_has_its_exit_code_and_is_json_if_requested(tell):
    assert tell("refuse") == (3, "", "error: no [tell.refused]\nhint: ask again\n")
    code, printed, _ = tell("refuse", "--json")
    assert (code, json.loads(printed)["error"]["code"]) == (3, "tell.refused")


def test_options_follow_each_action_and_change_the_settings_of_the_host(tell):
    assert json.loads(tell("settings", "--set", "policy.timeout=5")[1]) == {"timeout": 5}


def test_option_that_changes_no_setting_is_an_error_before_the_command_runs(tell):
    code, printed, problem = tell("data", "--set", "policy.timeout=never")
    assert (code, printed) == (5, "")
    assert "policy.timeout" in problem


def test_command_without_an_action_has_the_defaults_of_the_options(tell):
    assert tell()[:2] == (0, '{\n  "n": 1\n}\n')


def test_questions_are_answered_only_with_the_option(tell):
    assert tell("ask")[1] == "no approver\n"
    assert tell("ask", "--yes")[1] == "allowed\n"


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("async def run", "def run", "`run` of its command must be `async def run(arguments, host)`"),
        ('run, "host")', 'run, "agent")', "`opens` of its command must be \"host\" or empty, got 'agent'"),
        ("actions.add_parser(name)", 'actions.add_parser(name).add_argument("--yes")', "its `configure` failed"),
    ],
)
def test_command_that_cannot_have_a_host_is_a_plugin_error(command, capsys, old, new, problem):
    command("broken", SOURCE.replace(old, new))
    code = main(["broken", "data"])
    assert (code, problem in capsys.readouterr().err) == (5, True)
