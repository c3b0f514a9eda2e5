"""``sideband chat``: chat with an agent."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from sideband import UsageError
from sideband.command_line import run_async
from sideband.commands import Command
from sideband.exit_codes import ExitCode

from .._agent._availability import require_agent
from .._agent._options import add_agent_options, open_agent

if TYPE_CHECKING:
    from .._chat._frontend import ChatFrontend
    from .._chat._loop import Chat

__all__ = ["sideband_commands"]


def sideband_commands() -> Command:
    """Register the command."""
    return Command("chat", "chat with an agent", _configure, _run)


def _configure(parser: ArgumentParser) -> None:
    add_agent_options(parser, json=False)


def _run(arguments: Namespace) -> ExitCode:
    from .._chat._loop import Chat
    from .._setup._offer import with_model
    from .._terminal._questions import Questions

    require_agent("chat")

    if arguments.json:
        raise UsageError(
            "`chat` does not support --json", hint="use `sideband run --json`, with --session to continue a session"
        )

    async def main() -> ExitCode:
        chat = Chat(_frontend, thinking=arguments.thinking, quiet=arguments.quiet, verbose=arguments.verbose)
        questions = Questions(chat.frontend.ask, yes=arguments.yes)
        async with open_agent(arguments, questions, on_event=chat.take) as agent:
            await chat.talk(agent)
        return ExitCode.TERMINATED if chat.terminated else ExitCode.SUCCESS

    return with_model(arguments, lambda: run_async(main))


def _frontend(chat: Chat) -> ChatFrontend:
    from .._chat._plain import PlainFrontend

    if not (sys.stdin.isatty() and sys.stdout.isatty()) or os.environ.get("TERM", "dumb") == "dumb":
        return PlainFrontend()
    from .._chat._terminal import TerminalFrontend

    return TerminalFrontend(
        history=_history(),
        redact=chat.redact,
        status=chat.status,
        title=chat.title,
        commands=chat.commands,
        folder=chat.folder,
        interrupt=chat.interrupt,
        unfold=chat.unfold,
    )


def _history() -> Path:
    """Return the file of earlier input, readable by its owner only."""
    from sideband.settings import default_home

    home = default_home()
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = home / "history"
    file.touch(mode=0o600)
    file.chmod(0o600)
    return file
