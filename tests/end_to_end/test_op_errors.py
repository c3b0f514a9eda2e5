"""``sideband op``: where a plugin failed, and the output of an op while it runs."""

import json

OP = """
import json
from pydantic import BaseModel
from sideband.ops import OpFamily, op
from sideband.tools import emit_tool_progress

class Params(BaseModel):
    fail: bool = False

@op("acme.build")
async def build(params: Params, ctx) -> str:
    await emit_tool_progress("compiling\\x1b[2J a\\ncompi")
    await emit_tool_progress("ling b")
    if params.fail:
        json.loads("{")
    return "built"

def sideband_ops():
    return OpFamily(name="acme", ops=(build,))
"""


def test_output_of_an_op_is_shown_while_it_runs_and_the_place_where_it_failed_is_for_its_author_only(sideband, site):
    path = site("acme-op", "acme_op", OP, "sideband.v1.op", "acme")
    environment = {"PYTHONPATH": str(path)}
    done = sideband("op", "acme.build", **environment)
    assert (done.returncode, done.stdout) == (0, "built\n")
    assert done.stderr.splitlines() == [r"… compiling\x1b[2J a", "… compiling b"]
    assert sideband("op", "acme.build", "--quiet", **environment).stderr == ""

    done = sideband("op", "acme.build", "fail:=true", **environment)
    assert f"raised in: {path / 'acme_op.py'}, line 15" in done.stderr.splitlines()
    assert "hint: report it to the author of the plugin `acme` (acme-op 1.0)" in done.stderr.splitlines()
    done = sideband("op", "acme.build", "fail:=true", "--json", **environment)
    assert json.loads(done.stdout)["error"]["raised_at"] == f"{path / 'acme_op.py'}, line 15"
    done = sideband("audit", "query", "--op", "acme", "--json", **environment)
    assert "acme_op.py" not in done.stdout


def test_error_that_an_op_raises_on_purpose_has_no_place(sideband, tmp_path):
    done = sideband("op", "files.read", f"path={tmp_path / 'missing.txt'}")
    assert "[file.missing]" in done.stderr
    assert "raised in" not in done.stderr


SKILL = """
from sideband.skill import acme, tool

@tool
async def build() -> str:
    try:
        return await acme.build(fail=True)
    except Exception as error:
        return f"{error} {vars(error)} {error.__cause__}"
"""


def test_skill_does_not_learn_where_an_op_failed(sideband, site, make_skill):
    path = site("acme-op", "acme_op", OP, "sideband.v1.op", "acme")
    done = sideband("call", "builder.build", "--skill-dir", make_skill("builder", SKILL), PYTHONPATH=str(path))
    assert (done.returncode, "JSONDecodeError" in done.stdout) == (0, True), done.stderr
    assert "acme_op.py" not in done.stdout


def test_plugin_that_cannot_be_reloaded_says_where_it_failed(sideband, site):
    path = site("acme-hook", "acme_hook", "\n\nraise RuntimeError('no luck')\n", "sideband.v1.hook", "acme")
    done = sideband("plugins", "reload", "acme", PYTHONPATH=str(path))
    assert done.returncode == 5
    assert f"raised in: {path / 'acme_hook.py'}, line 3" in done.stderr.splitlines()
