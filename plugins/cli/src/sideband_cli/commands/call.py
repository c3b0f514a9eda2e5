"""``sideband call SKILL.TOOL key=value…``: run a tool of a skill."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from sideband.command_line import add_host_options, add_output_options, make_host, notice, print_json, run_async
from sideband.commands import Command
from sideband.exit_codes import ExitCode

from .._arguments._grants import add_grant_options, grants_of
from .._arguments._key_values import read_values
from .._arguments._types import seconds
from .._skills._dirs import add_skill_dirs, skill_hint
from .._skills._duplicates import choices
from .._terminal._effect_text import effect_line, result_data
from .._terminal._printing import print_result
from .._terminal._progressbar import Progressbar
from .._terminal._questions import Questions, ask_at_terminal

if TYPE_CHECKING:
    from sideband.workers import LogLine

__all__ = ["sideband_commands"]


def sideband_commands() -> Command:
    """Register the command."""
    return Command("call", "run a tool of a skill", _configure, _run)


def _configure(parser: ArgumentParser) -> None:
    add_host_options(parser)
    parser.add_argument("tool", metavar="SKILL.TOOL", help="the tool; see `sideband skills list`")
    parser.add_argument(
        "values", nargs="*", default=[], metavar="key=value", help="an argument; key:=JSON for values other than text"
    )
    add_skill_dirs(parser)
    add_grant_options(
        parser,
        grant="grant the skill this capability for this call, in addition to its other rights",
        only="replace the rights of the skill by this capability and those of --grant",
    )
    add_output_options(
        parser,
        quiet="print only the result, questions and errors",
        verbose="also print the ids of effects",
    )
    parser.add_argument("--yes", action="store_true", help="answer yes to all questions of the skill and of guards")
    parser.add_argument("--input", metavar="FILE", help="read arguments from a JSON object; - for standard input")
    parser.add_argument("--timeout", type=seconds, metavar="SECONDS", help="the timeout of the call")
    parser.add_argument(
        "--key", metavar="KEY", help="an idempotency key; a repeated call with the same key repeats no effect"
    )


def _run(arguments: Namespace) -> ExitCode:
    values = read_values(arguments.values, arguments.input)
    skill = arguments.tool.partition(".")[0]
    granted = grants_of(skill, arguments.grant or ())
    replaces = arguments.only is not None

    async def main() -> ExitCode:
        from sideband import CallRequest, SidebandError

        bar = Progressbar()
        printed: list[str] = []  # the JSON of a result contains the logs, the JSON of an error does not

        def on_log(line: LogLine) -> None:
            text = f"[{line.stream}] {line.text}"
            if arguments.json:
                printed.append(text)
            elif not arguments.quiet:
                bar.notice(text)

        questions = Questions(ask_at_terminal(bar), yes=arguments.yes)
        host = make_host(
            arguments,
            skill_dirs=arguments.skill_dir,
            grants={} if replaces else {skill: granted},
            approver=questions.approver(),
        )
        async with host:
            request = CallRequest(
                arguments.tool,
                values,
                grants=(*arguments.only, *granted) if replaces else None,
                timeout=arguments.timeout,
                key=arguments.key,
                on_progress=None if arguments.json or arguments.quiet else bar.show,
                on_log=on_log,
            )
            try:
                for text in await choices(host, arguments.tool):
                    notice(f"notice: {text}")
                result = await host.run(request)
            except SidebandError as error:
                for text in printed:
                    notice(text)
                error.hint = skill_hint(error.hint, arguments.skill_dir, unknown=error.code == "tool.unknown")
                raise
            finally:
                bar.close()
        if arguments.json:
            print_json(result_data(result))
            return ExitCode.SUCCESS
        print_result(result.output)
        if result.skipped:
            effects = ", ".join(result.skipped)
            notice(f"notice: an earlier call with this key took another path; not requested again: {effects}")
        if arguments.verbose:
            for effect in result.effects:
                notice(effect_line(effect.id, effect.op, effect.status, effect.ms))
        if arguments.quiet:
            return ExitCode.SUCCESS
        done = sum(effect.status == "done" for effect in result.effects)
        notice(f"{done} of {len(result.effects)} effects done in {result.ms:.0f} ms; isolation: {result.isolation}")
        return ExitCode.SUCCESS

    return run_async(main)
