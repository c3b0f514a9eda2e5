"""``sideband mcp add``: add a server to the settings of the user."""

from __future__ import annotations

import re
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError
from sideband.command_line import add_host_options, joined, load_options, notice, print_data
from sideband.errors import UsageError
from sideband.exit_codes import ExitCode
from sideband.state import default_home
from sideband.validation import problem_text
from sideband_settings_file import changed_settings

from .._config import Config, ServerConfig
from .._packages import reference_of
from ._configured import SERVERS, check_configuration
from ._imported import imported_servers

SUMMARY = "add a server to your settings; nothing is started"
_SECRET = re.compile(r"TOKEN|SECRET|PASSW|API_?KEY|CREDENTIAL", re.IGNORECASE)
# What the options of the command line call otherwise than the settings.
_FOR_IMPORTED = frozenset({"read", "write", "network", "tools", "read_only"})
_OPTIONS = {"headers": "--header", "secrets": "--secret", "command": "COMMAND", "read_only": "--read-only"}


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.usage = (
        "%(prog)s NAME [options] (--npm PACKAGE | --pypi PACKAGE | --url URL | --) [COMMAND or ARGUMENT …]\n"
        "       %(prog)s --from FILE [NAME …] [options]"
    )
    parser.set_defaults(command=[])
    parser.add_argument(
        "names", nargs="*", default=[], metavar="NAME", help="the name of the server, and the namespace of its tools"
    )
    parser.add_argument(
        "--from", dest="source", type=Path, metavar="FILE",
        help="add servers of a .mcp.json or claude_desktop_config.json; --environment and --secret then set the "
        "variables that it uses",
    )  # fmt: skip
    parser.add_argument("--npm", metavar="PACKAGE", help="a package of npm, such as @scope/name or name@1.2")
    parser.add_argument("--pypi", metavar="PACKAGE", help="a package of PyPI, such as name or name==1.2")
    parser.add_argument("--url", metavar="URL", help="the address of a server that speaks Streamable HTTP")
    parser.add_argument("--sse", action="store_true", help="the address speaks the older protocol with events")
    _repeated(parser, "--header", "NAME=VALUE", "a header of each request")
    parser.add_argument("--auth", metavar="SECRET", help="the secret to send, bound to the origin of the address")
    parser.add_argument("--local", action="store_true", help="the address may be in this machine or a private network")
    _repeated(parser, "--read", "PATH", "a folder or file that the program may read")
    _repeated(parser, "--write", "PATH", "a folder or file that the program may change")
    parser.add_argument("--folder", metavar="PATH", help="the working directory of the program")
    parser.add_argument("--network", action="store_true", help="the program may use the network")
    _repeated(parser, "--environment", "NAME=VALUE", "an environment variable of the program")
    _repeated(parser, "--secret", "VARIABLE=SECRET", "a variable whose value is a secret, bound to op://mcp.NAME")
    _repeated(parser, "--tools", "PATTERN", "offer only the tools with such a name")
    _repeated(parser, "--read-only", "PATTERN", "tools with such a name change nothing, and need no approval")
    add_host_options(parser)


def _repeated(parser: ArgumentParser, option: str, metavar: str, help_text: str) -> None:
    parser.add_argument(option, action="append", default=[], metavar=metavar, help=f"{help_text}; may be repeated")


def run(arguments: Namespace) -> int:
    """Add servers.

    Raises:
        UsageError: if an option is invalid, or a server has the name.
        ConfigurationError: if the settings or the file are invalid.
    """
    tables = _imported(arguments) if arguments.source else {_name(arguments): _table(arguments)}
    for name, table in tables.items():
        _check(name, table)
    with changed_settings(default_home()) as file:
        for name, table in tables.items():
            if file.get((*SERVERS, name)) is not None:
                hint = f"choose another name, or run `sideband mcp remove {name}` first"
                raise UsageError(f"your settings have a server `{name}`", hint=hint)
            file.set((*SERVERS, name), table)
        check_configuration(file)
    lines = []
    for name, table in tables.items():
        _report(name, table)
        lines += [
            f"added `{name}` to {file.path}",
            f"run `sideband mcp test {name}` to connect, and to accept its tools",
        ]
    _report_other_servers(arguments, file.path)
    added = [{"server": name, "settings": table} for name, table in tables.items()]
    print_data(arguments, {"file": str(file.path), "added": added}, joined(lines))
    return ExitCode.SUCCESS


def _name(arguments: Namespace) -> str:
    if len(arguments.names) != 1:
        raise UsageError("one NAME is needed", hint="write the command of the server after `--`")
    name: str = arguments.names[0]
    return name


def _imported(arguments: Namespace) -> dict[str, dict[str, Any]]:
    given = _table(arguments)
    values, secrets = given.pop("environment", {}), given.pop("secrets", {})
    if wrong := sorted(given.keys() - _FOR_IMPORTED):
        raise UsageError(f"{_option(wrong[0])} cannot be used with --from", hint="the file says that")
    found = imported_servers(arguments.source, arguments.names, values, secrets)
    if not found:
        raise UsageError(f"{arguments.source} has no servers", hint="check the file")
    for one in found:
        renamed = f" as `{one.name}`" if one.name != one.of_file else ""
        if renamed:
            notice(f"notice: `{one.of_file}` is added{renamed}")
        if (folder := one.table.get("folder")) is not None:
            notice(f"notice: `{one.of_file}` may read its working directory {folder}, as {arguments.source} says")
        if one.unknown:
            keys = ", ".join(f"`{key}`" for key in one.unknown)
            notice(f"notice: `{one.of_file}`: {keys} of {arguments.source} have no meaning here, and are left out")
    both = {"read", "write"}
    return {
        one.name: {
            **one.table,
            **{key: value for key, value in given.items() if key not in both and _fits(key, one.table)},
            **{
                key: [*one.table.get(key, []), *given.get(key, [])]
                for key in both
                if "command" in one.table and (key in one.table or key in given)
            },
        }
        for one in found
    }


def _fits(key: str, table: Mapping[str, Any]) -> bool:
    return key != "network" or "command" in table


def _table(arguments: Namespace) -> dict[str, Any]:
    """Return what the options set."""
    runner = ["npx", "-y", arguments.npm] if arguments.npm else ["uvx", arguments.pypi] if arguments.pypi else []
    if arguments.npm and arguments.pypi:
        raise UsageError("a server cannot be a package of both npm and PyPI", hint="use either --npm or --pypi")
    found = {
        "command": [*runner, *arguments.command],
        "url": arguments.url,
        "sse": arguments.sse,
        "headers": _pairs("--header", arguments.header),
        "auth": arguments.auth,
        "local": arguments.local,
        "read": [_absolute(one) for one in arguments.read],
        "write": [_absolute(one) for one in arguments.write],
        "folder": arguments.folder and _absolute(arguments.folder),
        "network": arguments.network,
        "environment": _pairs("--environment", arguments.environment),
        "secrets": _pairs("--secret", arguments.secret),
        "tools": arguments.tools,
        "read_only": arguments.read_only,
    }
    return {key: value for key, value in found.items() if value}


def _absolute(path: str) -> str:
    # The settings are used in any folder.
    return str(Path(path).expanduser().absolute())


def _pairs(option: str, words: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not name or not equals:
            raise UsageError(f"{option} expects NAME=VALUE, got `{word}`", hint=f"write, for example, {option} A=b")
        if name in found:
            raise UsageError(f"{option} sets `{name}` twice", hint="remove one of them")
        found[name] = value
    return found


def _check(name: str, table: Mapping[str, Any]) -> None:
    if "command" not in table and "url" not in table:
        hint = "write --url URL, or the command after `--`: sideband mcp add NAME -- COMMAND"
        raise UsageError(f"it is not said where the server `{name}` is", hint=hint)
    try:
        reference_of(table["command"]) if "command" in table else None
    except ValueError as error:
        raise UsageError(str(error), hint="name a package and its version only") from None
    try:
        TypeAdapter(ServerConfig).validate_python(table)
        Config.model_validate({"servers": {name: table}})
    except ValidationError as error:
        problem = error.errors()[0]
        where = [str(one) for one in problem["loc"] if one not in ("servers", name)]
        key = _option(where[0]) if where and where[0] != "[key]" else ""
        if "[key]" in where and not key:
            raise UsageError(
                f"`{name}` cannot be the name of a server",
                hint="use up to 40 characters: words of a-z and 0-9, joined by underscores",
            ) from None
        raise UsageError(
            f"{key + ': ' if key else ''}{problem_text(problem)}", hint="see `sideband mcp add --help`"
        ) from None


def _option(key: str) -> str:
    return _OPTIONS.get(key, f"--{key}")


def _report(name: str, table: Mapping[str, Any]) -> None:
    """Report values that the user may not want in the settings."""
    for variable, value in table.get("environment", {}).items():
        if value and _SECRET.search(variable):
            notice(
                f"notice: the value of `{variable}` is in the settings as plain text; to store it as a secret, run "
                f"`sideband secrets set HANDLE --origin op://mcp.{name}`, and add the server with "
                f"`--secret {variable}=HANDLE`"
            )


def _report_other_servers(arguments: Namespace, path: Path) -> None:
    source = load_options(arguments, tolerant=True).sources.get(SERVERS, "")
    if source and Path(source).resolve() != path:
        notice(f"notice: {source} sets other servers, so that those of your settings are not used here")
