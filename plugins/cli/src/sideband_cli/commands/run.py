"""``sideband run PROMPT``: run an agent on a task and print its answer."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from sideband import UsageError
from sideband.command_line import run_async
from sideband.commands import Command
from sideband.exit_codes import ExitCode

from .._agent._availability import require_agent
from .._agent._input import read_files, read_prompt
from .._agent._options import add_agent_options, open_agent

if TYPE_CHECKING:
    from sideband.hooks import ObserveEvent
    from sideband_agent import Agent, RunResult

    from .._agent._progress_lines import ProgressLines

    _Do = Callable[[Agent], Awaitable[RunResult | None]]
    _Listener = Callable[[ObserveEvent], None]

__all__ = ["sideband_commands"]


def sideband_commands() -> Command:
    """Register the command."""
    return Command("run", "run an agent on a task and print its answer", _configure, _run)


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "prompt", nargs="*", default=[], metavar="PROMPT", help="the task; standard input if omitted or -"
    )
    parser.add_argument(
        "--file",
        action="append",
        default=[],
        metavar="FILE",
        help="attach a file (image, PDF, recording, office document, text), or an image by its https:// address",
    )
    parser.add_argument(
        "--resume", action="store_true", help="resume the unfinished run of --session, or of the last session"
    )
    parser.add_argument(
        "--progress", metavar="FILE", help="write the progress of tools to this file, as newline-delimited JSON"
    )
    add_agent_options(parser)


def _run(arguments: Namespace) -> ExitCode:
    from .._setup._offer import with_model

    require_agent("run")
    if arguments.resume:
        if arguments.prompt or arguments.file or arguments.new:
            raise UsageError("--resume does not accept a prompt, --file or --new", hint="omit them")
        arguments.session = arguments.session or "last"
        return with_model(arguments, lambda: run_async(lambda: _show(arguments, lambda agent: agent.resume())))
    texts, attachments = read_files(arguments.file)
    prompt = "\n\n".join([read_prompt(arguments.prompt), *texts])
    # Piped text may be that of a file or a page. It is a task, and never a command.
    source = "interactive" if arguments.prompt and arguments.prompt != ["-"] else "api"

    async def invoke(agent: Agent) -> RunResult:
        return await agent.invoke(prompt, attachments=attachments, source=source)

    return with_model(arguments, lambda: run_async(lambda: _show(arguments, invoke)))


async def _show(arguments: Namespace, do: _Do) -> ExitCode:
    from .._agent._progress_lines import progress_to

    with progress_to(arguments.progress) as lines:
        return await _play(arguments, do, lines)


async def _play(arguments: Namespace, do: _Do, lines: ProgressLines | None) -> ExitCode:
    from sideband.command_line import notice

    from .._agent._activity import Activity
    from .._agent._interrupts import aborting_on_interrupt
    from .._agent._json_lines import print_event, print_line
    from .._agent._run_output import RunOutput
    from .._agent._run_results import exit_code, print_summary, result_line
    from .._terminal._progressbar import Progressbar
    from .._terminal._questions import Questions, ask_at_terminal

    bar = Progressbar()
    output = RunOutput(bar)
    activity = Activity(output, thinking=arguments.thinking, quiet=arguments.quiet, verbose=arguments.verbose)
    questions = Questions(ask_at_terminal(bar), yes=arguments.yes)
    shown, quiet = (print_event, None) if arguments.json else (activity.take, activity.take_hints)
    on_event = _joined(quiet if arguments.quiet else shown, lines)
    try:
        async with open_agent(arguments, questions, on_event=on_event) as agent:
            async with aborting_on_interrupt(agent, notice if arguments.json else output.line) as interrupts:
                result = await do(agent)
            if result is None:
                hint = f'give it a new task: sideband run --session {agent.session.id} "…"'
                raise UsageError("nothing to resume: the last run of this session has ended", hint=hint)
            last_line = result_line(result, agent)
            if not arguments.json:
                output.answer(result)
                print_summary(result, agent, quiet=arguments.quiet)
        if arguments.json:
            print_line(last_line)
        if interrupts.count:
            return ExitCode.TERMINATED if interrupts.terminated else ExitCode.INTERRUPTED
        return exit_code(result)
    finally:
        bar.erase()


def _joined(shown: _Listener | None, lines: ProgressLines | None) -> _Listener | None:
    """Return what takes the events: the output, the file of progress, or both."""
    if lines is None or shown is None:
        return shown if lines is None else lines.take

    def take(event: ObserveEvent) -> None:
        shown(event)
        lines.take(event)

    return take
