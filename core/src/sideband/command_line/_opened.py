"""Commands with an open host: their shared options, and the output of their results."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from ..commands import Command, CommandOutput
from ._host_options import add_host_options, make_host
from ._output import notice, print_data, print_json, print_text
from ._parser import Parser
from ._running import run_async

if TYPE_CHECKING:
    from ..approvals import Approval, ApprovalRequest


def add_shared_options(parser: Parser) -> None:
    """Add the options of commands with a host to a parser, or to those of its actions if it has some."""
    for one in (*parser.leaves(), without := Parser()):
        add_host_options(one)
        one.add_argument("--yes", action="store_true", help="answer yes to all questions of guards and of skills")
    # A command may be run without an action. The options then have their defaults.
    parser.set_defaults(**vars(without.parse_args([])))


def run_with_host(command: Command, arguments: Namespace) -> int:
    """Open a host, run a command in it, print its result after the host is closed, and return the exit code."""

    async def main() -> object:
        async with make_host(arguments, approver=_allow if arguments.yes else None, skill_dirs=()) as host:
            return await command.run(arguments, host)

    result = run_async(main)
    data, text, code = result if isinstance(result, CommandOutput) else CommandOutput(result)
    if text is not None:
        print_data(arguments, data, text)
    elif isinstance(data, str) and not arguments.json:
        print_text(data)
    elif data is not None or arguments.json:
        print_json(data)
    return code


async def _allow(request: ApprovalRequest) -> Approval:
    from ..approvals import Approval

    notice(f"allowed by --yes: {request.subject}: {request.question}")
    return Approval("allow", by="the user (--yes)")
