"""The command line as used by programs: JSON, exit codes, configuration layers and grants."""

import json
import re

import pytest

SKILL = """
from sideband.skill import http, tool


@tool
async def add(a: int, b: int = 1) -> int:
    '''Add.'''
    print("adding")
    return a + b


@tool
async def fetch(url: str) -> int:
    '''Fetch.'''
    return (await http.get(url))["status"]


@tool
async def fail() -> None:
    '''Fail.'''
    print("about to fail")
    raise ValueError("on purpose")


@tool(timeout=0.2)
async def hang() -> None:
    '''Hang.'''
    while True:
        pass
"""


@pytest.fixture
def skill(make_skill):
    return make_skill("sums", SKILL)


@pytest.fixture
def call(sideband, skill):
    return lambda *words, **options: sideband("call", "--skill-dir", skill, *words, **options)


def error(done):
    return json.loads(done.stdout)["error"]


def test_call_prints_its_result_to_stdout_and_the_skills_output_to_stderr(call):
    done = call("sums.add", "a=2", "b:=3")
    assert (done.returncode, done.stdout) == (0, "5\n")
    assert "[stdout] adding" in done.stderr


def test_call_as_json_contains_result_and_logs(call):
    data = json.loads(call("sums.add", "a=2", "--json").stdout)
    assert (data["output"], data["tool"], data["effects"]) == (3, "sums.add", [])
    assert data["logs"] == [{"stream": "stdout", "text": "adding"}]


def test_quiet_call_prints_only_the_result(call):
    done = call("sums.add", "a=2", "-q")
    assert (done.returncode, done.stdout, done.stderr) == (0, "3\n", "")


def test_verbose_call_and_op_print_the_ids_of_effects(sideband, make_skill):
    report = (
        "from sideband.skill import progress, tool\n"
        "@tool\nasync def say() -> None:\n    await progress.report(message='x')\n"
    )
    for words in (
        ("call", "--skill-dir", make_skill("says", report), "says.say"),
        ("op", "progress.report", "message=x"),
    ):
        effects = re.findall(r"^  effect (\S+): progress\.report done, ", sideband(*words, "-v").stderr, re.MULTILINE)
        assert [sideband("audit", "why", effect).returncode for effect in effects] == [0]


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_output_of_a_failing_skill_goes_to_stderr(call, words):
    done = call("sums.fail", *words)
    assert done.stderr.splitlines().count("[stdout] about to fail") == 1
    assert "about to fail" not in done.stdout


def test_arguments_on_the_command_line_override_the_input_file(call, tmp_path):
    (tmp_path / "in.json").write_text('{"a": 1, "b": 5}')
    assert call("sums.add", "a=2", "--input", tmp_path / "in.json").stdout == "7\n"
    assert call("sums.add", "--input", "-", stdin='{"a": 1}').stdout == "2\n"


@pytest.mark.parametrize(
    ("words", "code", "exit_code"),
    [
        (("sums.add", "a=x"), "call.arguments", 2),
        (("sums.add", "a"), "usage", 2),
        (("sums.add", "a=1", "a=2"), "usage", 2),
        (("sums.add", "a:=[1"), "usage", 2),
        (("sums.add", "--input", "/nowhere.json"), "usage", 2),
        (("sums.ad",), "tool.unknown", 2),
        (("sums.fail",), "skill.raised", 1),
        (("sums.hang",), "call.timeout", 1),
        (("sums.fetch", "url=http://127.0.0.1:1/"), "skill.raised", 3),
        (("sums.add", "a=1", "--grant", "nothing:x"), "capability.invalid", 2),
        (("sums.add", "a=1", "--isolation", "strong"), "config.invalid", 5),
        (("sums.add", "a=1", "--set", "policy"), "usage", 2),
        (("sums.add", "a=1", "--set", "polcy.timeout=5"), "config.invalid", 5),
    ],
)
def test_error_as_json_has_its_code_and_exit_code(call, words, code, exit_code):
    done = call(*words, "--json")
    assert (done.returncode, error(done)["code"]) == (exit_code, code), done.stderr


def test_op_outside_the_grant_exits_with_3(sideband):
    done = sideband("op", "http.get", "url=http://127.0.0.1:1/", "--grant", "http:host=example.org", "--json")
    assert (done.returncode, error(done)["code"]) == (3, "op.denied")


def test_yes_option_grants_and_remembers_for_this_version_of_the_skill(sideband, make_skill):
    folder = make_skill("asks", SKILL, "http:host=127.0.0.1")
    words = ("call", "--skill-dir", folder, "asks.add", "a=1")
    assert sideband(*words).returncode == 3
    assert "http:host=127.0.0.1" in sideband(*words, "--yes").stderr
    assert sideband(*words).returncode == 0
    (folder / "tools.py").write_text(SKILL + "\n# changed\n")
    assert sideband(*words).returncode == 3


def test_grant_option_is_not_remembered(sideband, make_skill):
    folder = make_skill("asks", SKILL, "http:host=127.0.0.1")
    words = ("call", "--skill-dir", folder, "asks.add", "a=1")
    assert sideband(*words, "--grant", "http:host=127.0.0.1").returncode == 0
    assert sideband(*words).returncode == 3


def test_doctor_shows_effective_settings_with_their_sources(sideband, tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    (project / "sideband.toml").write_text("[policy]\ntimeout = 7\n")
    untrusted = sideband("doctor", "--json", folder=project)
    assert str(project / "sideband.toml") in untrusted.stderr
    done = sideband("doctor", "--json", "--trust", "--strict", folder=project, SIDEBAND_POLICY__ISOLATION="none")
    data = json.loads(done.stdout)
    source = {one["key"]: (one["value"], one["source"]) for one in data["settings"]}
    assert source["policy.timeout"] == (7, str(project / "sideband.toml"))
    assert source["policy.isolation"] == ("none", "SIDEBAND_POLICY__ISOLATION")
    assert source["policy.strict"] == (True, "command line")
    assert source["policy.only"] == (None, "default")
    assert (done.returncode, data["ok"]) == (0, True)


def test_doctor_reports_rights_for_a_plugin_that_does_not_exist(sideband, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "sideband.toml").write_text('[grants]\n"plugin:sqll" = ["sql"]\n"plugin:sql" = ["sql"]\n')
    done = sideband("doctor", "--json")
    notice = "`[grants]` gives rights to the plugin `sqll`, but no op family has this name (did you mean `sql`?)"
    assert [one for one in json.loads(done.stdout)["notices"] if "grants" in one] == [notice]


def test_doctor_reports_unavailable_isolation(sideband, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    (home / "sideband.toml").write_text('[policy.deny]\n"sandbox.*" = "none here"\n')
    done = sideband("doctor", "--json")
    assert done.returncode == 1
    assert any("isolation `full` is required" in problem for problem in json.loads(done.stdout)["problems"])


def test_doctor_without_isolation_claims_no_verification_and_shows_the_option(sideband, tmp_path):
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    (home / "sideband.toml").write_text('[policy]\nisolation = "full,call"\ndeny = {"sandbox.*" = "none here"}\n')
    done = sideband("doctor")
    assert done.returncode == 1
    assert "isolation: none (required: full)" in done.stdout
    assert "verified" not in done.stdout
    assert "--isolation none,call" in done.stdout
    assert max(map(len, done.stdout[done.stdout.index("isolation: none") :].partition("\n\n")[0].splitlines())) <= 100


def test_denied_plugin_is_listed_with_its_reason_and_not_loaded(sideband, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    (home / "sideband.toml").write_text('[policy.deny]\n"op.http" = "no network here"\n')
    (record,) = json.loads(sideband("plugins", "list", "--kind", "op", "--state", "denied", "--json").stdout)
    assert (record["name"], record["reason"]) == ("http", "no network here")
    assert "no network here" in sideband("op", "http.get", "url=http://127.0.0.1:1/").stderr
    assert sideband("plugins", "check").returncode == 0


def test_reload_says_whether_a_plugin_can_be_reloaded(sideband):
    done = sideband("plugins", "reload", "op.progress")
    assert re.fullmatch(r"op\.progress \(sideband-progress \S+\) can be reloaded while a host runs\n", done.stdout)
    done = sideband("plugins", "reload", "sqlite")
    assert (done.returncode, "its store is in use" in done.stderr) == (5, True)


def test_verify_detects_a_changed_op_name(sideband, tmp_path):
    sideband("op", "progress.report", "message=hello")
    assert sideband("audit", "verify").returncode == 0
    (file,) = (tmp_path / "home" / "ledger").glob("*.jsonl")
    file.write_text(file.read_text().replace("progress.report", "progress.rep0rt"))
    done = sideband("audit", "verify", "--json")
    verdict = json.loads(done.stdout)
    assert (done.returncode, verdict["ok"]) == (1, False)
    assert verdict["problems"]


def test_why_explains_an_effect_and_rejects_an_unknown_id(sideband):
    sideband("op", "progress.report", "message=hello")
    (effect,) = json.loads(sideband("audit", "query", "--op", "progress.report", "--json").stdout)
    done = sideband("audit", "why", effect["effect"])
    assert "progress.report, done" in done.stdout
    assert sideband("audit", "why", "nothing").returncode == 2


def test_secrets_are_stored_listed_and_deleted_and_never_shown(sideband):
    done = sideband("secrets", "set", "token", "--origin", "http://127.0.0.1:9", stdin="canary-7f3a9c51\n")
    assert done.returncode == 0, done.stderr
    listed = sideband("secrets", "list", "--json")
    assert [item["name"] for item in json.loads(listed.stdout)["items"]] == ["token"]
    assert "canary-7f3a9c51" not in done.stdout + done.stderr + listed.stdout + listed.stderr
    assert sideband("secrets", "delete", "token").returncode == 0
    assert json.loads(sideband("secrets", "list", "--json").stdout)["items"] == []
    assert sideband("secrets", "set", "empty", stdin="").returncode == 2
    assert "sideband secrets rotate empty" in sideband("secrets", "rotate", "empty", stdin="").stderr


def test_control_characters_of_a_skill_are_removed(sideband, make_skill):
    code = (
        "from sideband.skill import tool\n@tool\nasync def say() -> str:\n"
        "    '''Say.'''\n    print('\\x1b[2Jlog\\u2067')\n    return '\\x1b[2Jresult\\x9b'\n"
    )
    done = sideband("call", "--skill-dir", make_skill("rude", code), "rude.say")
    assert done.returncode == 0
    assert not {"\x1b", "\x9b", "\u2067"} & {*done.stdout, *done.stderr}


@pytest.mark.parametrize(
    "words",
    [
        "ops list",
        "ops show http.get",
        "hooks list",
        "skills list",
        "skills show demo",
        "tools list",
        "plugins check",
        "plugins why http",
        "plugins order op_call",
        "audit tail",
    ],
)
def test_command_that_prints_data_supports_json(sideband, words):
    done = sideband(*words.split(), "--json")
    assert done.returncode == 0, done.stderr
    json.loads(done.stdout)


@pytest.mark.parametrize(
    ("resume", "line"),
    [
        ("ask", "an interrupted call runs again only after a question"),
        ("never", "an interrupted call is never run again"),
    ],
)
def test_skills_show_says_when_interrupted_calls_do_not_simply_run_again(sideband, make_skill, resume, line):
    code = "from sideband.skill import tool\n@tool\nasync def say() -> str:\n    '''Say.'''\n"
    folder = make_skill("careful", code, resume=resume)
    shown = sideband("skills", "show", "careful", "--skill-dir", folder).stdout.splitlines()
    assert line in shown
    data = json.loads(sideband("skills", "show", "careful", "--skill-dir", folder, "--json").stdout)
    assert data["resume"] == resume


def test_state_of_a_plugin_that_the_command_itself_loaded_is_marked(sideband):
    assert sideband("plugins", "why", "http").stdout.startswith(
        "op.http: active (loaded by this command, to check it)\n"
    )
