"""``sideband undo EFFECT``: undo an effect as far as possible."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from sideband.command_line import add_host_options, make_host, notice, print_data, print_json, print_text, run_async
from sideband.commands import Command
from sideband.exit_codes import ExitCode

from .._terminal._columns import terminal_width
from .._terminal._progressbar import Progressbar
from .._terminal._questions import Ask, Questions, ask_at_terminal

if TYPE_CHECKING:
    from sideband import EffectReport, Host
    from sideband.broker import UndoPlan

__all__ = ["sideband_commands"]

_MARGIN = 5  # for the mark and the indentation of a message


def sideband_commands() -> Command:
    """Register the command."""
    return Command("undo", "undo an effect as far as possible", _configure, _run)


def _configure(parser: ArgumentParser) -> None:
    add_host_options(parser)
    parser.add_argument("effect", metavar="EFFECT", help="the id of an effect; for a tool call, all its effects")
    parser.add_argument("--dry-run", action="store_true", help="show the plan and change nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask, and answer yes to the questions of guards")


def _run(arguments: Namespace) -> ExitCode:
    async def main() -> ExitCode:
        ask = ask_at_terminal(Progressbar())
        questions = Questions(ask, yes=arguments.yes)
        async with make_host(arguments, approver=questions.approver()) as host:
            plan = await host.plan_undo(arguments.effect)
            if arguments.dry_run:
                return _show(arguments, plan)
            if not plan.open:
                return await _nothing_to_do(arguments, host, plan)
            await _confirm(arguments, plan, ask)
            return await _execute(arguments, host, plan)

    return run_async(main)


def _show(arguments: Namespace, plan: UndoPlan) -> ExitCode:
    from .._undo._plan_text import describe_plan, undo_data

    print_data(arguments, undo_data(plan), describe_plan(plan))
    return ExitCode.SUCCESS


async def _nothing_to_do(arguments: Namespace, host: Host, plan: UndoPlan) -> ExitCode:
    """Report that the effect is already undone, and how to redo it.

    Raises:
        UndoImpossible: if it has not been undone and cannot be.
    """
    from .._errors import UndoImpossible
    from .._undo._plan_text import describe_chain, undo_data
    from .._undo._undo_effects import undo_chain

    chain = await undo_chain(host.ledger.folder, plan.effect)
    if not chain and not plan.steps:
        raise UndoImpossible(plan.effect, plan.remains)
    print_data(arguments, undo_data(plan), describe_chain(plan.effect, chain))
    return ExitCode.SUCCESS


async def _confirm(arguments: Namespace, plan: UndoPlan, ask: Ask | None) -> None:
    """Ask the user to confirm the whole plan.

    Raises:
        UndoDeclined: if the user declines, or confirmation is impossible without a terminal.
    """
    from .._errors import UndoDeclined
    from .._undo._plan_text import describe_plan

    text = describe_plan(plan, terminal_width(sys.stderr) - _MARGIN)
    if arguments.yes:
        notice(text)
        return
    if ask is None:
        notice(text)
        raise UndoDeclined(plan.effect, asked=False)
    if not (await ask(text.split("\n"), "Continue?", "y")).is_yes:
        raise UndoDeclined(plan.effect, asked=True)


async def _execute(arguments: Namespace, host: Host, plan: UndoPlan) -> ExitCode:
    from .._undo._plan_text import describe_result, undo_data

    effects: list[EffectReport] = []
    results = await host.undo(plan, on_effect=effects.append)
    await host.sync()
    error = next((one.error for one in results if one.error is not None), None)
    if arguments.json:
        data = undo_data(plan, results, effects)
        # The output includes the steps that were done before the failure.
        print_json(data if error is None else {**data, "error": error.as_dict()})
    else:
        print_text(describe_result(plan, results, effects))
        if error is not None:
            notice(f"error: {error.message} [{error.code}]")
            if error.hint:
                notice(f"hint: {error.hint}")
    return ExitCode.SUCCESS if error is None else error.exit_code
