"""Plugins that are invalid, in conflict or excluded, and commands of other packages, as the command line shows them."""

import json

import pytest


def error_of(done):
    return json.loads(done.stdout)["error"]


def test_check_shows_the_reason_of_each_invalid_plugin_and_others_still_work(sideband, site):
    site("bad-import", "bad_import", "raise RuntimeError('no luck')", "sideband.v1.hook", "bad-import")
    hookimpl = "from sideband import hookimpl\n@hookimpl\n"
    site("bad-hook", "bad_hook", f"{hookimpl}def tool_cal(event): pass", "sideband.v1.hook", "bad-hook")
    path = site("bad-argument", "bad_arg", f"{hookimpl}def input(evnt): pass", "sideband.v1.hook", "bad-argument")
    records = json.loads(sideband("plugins", "check", "--json", PYTHONPATH=str(path)).stdout)
    reasons = {record["name"]: record["reason"] for record in records if record["state"] == "failed"}
    assert "no luck" in reasons["bad-import"]
    assert "tool_call" in reasons["bad-hook"]
    assert "evnt" in reasons["bad-argument"]
    assert sideband("op", "sql.execute", "sql=CREATE TABLE t (a)", "db=t.db", PYTHONPATH=str(path)).returncode == 0


def test_check_refuses_a_hook_plugin_that_decides_and_nothing_it_could_deny_happens(sideband, site):
    code = "from sideband import hookimpl\n@hookimpl\ndef op_call(event): pass\n"
    path = site("night-watch", "night_watch", code, "sideband.v1.hook", "night")
    check = sideband("plugins", "check", PYTHONPATH=str(path))
    assert check.returncode == 5
    text = " ".join(check.stdout.split())
    assert "`op_call` is reserved for guards" in text
    assert "`sideband.v1.guard`" in text
    refused = sideband("op", "sql.execute", "sql=CREATE TABLE t (a)", "db=t.db", PYTHONPATH=str(path))
    assert refused.returncode == 3
    assert "reserved for guards" in refused.stderr


def test_doctor_and_check_import_all_plugins_and_report_each_problem_once(sideband, site):
    site("bad-op", "bad_op", "raise RuntimeError('it has ' + 'quite ' * 30 + 'bad luck')", "sideband.v1.op", "bad")
    path = site("other-sql", "other_sql", "", "sideband.v1.op", "sql")
    doctor = json.loads(sideband("doctor", "--json", PYTHONPATH=str(path)).stdout)
    assert len([problem for problem in doctor["problems"] if "other-sql" in problem]) == 1
    assert len([problem for problem in doctor["problems"] if "bad luck" in problem]) == 1
    check = sideband("plugins", "check", PYTHONPATH=str(path), COLUMNS="60")
    assert check.returncode == 5
    assert "quite bad luck" in " ".join(check.stdout.split())
    assert check.stdout.count("op.sql is failed: ") == 1


def test_two_packages_with_the_same_op_family_conflict(sideband, site):
    path = site("other-sql", "other_sql", "", "sideband.v1.op", "sql")
    done = sideband("op", "sql.query", "sql=SELECT 1", "db=x.db", "--json", PYTHONPATH=str(path))
    assert "other-sql" in error_of(done)["message"]
    assert "sideband-sql" in error_of(done)["message"]
    chosen = sideband(
        "op", "sql.execute", "sql=CREATE TABLE t (a)", "db=t.db", PYTHONPATH=str(path),
        SIDEBAND_POLICY__CONFLICTS='{"op.sql" = "sideband-sql"}',
    )  # fmt: skip
    assert chosen.returncode == 0, chosen.stderr


def test_command_of_another_package_runs_and_a_conflict_names_both(sideband, site):
    code = (
        "from sideband.commands import Command\n"
        "def run(arguments):\n    print('hi', arguments.name)\n    return 7\n"
        "def sideband_commands():\n"
        "    return Command('greet', 'Greet.', lambda parser: parser.add_argument('name'), run)\n"
    )
    path = site("greeter", "greeter", code, "sideband.v1.command", "greet")
    done = sideband("greet", "Bo", PYTHONPATH=str(path))
    assert (done.returncode, done.stdout) == (7, "hi Bo\n")
    assert "greet" in sideband("--help", PYTHONPATH=str(path)).stdout
    site("other-cli", "other_cli", "", "sideband.v1.command", "op")
    clash = sideband("op", "sql.query", "--json", PYTHONPATH=str(path))
    assert clash.returncode == 5
    assert "other-cli" in error_of(clash)["message"]
    assert "sideband-cli" in error_of(clash)["message"]


@pytest.mark.parametrize(
    ("end", "code", "message"),
    [
        ("raise TypeError('of ours')", "internal", "TypeError: of ours"),
        ("open('/nowhere/file')", "os", "/nowhere/file"),
        ("raise ExceptionGroup('', [UsageError('alone')])", "usage", "alone"),
    ],
)
def test_exception_in_a_command_is_a_readable_error(sideband, site, end, code, message):
    path = site(
        "breaker",
        "breaker",
        "from sideband import UsageError\nfrom sideband.commands import Command\n"
        f"def run(arguments):\n    {end}\n"
        "def sideband_commands():\n"
        "    def configure(parser):\n        parser.add_argument('--json', action='store_true')\n"
        "    return Command('break', 'Break.', configure, run)\n",
        "sideband.v1.command",
        "break",
    )
    done = sideband("break", PYTHONPATH=str(path))
    assert f"{message} [{code}]" in done.stderr.replace(": No such file or directory", "")
    assert "Traceback" not in done.stderr
    done = sideband("break", "--json", PYTHONPATH=str(path), SIDEBAND_DEBUG="1")
    assert error_of(done)["code"] == code
    assert "Traceback" in done.stderr


def test_command_excluded_by_policy_names_the_setting_and_its_source(sideband):
    done = sideband("op", "sql.query", SIDEBAND_POLICY__ONLY='["op.sql"]')
    assert "`policy.only` (SIDEBAND_POLICY__ONLY)" in done.stderr


def test_plugin_index_is_refreshed_after_an_installation(sideband, site):
    sideband("plugins", "list")
    path = site("late", "late_plugin", "", "sideband.v1.op", "late")
    assert "late" in sideband("plugins", "list", PYTHONPATH=str(path)).stdout
