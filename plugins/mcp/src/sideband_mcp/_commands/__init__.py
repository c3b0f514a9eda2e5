"""``sideband mcp …``: what the command line does with the protocol. Each action is a module."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from sideband.commands import Command

from . import _add, _list, _login, _logout, _remove, _serve, _test
from ._words import with_words_after_dashes

__all__ = ["sideband_commands"]

_ACTIONS = {
    "add": _add,
    "list": _list,
    "test": _test,
    "remove": _remove,
    "login": _login,
    "logout": _logout,
    "serve": _serve,
}


def sideband_commands() -> Command:
    """Register the command."""
    return Command("mcp", "connect MCP servers, and serve tools to MCP clients", _configure, _run)


def _configure(parser: ArgumentParser) -> None:
    base = with_words_after_dashes(type(parser))
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION", parser_class=base)
    for name, action in _ACTIONS.items():
        action.configure(actions.add_parser(name, help=action.SUMMARY))


def _run(arguments: Namespace) -> int:
    code: int = _ACTIONS[arguments.action].run(arguments)
    return code
