"""``sideband undo``: undo an effect, or everything that a session or a run changed, as far as possible."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from sideband.command_line import add_host_options, make_host, notice, print_data, print_json, print_text, run_async
from sideband.commands import Command
from sideband.exit_codes import ExitCode

from .._terminal._columns import terminal_width
from .._terminal._progressbar import Progressbar
from .._terminal._questions import Ask, Questions, ask_at_terminal

if TYPE_CHECKING:
    from sideband import EffectReport, Host, SidebandError
    from sideband.broker import UndoPlan

__all__ = ["sideband_commands"]

_MARGIN = 5  # for the mark and the indentation of a message


def sideband_commands() -> Command:
    """Register the command."""
    return Command("undo", "undo an effect, a run or a session as far as possible", _configure, _run)


def _configure(parser: ArgumentParser) -> None:
    add_host_options(parser)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "effect", nargs="?", metavar="EFFECT", help="the id of an effect; for a tool call, all its effects"
    )
    what.add_argument("-s", "--session", metavar="SESSION", help="all changes of a session: an id, a name, or `last`")
    what.add_argument("--run", metavar="RUN", help="all changes of a run of an agent, or of a call")
    parser.add_argument("--dry-run", action="store_true", help="show the plan and change nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask, and answer yes to the questions of guards")


def _run(arguments: Namespace) -> ExitCode:
    from .._undo._plan_text import describe_plan

    async def main() -> ExitCode:
        ask = ask_at_terminal(Progressbar())
        questions = Questions(ask, yes=arguments.yes)
        async with make_host(arguments, approver=questions.approver()) as host:
            if arguments.effect is None:
                return await _undo_session(arguments, host, ask)
            plan = await host.plan_undo(arguments.effect)
            if arguments.dry_run:
                return _show(arguments, plan)
            if not plan.open:
                return await _nothing_to_do(arguments, host, plan)
            await _confirm(arguments, plan.effect, describe_plan(plan, _width()), ask)
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


async def _confirm(arguments: Namespace, subject: str, text: str, ask: Ask | None) -> None:
    """Ask the user to confirm the whole plan.

    Raises:
        UndoDeclined: if the user declines, or confirmation is impossible without a terminal.
    """
    from .._errors import UndoDeclined

    if arguments.yes:
        notice(text)
        return
    if ask is None:
        notice(text)
        raise UndoDeclined(subject, asked=False)
    if not (await ask(text.split("\n"), "Continue?", "y")).is_yes:
        raise UndoDeclined(subject, asked=True)


def _width() -> int:
    return terminal_width(sys.stderr) - _MARGIN


async def _undo_session(arguments: Namespace, host: Host, ask: Ask | None) -> ExitCode:
    """Undo everything that a session or a run changed.

    Raises:
        UndoImpossible: if it changed something, and no part of that can be undone.
        UndoDeclined: if the user does not confirm.
    """
    from .._errors import UndoImpossible
    from .._undo._session_undo import SessionUndo

    session = await _session(host, arguments.session)
    subject = f"session {session}" if session else f"run {arguments.run}"
    undo = await SessionUndo.of(host, subject, session=session, run=arguments.run)
    if arguments.dry_run:
        print_data(arguments, undo.data(ended=False), undo.describe())
        return ExitCode.SUCCESS
    if not undo.changes:
        state = "is already undone" if undo.undone else "changed nothing"
        print_data(arguments, undo.data(ended=False), f"{subject} {state}")
        return ExitCode.SUCCESS
    if not undo.is_possible:
        raise UndoImpossible(subject, undo.impossible)
    await _confirm(arguments, subject, undo.describe(_width()), ask)
    error = await undo.carry_out(host)
    await host.sync()
    _print_result(arguments, undo.data(ended=True), undo.describe_result(error), error)
    return ExitCode.SUCCESS if error is None else error.exit_code


async def _session(host: Host, name: str | None) -> str | None:
    if name is None:
        return None
    from .._agent._availability import require_agent

    require_agent("undo --session")
    from sideband_agent.sessions import Sessions

    from .._sessions._lookup import resolve_session

    sessions = Sessions(host.store, host.home)
    return (await sessions.read(await resolve_session(sessions, name))).header.id


async def _execute(arguments: Namespace, host: Host, plan: UndoPlan) -> ExitCode:
    from .._undo._plan_text import describe_result, undo_data

    effects: list[EffectReport] = []
    results = await host.undo(plan, on_effect=effects.append)
    await host.sync()
    error = next((one.error for one in results if one.error is not None), None)
    _print_result(arguments, undo_data(plan, results, effects), describe_result(plan, results, effects), error)
    return ExitCode.SUCCESS if error is None else error.exit_code


def _print_result(arguments: Namespace, data: dict[str, Any], text: str, error: SidebandError | None) -> None:
    """Print the result, which includes the steps that were done before a failure."""
    if arguments.json:
        print_json(data if error is None else {**data, "error": error.as_dict()})
        return
    print_text(text)
    if error is not None:
        notice(f"error: {error.message} [{error.code}]")
        if error.hint:
            notice(f"hint: {error.hint}")
