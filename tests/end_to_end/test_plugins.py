"""Plugins that conflict or fail, and the commands that explain them."""

import json
import os
import subprocess
import sys
import time

import pytest

TOOL = """
from pydantic import BaseModel
from sideband.tools import tool

class Params(BaseModel):
    pass

@tool("acme")
async def acme(params: Params, ctx) -> str:
    "Say acme."
    return "acme"
"""


def test_run_reports_the_tools_that_a_conflict_disables(sideband, site, turns):
    site("acme-first", "acme_first", TOOL, "sideband.v1.tool", "acme")
    path = site("acme-second", "acme_second", TOOL, "sideband.v1.tool", "acme")
    done = sideband("run", "hello", *turns("hi"), PYTHONPATH=str(path))
    assert (done.returncode, done.stdout) == (0, "hi\n")
    (line,) = [line for line in done.stderr.splitlines() if "acme" in line]
    assert line.startswith("notice: omitted the tools of the plugin `acme`: ")
    for part in ("acme-first 1.0", "acme-second 1.0", "`acme_second`", str(path), "[policy.conflicts]"):
        assert part in line


FAILING = "def fail():\n    raise RuntimeError('no luck')\n\nfail()\n"


STORE = """
import sys
from contextlib import asynccontextmanager
from sideband.store import StoreSpec

def sideband_stores():
    return [StoreSpec(name="other", open=open_other)]

@asynccontextmanager
async def open_other(folder):
"""
STORES = {
    "store that cannot be opened": "    raise RuntimeError('it is full')\n    yield",
    "store that exits": "    sys.exit(7)\n    yield",
}

ONLY_OTHER = (
    '[policy.deny]\n"store.sqlite" = "none here"\n"store.postgres" = "none here"\n"store.redis" = "none here"\n'
)


@pytest.fixture
def broken_host(site, sideband, tmp_path):
    """Return a function that breaks a home in one way, and returns a function that runs commands there."""

    def make(how):
        home = tmp_path / "home"
        home.mkdir()
        path = site("acme-op", "acme_op", FAILING, "sideband.v1.op", "acme")
        environment = {"PYTHONPATH": str(path)}
        if how == "two stores":
            (home / "sideband.toml").write_text("[plugins.other]\na = 1\n[plugins.sqlite]\na = 1\n")
            site("other-store", "other_store", "", "sideband.v1.store", "other")
        elif how == "conflicting stores":
            site("other-store", "other_store", "", "sideband.v1.store", "sqlite")
        elif how == "no store":
            (home / "sideband.toml").write_text('[policy.deny]\n"store.*" = "none here"\n')
        elif how == "store that fails":
            (home / "sideband.toml").write_text(ONLY_OTHER)
            site("other-store", "other_store", "import sys; sys.exit(7)", "sideband.v1.store", "other")
        elif how in STORES:
            (home / "sideband.toml").write_text(ONLY_OTHER)
            site("other-store", "other_store", STORE + STORES[how], "sideband.v1.store", "other")
        elif how == "damaged store":
            (home / "store").mkdir(mode=0o700)
            (home / "store" / "store.sqlite").write_bytes(b"no database" * 1_000)
        elif how == "invalid value":
            (home / "sideband.toml").write_text('[policy]\ntimeout = "soon"\n')
        elif how == "invalid file":
            (home / "sideband.toml").write_text("[policy\n")
        return lambda *words: sideband(*words, **environment)

    return make


BROKEN = {
    "two stores": "it is unclear which store to use: `other` of other-store 1.0 (`other_store`",
    "conflicting stores": "store `sqlite` is claimed by other-store 1.0 (`other_store`",
    "no store": "no store plugin is installed",
    "store that fails": "it tried to exit the program (SystemExit: 7)",
    "store that cannot be opened": "store `other` (other-store 1.0): it cannot be opened: RuntimeError: it is full",
    "store that exits": "store `other` (other-store 1.0): it cannot be opened: it tried to exit the program",
    "damaged store": "store.sqlite",
    "invalid value": "`policy.timeout`",
    "invalid file": "invalid TOML",
}


@pytest.mark.parametrize("how", BROKEN)
def test_commands_about_plugins_work_in_a_broken_host_and_report_what_is_broken(broken_host, how):
    run = broken_host(how)
    assert BROKEN[how] in run("op", "sql.query").stderr
    listed = run("plugins", "list", "--json")
    assert listed.returncode == 0
    states = {one["name"]: one["state"] for one in json.loads(listed.stdout) if one["kind"] == "op"}
    loads = how != "invalid file"
    assert states["acme"] == ("found" if loads else "denied")
    why = run("plugins", "why", "op.acme")
    assert why.returncode == 0
    assert ("RuntimeError: no luck" in why.stdout) is loads
    check = run("plugins", "check")
    assert check.returncode == 5
    assert ("op.acme is failed: it cannot be imported: RuntimeError: no luck" in check.stdout) is loads
    for done in (why, check):
        assert BROKEN[how] in done.stderr
    assert run("plugins", "order", "op_call").returncode == 0
    doctor = run("doctor", "--json")
    data = json.loads(doctor.stdout)
    assert (doctor.returncode, data["ok"], data["ledger"]) == (1, False, None)
    assert len([problem for problem in data["problems"] if BROKEN[how] in problem]) >= 1
    assert any("no luck" in problem for problem in data["problems"]) is loads
    assert (data["isolation"] is None, data["skills"]) == ((False, 1) if loads else (True, None))
    text = run("doctor")
    assert (text.returncode, BROKEN[how] in text.stdout) == (1, True)
    assert "ledger: not examined" in text.stdout


FAILING_STORE = """
from contextlib import nullcontext
from sideband.store import StoreSpec

class Failing:
    async def fail(self, *words, **options):
        raise RuntimeError("the disk is gone")

    get = put = delete = keys = append = read = delete_stream = transaction = sync = fail

    def unsynced(self):
        return None

def sideband_stores():
    return [StoreSpec(name="other", open=lambda folder: nullcontext(Failing()))]
"""


def test_doctor_reports_a_store_that_fails_after_it_was_opened(sideband, site, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "sideband.toml").write_text(ONLY_OTHER)
    path = site("other-store", "other_store", FAILING_STORE, "sideband.v1.store", "other")
    done = sideband("doctor", PYTHONPATH=str(path))
    assert done.returncode == 1
    assert "ledger: it cannot be examined: RuntimeError: the disk is gone" in done.stdout
    assert "ledger: not examined" in done.stdout


TOKENS = """
class Tokens:
    name = "tokens"
    closed = "it needs a passphrase"

    async def open(self, ctx):
        pass

def sideband_secret_sources():
    return [Tokens()]
"""


def test_doctor_reports_a_closed_source_of_secrets(sideband, site, tmp_path):
    (tmp_path / "home" / "tokens").mkdir(parents=True)
    path = site("acme-tokens", "acme_tokens", TOKENS, "sideband.v1.secrets", "tokens")
    done = sideband("doctor", PYTHONPATH=str(path))
    assert "notice: the source of secrets `tokens` is closed: it needs a passphrase" in done.stdout


def test_invalid_configuration_denies_all_plugins_but_those_of_the_commands(site, sideband, tmp_path):
    path = site("acme-hook", "acme_hook", "raise SystemExit('imported')", "sideband.v1.hook", "acme")
    home = tmp_path / "home"
    home.mkdir()
    # The user meant to deny it.
    (home / "sideband.toml").write_text('[polcy.deny]\n"acme" = "not here"\n')
    for words in (["plugins", "check"], ["plugins", "why", "acme"], ["doctor"]):
        done = sideband(*words, PYTHONPATH=str(path))
        assert "SystemExit" not in done.stdout + done.stderr
        assert "did you mean `policy`" in done.stdout + done.stderr
    (record,) = json.loads(sideband("plugins", "why", "acme", "--json", PYTHONPATH=str(path)).stdout)
    assert (record["state"], record["error"]) == ("denied", None)
    assert record["reason"] == "the configuration is invalid, so it is unknown which plugins may load"
    listed = " ".join(sideband("plugins", "list", PYTHONPATH=str(path)).stdout.split())
    assert listed.count("unknown which plugins may load") == 1


def test_list_imports_no_plugin(site, sideband):
    code = "import pathlib; pathlib.Path('imported').touch()"
    site("acme-hook", "acme_hook", code, "sideband.v1.hook", "acme")
    path = site("acme-guard", "acme_guard", code, "sideband.v1.guard", "watch")
    records = json.loads(sideband("plugins", "list", "--json", PYTHONPATH=str(path)).stdout)
    assert {one["state"] for one in records} == {"found"}
    assert not (path.parent / "imported").exists()
    sideband("plugins", "check", PYTHONPATH=str(path))
    assert (path.parent / "imported").exists()


HOOK = "from sideband.hooks import hookimpl\n\n@hookimpl\ndef agent_start(event):\n    pass\n"


def test_list_shows_the_states_of_the_last_start_and_its_time(site, sideband):
    site("acme-hook", "acme_hook", HOOK, "sideband.v1.hook", "acme")
    path = site("acme-guard", "acme_guard", "raise RuntimeError('no luck')", "sideband.v1.guard", "watch")

    def listed():
        records = json.loads(sideband("plugins", "list", "--json", PYTHONPATH=str(path)).stdout)
        return {one["name"]: one for one in records if one["distribution"].startswith("acme-")}

    assert {one["as_of"] for one in listed().values()} == {None}
    sideband("doctor", PYTHONPATH=str(path))
    found = listed()
    assert {name: one["state"] for name, one in found.items()} == {"acme": "active", "watch": "failed"}
    assert "no luck" in found["watch"]["reason"]
    text = sideband("plugins", "list", "--state", "active", PYTHONPATH=str(path)).stdout
    assert f"`active`: at the last start of a host, at {found['acme']['as_of']}" in text
    (path / "acme_guard-1.0.dist-info" / "entry_points.txt").unlink()
    site("acme-new", "acme_new", HOOK, "sideband.v1.hook", "newcomer")
    assert {name: one["state"] for name, one in listed().items()} == {"acme": "active", "newcomer": "found"}


def test_list_shows_a_plugin_that_is_denied_since_the_last_start_as_denied(site, sideband, tmp_path):
    path = site("acme-hook", "acme_hook", HOOK, "sideband.v1.hook", "acme")
    sideband("doctor", PYTHONPATH=str(path))
    (tmp_path / "home" / "sideband.toml").write_text('[policy.deny]\n"acme" = "not any more"\n')
    records = json.loads(sideband("plugins", "list", "--json", PYTHONPATH=str(path)).stdout)
    (record,) = (one for one in records if one["name"] == "acme")
    assert (record["state"], record["reason"], record["as_of"]) == ("denied", "not any more", None)


SLOW = {"anyio", "asyncio", "attr", "importlib_metadata", "inspect", "logging", "packaging", "pluggy", "pydantic"}
MAX_MODULES = 118  # of which an interpreter that does nothing imports about 40


@pytest.mark.parametrize("configuration", ["", '[policy.deny]\n"op.sql" = "not here"\n'])
def test_list_imports_few_modules_the_second_time(tmp_path, configuration):
    code = (
        "import sys; from sideband.__main__ import main; main(['plugins', 'list']);print(*sys.modules, file=sys.stderr)"
    )
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "SIDEBAND_HOME": str(tmp_path)}
    if configuration:
        (tmp_path / "sideband.toml").write_text(configuration)

    def modules():
        command = [sys.executable, "-P", "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd="/")
        assert "sideband-sql" in done.stdout
        return {name for name in done.stderr.split() if not name.startswith(("_", "encodings."))}

    if configuration:  # wait until another change of the file would be noticed
        deadline = time.monotonic() + 60
        while not list((tmp_path / "cache").glob("plugin-policy*")) and time.monotonic() < deadline:
            modules()
    modules()
    found = modules()
    assert not found & SLOW, "import what is slow in the functions that need it"
    assert len(found) <= MAX_MODULES, "look at `python -X importtime` and import what is rarely needed where it is used"


def test_list_reports_a_pattern_of_the_policy_that_matches_no_plugin(sideband):
    done = sideband("plugins", "list", SIDEBAND_POLICY__DENY='{"op.htp" = "no network"}')
    assert "`op.htp` in [policy.deny] matches no installed plugin" in done.stderr


def test_why_shows_file_line_and_traceback_of_a_load_error(site, sideband):
    path = site("acme-op", "acme_op", FAILING, "sideband.v1.op", "acme")
    site("acme-hook", "acme_hook", "def f(:\n", "sideband.v1.hook", "acme")
    hook, op = json.loads(sideband("plugins", "why", "acme", "--json", PYTHONPATH=str(path)).stdout)
    # Newer Pythons underline the call.
    traceback = [line for line in op["error"].pop("traceback").splitlines() if line.strip(" ~^")]
    assert op["error"] == {
        "type": "RuntimeError",
        "message": "no luck",
        "file": str(path / "acme_op.py"),
        "line": 2,
    }
    assert traceback == [
        "Traceback (most recent call last):",
        f'  File "{path / "acme_op.py"}", line 4, in <module>',
        "    fail()",
        f'  File "{path / "acme_op.py"}", line 2, in fail',
        "    raise RuntimeError('no luck')",
        "RuntimeError: no luck",
    ]
    assert (hook["error"]["file"], hook["error"]["line"]) == (str(path / "acme_hook.py"), 1)
    site("acme-tool", "acme_tool", "from sideband.tools import tool\n\ntool(3)\n", "sideband.v1.tool", "written")
    (tool,) = json.loads(sideband("plugins", "why", "written", "--json", PYTHONPATH=str(path)).stdout)
    assert (tool["error"]["file"], tool["error"]["line"]) == (str(path / "acme_tool.py"), 3)
    text = sideband("plugins", "why", "op.acme", PYTHONPATH=str(path)).stdout
    assert f"  raised in  {path / 'acme_op.py'}, line 2\n    Traceback (most recent call last):\n" in text
    assert json.loads(sideband("plugins", "why", "http", "--json").stdout)[0]["error"] is None


def test_traceback_of_a_plugin_cannot_imitate_messages_of_the_host(site, sideband):
    forged = "raise RuntimeError('x\\r\\nop.acme: active\\n\\x1b[2Jfine')"
    path = site("acme-op", "acme_op", forged, "sideband.v1.op", "acme")
    out = sideband("plugins", "why", "acme", PYTHONPATH=str(path)).stdout
    assert "\x1b" not in out
    assert [line for line in out.splitlines() if line.startswith("op.acme")] == [
        "op.acme: failed (loaded by this command, to check it)"
    ]
