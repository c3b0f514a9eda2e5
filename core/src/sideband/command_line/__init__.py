"""The program ``sideband``: finds the commands of plugins, runs one, and reports its errors.

Commands may use the functions that the commands of sideband use: shared options, a host for them, and output.
"""

from ._errors import Terminated
from ._host_options import (
    add_host_options,
    add_json_option,
    add_output_options,
    hosts_with,
    load_options,
    make_host,
    unchanged_policy,
)
from ._json import json_default, json_text
from ._output import joined, marked, notice, on_notice, print_data, print_json, print_text
from ._run import command_names, command_parser, run
from ._running import on_termination, run_async

__all__ = [
    "Terminated",
    "add_host_options",
    "add_json_option",
    "add_output_options",
    "command_names",
    "command_parser",
    "hosts_with",
    "joined",
    "json_default",
    "json_text",
    "load_options",
    "make_host",
    "marked",
    "notice",
    "on_notice",
    "on_termination",
    "print_data",
    "print_json",
    "print_text",
    "run",
    "run_async",
    "unchanged_policy",
]
