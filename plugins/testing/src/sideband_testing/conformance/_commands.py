"""The conformance class of commands."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from inspect import iscoroutinefunction
from typing import Any, ClassVar

import pytest
from attrs import frozen
from sideband import Host, SidebandError
from sideband.commands import Command, CommandOutput, problem_of
from sideband.exit_codes import ExitCode

from ._base import Conformance
from ._failing import fail

_WIDTH = 100


@frozen
class CommandExample:
    """One command line.

    Args:
        words: the words after the name of the command.
        exit_code: the exit code that it must have.

    Example:
        >>> CommandExample(["list", "--kind", "op"]).exit_code
        <ExitCode.SUCCESS: 0>
    """

    words: Sequence[str] = ()
    exit_code: int = ExitCode.SUCCESS


class CommandConformance(Conformance):
    """The tests of a command: a plugin in the group ``sideband.v1.command``.

    Attributes:
        examples: command lines, each with its exit code; ``None`` to check only what needs none.

    Example:
        >>> class TestHello(CommandConformance):
        ...     plugin = "command.hello"
        ...     examples = [CommandExample(["Ada"]), CommandExample([], exit_code=2)]
    """

    kind = "command"
    examples: ClassVar[Sequence[CommandExample] | None] = None

    def test_summary_fits_the_list_of_commands(self) -> None:
        """Check that its summary is one line, and its name that of its entry point."""
        command = self._command()
        problem = problem_of(command)
        if problem is not None:
            self._wrong("a command that can be run", problem, "correct it")
        if not command.summary.strip() or "\n" in command.summary or len(command.summary) > _WIDTH:
            self._wrong(
                f"its summary is one line of at most {_WIDTH} characters",
                repr(command.summary),
                "say in a few words what it does",
            )
        if command.name != self.subject.name:
            self._wrong(f"its name is `{self.subject.name}`", f"`{command.name}`", "name it like its entry point")

    def test_help_describes_each_argument(self) -> None:
        """Check that ``--help`` works, and says what each argument means."""
        parser = self._parser()
        text = parser.format_help()
        for one in _parsers(parser):
            text = one.format_help()
            for action in one._actions:  # noqa: SLF001  argparse has no public list
                if action.help is None and not isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
                    name = "/".join(action.option_strings) or action.dest
                    self._wrong(f"each argument of `{one.prog}` has a help text", f"`{name}` lacks it", "add `help=`")
        if "sideband-conformance" not in text:
            self._wrong("a help text with the name of the program", text[:200], "do not replace `prog`")

    def test_unknown_arguments_are_errors(self) -> None:
        """Check that an unknown argument ends with exit code 2."""
        parser = self._parser()
        try:
            parser.parse_args(["--sideband-unknown-option"])
        except SystemExit as ended:
            if ended.code == ExitCode.USAGE:
                return
            self._wrong("an unknown option ends with exit code 2", f"{ended.code}", "leave it to argparse")
        self._wrong("an unknown option ends with exit code 2", "it is accepted", "leave it to argparse")

    def test_examples_end_with_their_exit_codes(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Check that each line ends with its exit code, or with a ``SidebandError`` of that exit code."""
        for line in self._given():
            code, _ = self._run(line)
            capsys.readouterr()
            if code != line.exit_code:
                self._wrong(
                    f"`{self.subject.name} {' '.join(line.words)}` ends with exit code {line.exit_code}",
                    f"{code}",
                    "return an `ExitCode`, and raise `SidebandError` for failures",
                )

    def test_results_are_json(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Check that what a command with an open host returns, and what one prints with ``--json``, is JSON."""
        for line in self._given():
            code, data = self._run(line)
            printed = capsys.readouterr().out
            if code != ExitCode.SUCCESS:
                continue
            try:
                if data is not None:
                    json.dumps(data, allow_nan=False)
                elif "--json" in line.words and printed:
                    json.loads(printed)
            except (TypeError, ValueError) as error:
                self._wrong(
                    f"the result of `{self.subject.name} {' '.join(line.words)}` is JSON",
                    str(error),
                    "return plain data",
                )

    async def exercise(self, host: Host) -> None:
        """Build the parser."""
        del host
        self._parser()

    def _command(self) -> Command:
        found: Command = self.subject.value.sideband_commands()
        return found

    def _parser(self) -> argparse.ArgumentParser:
        parser = argparse.ArgumentParser(prog="sideband-conformance")
        self._command().configure(parser)
        return parser

    def _given(self) -> Sequence[CommandExample]:
        if self.examples is None:
            pytest.skip("no examples: set `examples` in a test class of your own, to check what the command does")
        self.reset_world()
        return self.examples

    def _run(self, line: CommandExample) -> tuple[int, Any]:
        """Run a line, and return its exit code and the data that it returned."""
        command, parser = self._command(), self._parser()
        words = self.fill(list(line.words))
        try:
            arguments = parser.parse_args([word for word in words if not (command.opens and word == "--json")])
            if not iscoroutinefunction(command.run):
                return int(command.run(arguments)), None
            result = self.run(lambda: self._run_with_host(command, arguments))
        except SidebandError as error:
            return int(error.exit_code), None
        except SystemExit as ended:
            return ended.code if isinstance(ended.code, int) else int(ended.code is not None), None
        except pytest.fail.Exception:
            raise
        except Exception as error:  # noqa: BLE001  that is what is checked
            self._wrong(
                f"`{self.subject.name} {' '.join(words)}` fails with a `SidebandError`",
                f"{type(error).__name__}: {error}",
                "raise `UsageError`, `OpFailed` or an error of your own",
            )
        if isinstance(result, CommandOutput):
            return int(result.exit_code), result.data
        return 0, result

    async def _run_with_host(self, command: Command, arguments: argparse.Namespace) -> Any:
        async with self.open_host() as host:
            return await command.run(arguments, host)

    def _wrong(self, expected: str, happened: str, remedy: str) -> Any:
        fail(self.label, expected=expected, happened=happened, remedy=remedy)


def _parsers(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    """Return a parser and those of its actions."""
    found = [parser]
    for action in parser._actions:  # noqa: SLF001  as above
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for one in action.choices.values():
                found += _parsers(one)
    return found
