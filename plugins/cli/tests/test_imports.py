"""What listing the commands imports: it must stay quick."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("command", ["run", "chat"])
def test_a_command_imports_nothing_slow_before_it_runs(command):
    code = f"import sideband_cli.commands.{command}, sys; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"prompt_toolkit", "anyio", "pydantic", "asyncio", "sideband_agent"} & set(modules)
