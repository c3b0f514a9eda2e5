"""``sideband secrets …``: manage credentials with the ops of the family `secrets`."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sideband import UsageError
from sideband.command_line import add_host_options, make_host, notice, print_data, run_async
from sideband.commands import Command
from sideband.exit_codes import ExitCode

from .._dialogs._questions import secret
from .._terminal._tables import format_table

__all__ = ["sideband_commands"]

# larger than any secret may be
_MAX_BYTES = 1024 * 1024


def sideband_commands() -> Command:
    """Register the command."""
    return Command("secrets", "store, rotate, list and delete credentials", _configure, _run)


def _configure(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")

    def add(name: str, help_text: str, *, named: bool = True) -> ArgumentParser:
        action: ArgumentParser = actions.add_parser(name, help=help_text)
        if named:
            action.add_argument("name", metavar="NAME", help="the name of the secret")
        add_host_options(action)
        return action

    setting = add("set", "store a value from the terminal, standard input or a file")
    importing = add("import", "store the value of an environment variable")
    rotating = add("rotate", "store a new value; the old one remains available for a while")
    add("rollback", "restore the value from before the rotation")
    add("list", "list names, origins and ages, never values", named=False)
    add("delete", "delete a secret")
    rekeying = add("rekey", "change the key of the encrypted store", named=False)
    for binding in (setting, importing):
        binding.add_argument(
            "--origin",
            action="append",
            default=[],
            metavar="URL",
            help="an origin that it may be sent to, such as https://api.github.com; may be repeated",
        )
        binding.add_argument(
            "--header",
            action="append",
            default=[],
            metavar="NAME=FORM",
            help="a header to send it in, such as X-Api-Key={value}; may be repeated",
        )
    for valued in (setting, rotating):
        valued.add_argument("--file", type=Path, metavar="PATH", help="read the value from a file")
        valued.add_argument("--binary", action="store_true", help="store the value as bytes, unchanged")
    setting.add_argument("--rotate", action="store_true", help="same as `secrets rotate`: keep origins and headers")
    importing.add_argument("--from-env", required=True, metavar="VARIABLE", help="the environment variable")
    rekeying.add_argument("to", metavar="KEY", choices=["file", "passphrase"], help="the new key: file or passphrase")
    rekeying.add_argument("--key-file", type=Path, metavar="PATH", help="the path of the new key file")


def _run(arguments: Namespace) -> ExitCode:
    actions = {
        "set": _rotate if getattr(arguments, "rotate", False) else _set,
        "import": _import,
        "rotate": _rotate,
        "rollback": _roll_back,
        "list": _list,
        "delete": _delete,
        "rekey": _rekey,
    }
    return actions[arguments.action](arguments)


def _op(arguments: Namespace, name: str, params: dict[str, Any]) -> Any:
    async def main() -> Any:
        async with make_host(arguments) as host:
            return await host.op(name, params)

    return run_async(main)


def _set(arguments: Namespace) -> ExitCode:
    return _store(arguments, _value(arguments, "secrets.set", _binding(arguments)))


def _import(arguments: Namespace) -> ExitCode:
    value = os.environb.get(os.fsencode(arguments.from_env))
    if not value:
        raise UsageError(f"the environment variable `{arguments.from_env}` is not set", hint="export it in this shell")
    return _store(arguments, _as_value(value))


def _store(arguments: Namespace, value: str | bytes) -> ExitCode:
    params = {"name": arguments.name, "value": value, **_binding(arguments)}
    output = _op(arguments, "secrets.set", params)
    origins = ", ".join(arguments.origin) or "no origin: skills may be allowed to reveal it, but it is never sent"
    print_data(arguments, output or {"name": arguments.name}, f"stored `{arguments.name}`, bound to {origins}")
    return ExitCode.SUCCESS


def _rotate(arguments: Namespace) -> ExitCode:
    if getattr(arguments, "origin", None) or getattr(arguments, "header", None):
        raise UsageError(
            "--rotate cannot be combined with --origin or --header: a rotation keeps both", hint="omit one or the other"
        )
    value = _value(arguments, "secrets.rotate", {})
    output = _op(arguments, "secrets.rotate", {"name": arguments.name, "value": value})
    until = output["previous_until"]
    kept = f"; the previous value is kept until {until}" if until else ""
    print_data(arguments, output, f"rotated `{arguments.name}`{kept}")
    return ExitCode.SUCCESS


def _roll_back(arguments: Namespace) -> ExitCode:
    output = _op(arguments, "secrets.rollback", {"name": arguments.name})
    print_data(arguments, output, f"restored the previous value of `{arguments.name}`")
    return ExitCode.SUCCESS


def _binding(arguments: Namespace) -> dict[str, Any]:
    headers = {}
    for header in arguments.header:
        name, equals, form = header.partition("=")
        if not equals:
            raise UsageError(f"invalid header `{header}`", hint="write --header NAME=FORM, such as X-Api-Key={value}")
        headers[name] = form
    return {"origins": arguments.origin, "headers": headers}


def _value(arguments: Namespace, op: str, others: dict[str, Any]) -> str | bytes:
    """Read the value from the source in the arguments; as text without its final newline if it is UTF-8."""
    if arguments.file is None and sys.stdin.isatty():
        value: str | bytes = _ask(arguments, op, others)
    else:
        raw = _read(arguments.file)
        value = raw if arguments.binary else _as_value(raw)
    if not value:
        command = f"sideband secrets {arguments.action} {arguments.name}"
        raise UsageError("the value is empty", hint=f"type the value, or pipe it: printf %s VALUE | {command}")
    return value


def _read(path: Path | None) -> bytes:
    if path is None:
        return sys.stdin.buffer.read(_MAX_BYTES)
    try:
        with path.open("rb") as file:
            return file.read(_MAX_BYTES)
    except OSError as error:
        raise UsageError(f"cannot read `{path}`: {error.strerror}", hint="check the path in --file") from None


def _as_value(raw: bytes) -> str | bytes:
    try:
        return raw.decode().removesuffix("\n")
    except UnicodeDecodeError:
        return raw


def _ask(arguments: Namespace, op: str, others: dict[str, Any]) -> str:
    """Ask for the value, after validating the other parameters."""
    from pydantic import ValidationError
    from sideband.validation import problem_text

    async def check() -> None:
        async with make_host(arguments) as host:
            model = (await host.broker.ops.get(op)).spec.params
        try:
            model.model_validate({"name": arguments.name, "value": "x", **others})
        except ValidationError as error:
            problems = "; ".join(f"{'.'.join(map(str, one['loc']))}: {problem_text(one)}" for one in error.errors())
            raise UsageError(problems, hint=f"see `sideband secrets {arguments.action} --help`") from None

    run_async(check)
    return secret(f"value of {arguments.name}")


def _list(arguments: Namespace) -> ExitCode:
    output = _op(arguments, "secrets.list", {})
    columns = ["name", "origins", "kind", "age", "source"]
    rows = [
        [item["name"], ", ".join(item["origins"]), item["kind"], _age(item["updated"]), _place(item)]
        for item in output["items"]
    ]
    table = format_table(columns, rows) if rows else "no secrets are stored"
    print_data(arguments, output, f"{table}\n(new secrets are stored by the backend `{output['backend']}`)")
    for source, problem in sorted(output["problems"].items()):
        notice(f"skipped {source}: {problem}")
    return ExitCode.SUCCESS


def _place(item: dict[str, Any]) -> str:
    until = item["previous_until"]
    return f"{item['source']} (previous value until {until})" if until else item["source"]


def _age(updated: str | None) -> str:
    """Describe the time since the update, in the largest unit with a value of at least two."""
    if updated is None:
        return "unknown"
    try:
        seconds = (datetime.now(UTC) - datetime.fromisoformat(updated)).total_seconds()
    except (TypeError, ValueError):
        return "unknown"
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{int(seconds // length)} {unit}"
    return "just now"


def _delete(arguments: Namespace) -> ExitCode:
    output = _op(arguments, "secrets.delete", {"name": arguments.name})
    print_data(arguments, output if output is not None else {"name": arguments.name}, f"deleted `{arguments.name}`")
    return ExitCode.SUCCESS


def _rekey(arguments: Namespace) -> ExitCode:
    params: dict[str, Any] = {"to": arguments.to}
    if arguments.to == "passphrase":
        params["passphrase"] = _new_passphrase()
    if arguments.key_file is not None:
        params["key_file"] = str(arguments.key_file.absolute())
    output = _op(arguments, "secrets.rekey", params)
    key = "key file" if arguments.to == "file" else "passphrase"
    lines = [f"the store now uses a new {key}; the old key is no longer valid"]
    if arguments.to == "passphrase":
        lines.append("set SIDEBAND_SECRETS_PASSPHRASE to the new passphrase")
    if arguments.key_file is not None:
        lines.append(f'set `key_file = "{params["key_file"]}"` in `[plugins.secrets]`')
    if output["left"]:
        lines.append(f"`{output['left']}` was not deleted: other stores may use it")
    print_data(arguments, output, "\n".join(lines))
    return ExitCode.SUCCESS


def _new_passphrase() -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().removesuffix("\n")
    if not (given := secret("new passphrase")):
        raise UsageError("the passphrase is empty", hint="type it twice, or pipe it")
    if given == secret("repeat the new passphrase"):
        return given
    raise UsageError("the passphrases differ", hint="nothing was changed; try again")
