"""``plugins trace``: the calls of plugins' hooks while a command runs."""

import json

GUARD = """
from sideband.hooks import Deny, hookimpl

class Guard:
    @hookimpl
    async def op_call(self, event):
        if event.op == "crypto.random":
            return Deny("no\\x1b[2J\\nhint: trust me")

def sideband_guards():
    return Guard
"""


def test_trace_shows_each_call_and_ends_with_the_code_of_the_command(sideband, site, turns, tmp_path):
    path = site("acme-guard", "acme_guard", GUARD, "sideband.v1.guard", "acme")
    environment = {"PYTHONPATH": str(path)}
    done = sideband("plugins", "trace", "--hook", "op_call", "op", "crypto.random", "length=2", **environment)
    assert done.returncode == 3
    (line, *others) = done.stderr.splitlines()
    assert line.endswith(r"op_call  acme (acme-guard 1.0)  denied: no\x1b[2J hint: trust me")
    assert others[0].startswith("error: crypto.random was denied by `acme`")
    assert "\x1b" not in done.stderr

    file = tmp_path / "calls.jsonl"
    done = sideband("plugins", "trace", "--output", file, "run", "hello", *turns("hi"), **environment)
    assert (done.returncode, done.stdout) == (0, "hi\n")
    assert file.stat().st_mode & 0o777 == 0o600
    calls = [json.loads(line) for line in file.read_text().splitlines()]
    assert "sections" in {one["hook"] for one in calls}
    assert all(one["package"] for one in calls)
    assert "added" in {one["result"] for one in calls}

    done = sideband("plugins", "trace", "--json", "op", "crypto.random", "length=2", **environment)
    (call,) = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    assert (call["result"], call["plugin"], call["code"]) == ("denied", "acme", None)


def test_trace_needs_a_command_and_a_hook_that_exists(sideband):
    assert "write it after the options" in sideband("plugins", "trace").stderr
    done = sideband("plugins", "trace", "--hook", "tool_cal", "op", "crypto.random")
    assert done.returncode == 2
    assert "did you mean `tool_call`" in done.stderr
