"""Plugins that conflict or fail, and the commands that explain them."""

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
