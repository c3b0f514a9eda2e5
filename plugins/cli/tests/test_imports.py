"""The imports needed to list the commands, which must stay fast."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("command", ["run", "chat"])
def test_command_imports_no_slow_module_before_it_runs(command):
    code = f"import sideband_cli.commands.{command}, sys; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"prompt_toolkit", "anyio", "pydantic", "asyncio", "sideband_agent"} & set(modules)
