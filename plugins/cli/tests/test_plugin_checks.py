"""`sideband plugins check NAME`: the conformance tests of one plugin, in a process of its own."""

import json
import subprocess
import sys
from argparse import Namespace

import pytest
from sideband_cli._errors import KitMissing
from sideband_cli.commands.plugins import sideband_commands

FAULTY = '''
import os

os.environ["FAULTY"] = "1"
from sideband import OpFamily, op
from sideband.ops import OpParams


class Params(OpParams):
    pass


@op("faulty.do")
async def do(params: Params, ctx) -> None:
    """Do nothing."""


def sideband_ops():
    return OpFamily(name="faulty", ops=(do,))
'''


@pytest.fixture
def check(make_plugin, tmp_path):
    """Return a function that checks a plugin with this source, and returns the exit code and the output."""

    def run(source, *words):
        make_plugin("op", "faulty", source, requires=["sideband-core>=0.1,<1"])
        environment = {"SIDEBAND_HOME": str(tmp_path / "home"), "PYTHONPATH": ":".join(filter(None, sys.path))}
        program = [sys.executable, "-m", "sideband", "plugins", "check", *words]
        done = subprocess.run(program, env=environment, capture_output=True, text=True, check=False, timeout=300)
        return done.returncode, done.stdout, done.stderr

    return run


def test_failed_check_is_shown_with_its_remedy(check):
    code, output, _ = check(FAULTY, "op.faulty", "--json")
    failed = [one for one in json.loads(output) if one["outcome"] == "failed"]
    assert (code, [one["check"] for one in failed]) == (1, ["import_has_no_side_effects"])
    assert "FAULTY" in failed[0]["happened"]
    assert "lifespan" in failed[0]["remedy"]


def test_unknown_name_is_refused_with_the_closest_one(check):
    code, output, _ = check(FAULTY, "op.fulty", "--json")
    error = json.loads(output)["error"]
    assert (code, error["code"]) == (5, "testing.unknown")
    assert "op.faulty" in error["message"]


def test_plugin_that_ends_the_process_at_import_is_unusable(check):
    code, output, _ = check("import os\nos._exit(0)", "faulty")
    assert code == 5
    assert "it ended the process (0)" in output


def test_missing_kit_is_named_with_its_package(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(KitMissing) as caught:
        sideband_commands().run(Namespace(action="check", name="op.clock", json=False))
    assert (caught.value.exit_code, caught.value.hint) == (5, "pip install sideband-testing")
