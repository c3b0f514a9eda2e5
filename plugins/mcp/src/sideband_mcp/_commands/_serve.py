"""``sideband mcp serve``: offer tools and skills to clients of the protocol."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from contextlib import nullcontext
from functools import partial
from pathlib import Path

from sideband.command_line import add_host_options, run_async
from sideband.errors import UsageError
from sideband.exit_codes import ExitCode

SUMMARY = "offer tools and skills to MCP clients, over standard input and output, or an address"
_HOST, _PORTS = "127.0.0.1", 65_535


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    add_host_options(parser, json=False)
    parser.add_argument(
        "--tools", action="append", type=_names, metavar="NAME,…",
        help="offer these tools; `github.*` matches a prefix (default: all tools of skills)",
    )  # fmt: skip
    parser.add_argument(
        "--skills", action="append", type=_names, metavar="NAME,…", help="offer the tools and texts of these skills"
    )
    parser.add_argument(
        "--skill-dir", action="append", default=[], type=Path, metavar="DIR", help="a skill folder; may be repeated"
    )
    parser.add_argument(
        "--grant", action="append", default=[], type=_grant, metavar="SKILL=CAPABILITY",
        help="grant a skill this capability for now, in addition to its other rights; may be repeated",
    )  # fmt: skip
    parser.add_argument("--yes", action="store_true", help="answer yes to all questions of guards and of skills")
    parser.add_argument(
        "--listen", type=_address, metavar="[HOST:]PORT",
        help=f"serve Streamable HTTP at this address instead (default host: {_HOST}); 0 chooses a port",
    )  # fmt: skip
    parser.add_argument(
        "--token", metavar="SECRET", help="with --listen: the secret whose value clients send (default: a new token)"
    )
    parser.add_argument(
        "--allow-host", action="append", default=[], metavar="HOST:PORT",
        help="with --listen: a further name of this server that requests may contain; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--allow-origin", action="append", default=[], metavar="ORIGIN",
        help="with --listen: the origin of web pages that may send requests; may be repeated",
    )  # fmt: skip


def run(arguments: Namespace) -> int:
    """Serve until the client leaves, or until a signal."""
    if arguments.listen is None and (arguments.token or arguments.allow_host or arguments.allow_origin):
        raise UsageError("--token, --allow-host and --allow-origin need --listen", hint="add --listen 8000")
    from sideband_serving import claimed_streams  # noqa: PLC0415  not needed for the help

    # Before plugins are imported: nothing but messages may reach the client.
    with claimed_streams() if arguments.listen is None else nullcontext() as streams:
        from .._serving._command import serve  # noqa: PLC0415  slow

        run_async(partial(serve, arguments, streams))
    return ExitCode.SUCCESS


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _grant(text: str) -> tuple[str, str]:
    name, equals, capability = text.partition("=")
    if not equals or not name or ":" in name:
        raise ArgumentTypeError(f"expected SKILL=CAPABILITY, got `{text}`")
    return name, capability


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not port.isascii() or not port.isdigit() or int(port) > _PORTS:
        raise ArgumentTypeError(f"expected a port, or HOST:PORT, got `{text}`")
    return host.strip("[]") or _HOST, int(port)
