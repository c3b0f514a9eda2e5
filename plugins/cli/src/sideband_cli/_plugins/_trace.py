"""``sideband plugins trace COMMAND …``: run a command, and show each call of a plugin's hook as it happens."""

from __future__ import annotations

import os
import sys
from argparse import REMAINDER, ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sideband.command_line import add_json_option, hosts_with, json_text, notice, run

if TYPE_CHECKING:
    from sideband.hooks import HookReport

_MAX_REASON = 500
_OWN = "on_event"
"""The listener of the command itself, which is not a plugin."""


def configure_trace(parser: ArgumentParser) -> None:
    """Add the arguments of ``plugins trace``."""
    add_json_option(parser)
    parser.add_argument("--hook", metavar="HOOK", help="show only the calls of this hook")
    parser.add_argument(
        "--output", metavar="FILE", help="write the calls to this file as JSON lines, instead of to standard error"
    )
    parser.add_argument(
        "words", metavar="COMMAND", nargs=REMAINDER, help="the command, such as `op crypto.random length=2`"
    )


def trace(arguments: Namespace) -> int:
    """Run the command and return its exit code. Its calls are written one by one, so that none is kept in memory."""
    from sideband import UsageError
    from sideband.hooks import HOOK_SPECS, HookNotFound

    if not arguments.words:
        raise UsageError("no command to trace", hint="write it after the options: `sideband plugins trace run PROMPT`")
    hook = arguments.hook
    if hook is not None and hook not in HOOK_SPECS:
        raise HookNotFound(hook, known=HOOK_SPECS)
    with _writer(arguments) as write:

        def take(report: HookReport) -> None:
            is_own = report.plugin == _OWN and not report.package
            if hook in (None, report.hook) and not is_own:
                write(report)

        with hosts_with(on_hook=take):
            return run(arguments.words)


def report_data(report: HookReport) -> dict[str, Any]:
    """Return one call as data."""
    return {
        "hook": report.hook,
        "plugin": report.plugin,
        "package": report.package,
        "outcome": report.outcome.value,
        "result": report.result,
        "reason": report.reason[:_MAX_REASON],
        "ms": round(report.ms, 3),
        "code": None if report.error is None else report.error.code,
    }


def report_text(report: HookReport) -> str:
    """Return one call as one line."""
    package = f" ({report.package})" if report.package else ""
    reason = f": {report.reason[:_MAX_REASON]}" if report.reason else ""
    line = f"{report.ms:9.2f} ms  {report.hook}  {report.plugin}{package}  {report.result}{reason}"
    return line.replace("\r", " ").replace("\n", " ")


@contextmanager
def _writer(arguments: Namespace) -> Iterator[Callable[[HookReport], None]]:
    if arguments.output is None:
        yield _print_json if arguments.json else lambda one: notice(report_text(one))
        return
    # Reasons may quote arguments, so the file is for this user only.
    descriptor = os.open(arguments.output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        yield lambda one: print(json_text(report_data(one), file), file=file, flush=True)


def _print_json(one: HookReport) -> None:
    print(json_text(report_data(one), sys.stderr), file=sys.stderr, flush=True)
