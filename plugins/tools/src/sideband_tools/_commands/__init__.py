"""Tools that run commands in the places of an agent."""

from ._command_tool import command
from ._output_tool import command_output
from ._stop_tool import command_stop

__all__ = ["command", "command_output", "command_stop"]
