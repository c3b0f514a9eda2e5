"""Calls that cannot be recorded are not run: a full disk fails the run, which can be resumed later."""

import os
import shutil
import subprocess

import pytest
from sideband import Plugin
from sideband.tools import tool
from sideband_scripted import Turn

pytestmark = pytest.mark.anyio


@pytest.fixture
def small_ledger(tmp_path):
    """A ledger on its own file system of 256 KiB."""
    folder = tmp_path / "home" / "ledger"
    folder.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    if (
        os.geteuid()
        or not shutil.which("mount")
        or subprocess.run(command, capture_output=True, check=False).returncode
    ):
        assert not os.environ.get("CI"), "CI runs as root where file systems can be mounted"
        pytest.skip("mounting a file system needs root")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(ballast):
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4_096)
        except OSError:
            pass


@pytest.mark.parametrize("exclusive", [True, False])
async def test_calls_that_cannot_be_recorded_run_only_after_space_is_freed(stage, kit, small_ledger, exclusive):
    ran = []
    ballast = small_ledger / "ballast"
    numbers = [str(n) for n in range(12)]

    @tool("count", exclusive=exclusive)
    async def count(params: kit.Text, ctx) -> str:
        """Count."""
        ran.append(params.text)
        return "counted " * 100

    def tool_call(event):
        if not ballast.exists():
            fill(ballast)

    turns = [Turn(tool_calls=[("count", {"text": number}) for number in numbers]), "done"]
    plugins = [Plugin("tool", "count", count), Plugin("guard", "filler", kit.guard(tool_call=tool_call))]
    async with stage(turns, *plugins) as agent:
        first = await agent.invoke("hi")
        assert (first.status, first.error["code"]) == ("failed", "ledger.unwritable")
        # the last page of the ledger has room for a few
        assert len(ran) < len(numbers)
        ballast.write_bytes(b"")
        result = await agent.resume()
        kit.assert_valid(agent.session.messages())
        unknown = [one for one in agent.session.messages() if one.role == "tool" and one.metadata.get("unknown")]
    assert (result.status, result.text) == ("completed", "done")
    assert len(ran) == len(set(ran))
    assert len(ran) >= len(numbers) - len(unknown)
