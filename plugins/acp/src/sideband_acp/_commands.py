"""``sideband acp``: an agent for editors."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from functools import partial
from pathlib import Path

from sideband.command_line import add_host_options, run_async
from sideband.commands import Command
from sideband.errors import UsageError
from sideband.exit_codes import ExitCode

_MODES = ("manual", "assist", "semi", "full", "plan")


def sideband_commands() -> Command:
    """Register the command."""
    return Command("acp", "an agent for editors, over the Agent Client Protocol", _configure, _run)


def _configure(parser: ArgumentParser) -> None:
    add_host_options(parser, json=False)
    parser.add_argument(
        "-m", "--model", metavar="PROVIDER:MODEL", help="the model of all sessions; see `sideband models list`"
    )
    parser.add_argument(
        "--tools", action="append", type=_names, metavar="NAME,…",
        help="allow only these tools; `github.*` matches a prefix",
    )  # fmt: skip
    parser.add_argument(
        "--mode", choices=_MODES, help="the approval mode that new sessions begin with (default: assist)"
    )
    parser.add_argument("--max-cost", type=_money, metavar="USD", help="the cost limit of a session in US dollars")
    parser.add_argument("--max-tokens-total", type=_count, metavar="TOKENS", help="the token limit of a session")
    parser.add_argument(
        "--skill-dir", action="append", default=[], type=Path, metavar="DIR", help="a skill folder; may be repeated"
    )
    parser.add_argument(
        "--grant", action="append", default=[], type=_grant, metavar="SKILL=CAPABILITY",
        help="grant a skill this capability for now, in addition to its other rights; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--ignore-servers", action="store_true",
        help="leave out the MCP servers that the editor passes, instead of asking about them",
    )  # fmt: skip


def _run(arguments: Namespace) -> int:
    """Serve until the editor leaves, or until a signal."""
    if arguments.json:
        raise UsageError("`acp` does not support --json", hint="its output is the messages of the protocol")
    from sideband_serving import claimed_streams  # noqa: PLC0415  not needed for the help

    # Before plugins are imported: nothing but messages may reach the client.
    with claimed_streams() as streams:
        from ._serve import serve  # noqa: PLC0415  slow

        run_async(partial(serve, arguments, streams))
    return ExitCode.SUCCESS


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _grant(text: str) -> tuple[str, str]:
    name, equals, capability = text.partition("=")
    if not equals or not name or ":" in name:
        raise ArgumentTypeError(f"expected SKILL=CAPABILITY, got `{text}`")
    return name, capability


def _money(text: str) -> float:
    try:
        value = float(text.removeprefix("$"))
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise ArgumentTypeError(f"expected a positive amount of US dollars, got `{text}`")
    return value


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not int(text):
        raise ArgumentTypeError(f"expected a positive number, got `{text}`")
    return int(text)
