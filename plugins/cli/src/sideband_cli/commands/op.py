"""``sideband op NAME key=value…``: run one op through the broker."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from sideband.command_line import add_host_options, add_output_options, make_host, notice, print_json, run_async
from sideband.commands import Command
from sideband.exit_codes import ExitCode

from .._arguments._grants import add_grant_options
from .._arguments._key_values import read_values
from .._arguments._types import seconds
from .._terminal._effect_text import effect_data, effect_line
from .._terminal._printing import print_result
from .._terminal._progressbar import Progressbar
from .._terminal._questions import Questions, ask_at_terminal

if TYPE_CHECKING:
    from sideband import Host

__all__ = ["sideband_commands"]


def sideband_commands() -> Command:
    """Register the command."""
    return Command("op", "run one op", _configure, _run)


def _configure(parser: ArgumentParser) -> None:
    add_host_options(parser)
    parser.add_argument("op", metavar="NAME", help="the op; see `sideband ops list`")
    parser.add_argument(
        "values", nargs="*", default=[], metavar="key=value", help="a parameter; key:=JSON for values other than text"
    )
    add_grant_options(
        parser,
        grant="run with this capability and those of --only instead of all",
        only="run with only this capability instead of all",
    )
    add_output_options(
        parser, quiet="print only the result, questions and errors", verbose="also print the ids of effects"
    )
    parser.add_argument("--yes", action="store_true", help="answer yes to all questions of guards")
    parser.add_argument("--input", metavar="FILE", help="read parameters from a JSON object; - for standard input")
    parser.add_argument("--timeout", type=seconds, metavar="SECONDS", help="the timeout of the op")
    parser.add_argument("--key", metavar="KEY", help="an idempotency key; the effect happens at most once")


def _run(arguments: Namespace) -> ExitCode:
    values = read_values(arguments.values, arguments.input)
    # Without these options, the user has all rights, to which no capability can be added.
    limited = arguments.grant is not None or arguments.only is not None
    grants = [*(arguments.grant or ()), *(arguments.only or ())] if limited else None

    async def main() -> ExitCode:
        from sideband import EffectReport
        from sideband.ops import OpInternal

        bar = Progressbar(output=True)
        effects: list[EffectReport] = []
        questions = Questions(ask_at_terminal(bar), yes=arguments.yes)
        async with make_host(arguments, approver=questions.approver()) as host:
            if await _is_internal(host, arguments.op):
                raise OpInternal(arguments.op)
            try:
                output = await host.op(
                    arguments.op,
                    values,
                    grants=grants,
                    key=arguments.key,
                    deadline=arguments.timeout,
                    on_progress=None if arguments.json or arguments.quiet else bar.show,
                    on_effect=effects.append,
                )
            finally:
                bar.close()
        if arguments.json:
            print_json({"output": output, "effects": [effect_data(effect) for effect in effects]})
        else:
            print_result(output)
            if arguments.verbose:
                for effect in effects:
                    notice(effect_line(effect.id, effect.op, effect.status, effect.ms))
        return ExitCode.SUCCESS

    return run_async(main)


async def _is_internal(host: Host, op: str) -> bool:
    from sideband.ops import OpError

    try:
        return (await host.broker.ops.get(op)).spec.internal
    except OpError:
        return False  # the dispatch is refused, and recorded
