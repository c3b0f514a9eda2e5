"""A host that is killed during a call: the call is not repeated, its outcome is unknown, and the server ends."""

import json
import os
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from sideband.ledger import query
from sideband_agent import Agent

pytestmark = pytest.mark.anyio

HARNESS = Path(__file__).with_name("harness_killed.py")
CODE = """
def answer(method, params, number):
    if method == "tools/call":
        with open({mark!r}, "a") as file:
            file.write("called\\n")
        {then}
        return None
    return default(method, params)
"""


@pytest.mark.parametrize("then", ["pass", "import os; os._exit(1)"], ids=["host", "both"])
async def test_call_of_a_killed_host_is_unknown_and_not_repeated(open_host, raw_server, script, tmp_path, then):
    shared = tmp_path / "shared"
    shared.mkdir()
    mark = shared / "mark"
    server = raw_server(CODE.format(mark=str(mark), then=then), write=[str(shared)])
    command = [sys.executable, str(HARNESS), str(tmp_path / "home"), json.dumps(server), str(mark)]
    done = await anyio.to_thread.run_sync(
        lambda: subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    )
    assert done.returncode == -9, done.stderr
    (session,) = done.stdout.split()

    async with open_host({"things": server}) as host, Agent(host, folder=tmp_path, session=session) as agent:
        script.turns.append("done")
        ran = await agent.resume()
        (result,) = [one for one in agent.session.messages() if one.role == "tool"]
        assert result.is_error
        assert "unknown" in result.text or (then != "pass" and "may have done the work" in result.text)
        assert ran.status == "completed"
    (effect,) = await query(tmp_path / "home" / "ledger", op="mcp.call")
    # The end of the server may be recorded before that of the host.
    assert effect.status in (["unknown"] if then == "pass" else ["unknown", "failed"])
    assert mark.read_text() == "called\n"
    assert not await anyio.to_thread.run_sync(servers_of, str(tmp_path))


def servers_of(folder):
    """Return the processes whose command line names a folder."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdecimal() and int(process.name) != os.getpid():
            try:
                line = (process / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if folder in line and "raw_server" in line and "harness" not in line:
                found.append(line)
    return found
