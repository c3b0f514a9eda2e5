"""``sideband undo EFFECT``: take back what an effect did, as far as that can be."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from sideband.commands import Command
from sideband.exit_codes import ExitCode

from .._host._options import add_host_options, make_host
from .._host._running import run
from .._terminal._clean import clean
from .._terminal._printing import notice, print_data, print_json
from .._terminal._progressbar import Progressbar
from .._terminal._questions import Ask, Questions, ask_at_terminal

if TYPE_CHECKING:
    from sideband import EffectReport, Host
    from sideband.broker import UndoPlan

__all__ = ["sideband_commands"]


def sideband_commands() -> Command:
    """Register the command."""
    return Command("undo", "take back what an effect did", _configure, _run)


def _configure(parser: ArgumentParser) -> None:
    add_host_options(parser)
    parser.add_argument("effect", metavar="EFFECT", help="its id; of a tool call, all that it did")
    parser.add_argument("--dry-run", action="store_true", help="show what would be done, and do nothing")
    parser.add_argument("--yes", action="store_true", help="do it without asking, and agree to what guards ask")


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
            await _agree(arguments, plan, ask)
            return await _do(arguments, host, plan)

    return run(main)


def _show(arguments: Namespace, plan: UndoPlan) -> ExitCode:
    from .._undo._plan_text import describe_plan, undo_data

    print_data(arguments, undo_data(plan), describe_plan(plan))
    return ExitCode.SUCCESS


async def _nothing_to_do(arguments: Namespace, host: Host, plan: UndoPlan) -> ExitCode:
    """Say why there is nothing left to do, and how what was taken back can be had again.

    Raises:
        UndoImpossible: it was not taken back, and can't be.
    """
    from .._errors import UndoImpossible
    from .._undo._plan_text import describe_chain, undo_data
    from .._undo._taken_back import chain_of

    chain = await chain_of(host.ledger.folder, plan.effect)
    if not chain and not plan.steps:
        raise UndoImpossible(plan.effect, plan.remains)
    print_data(arguments, undo_data(plan), describe_chain(plan.effect, chain))
    return ExitCode.SUCCESS


async def _agree(arguments: Namespace, plan: UndoPlan, ask: Ask | None) -> None:
    """Put the whole plan to the person.

    Raises:
        UndoDeclined: the person said no, or nobody can be asked.
    """
    from .._errors import UndoDeclined
    from .._undo._plan_text import describe_plan

    text = describe_plan(plan)
    if arguments.yes:
        notice(text)
        return
    if ask is None:
        notice(text)
        raise UndoDeclined(plan.effect, asked=False)
    if not await ask(text, "Do this? [y/N] "):
        raise UndoDeclined(plan.effect, asked=True)


async def _do(arguments: Namespace, host: Host, plan: UndoPlan) -> ExitCode:
    from .._undo._plan_text import describe_gone, undo_data

    effects: list[EffectReport] = []
    gone = await host.undo(plan, on_effect=effects.append)
    error = next((one.error for one in gone if one.error is not None), None)
    if arguments.json:
        data = undo_data(plan, gone, effects)
        # what was done before it failed has to be known as well, so that the error does not stand alone
        print_json(data if error is None else {**data, "error": error.as_dict()})
    else:
        _print(describe_gone(plan, gone, effects))
        if error is not None:
            notice(f"error: {error.message} [{error.code}]")
            if error.hint:
                notice(f"hint: {error.hint}")
    return ExitCode.SUCCESS if error is None else error.exit_code


def _print(text: str) -> None:
    import sys

    sys.stdout.write(clean(text) + "\n")
