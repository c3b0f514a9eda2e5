"""The parser of a command's words: exact names, with a suggestion for each unknown one."""

from __future__ import annotations

from argparse import REMAINDER, Action, ArgumentParser, Namespace, _SubParsersAction
from collections.abc import Iterator, Sequence
from itertools import dropwhile
from typing import Any

from ..errors import UsageError
from ..suggestions import did_you_mean

_JSON = "--json"


class Parser(ArgumentParser):
    """A parser that raises ``UsageError``, so that usage errors are reported like all others.

    Options cannot be abbreviated: an abbreviation may be a misspelled other option, and may become ambiguous.
    """

    def error(self, message: str) -> None:  # type: ignore[override]  # ends by raising, as the original ends by exiting
        raise UsageError(message, hint=f"see `{self.prog} --help`")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Check the options first: the word after an unknown one would become a positional argument."""
        followed = self._subparsers or any(action.nargs == REMAINDER for action in self._actions)
        for word in options_of(args):
            if followed and not word.startswith("-"):
                break  # an action's own parser checks its options; a remainder may contain any words
            name = word.partition("=")[0]
            if name.startswith("--") and " " not in name and name not in self._option_string_actions:
                where = "; the options of an action follow it" if self._subparsers else ""
                self.error(f"unknown option `{name}`{did_you_mean(name, self._option_string_actions)}{where}")
        return super().parse_known_args(args, namespace)

    def leaves(self) -> Iterator[Parser]:
        """Yield the parsers of all actions, or the parser itself if it has no actions."""
        actions = [action for action in self._actions if isinstance(action, _SubParsersAction)]
        for action in actions:
            for one in {id(choice): choice for choice in action.choices.values()}.values():
                yield from one.leaves()
        if not actions:
            yield self

    def all_actions(self) -> Iterator[Action]:
        """Yield the options and arguments of the parser and of all parsers below it, to complete them in a shell."""
        for action in self._actions:
            yield action
            if isinstance(action, _SubParsersAction):
                for one in {id(choice): choice for choice in action.choices.values()}.values():
                    yield from one.all_actions()

    def _check_value(self, action: Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            known = [str(choice) for choice in action.choices]
            name = "/".join(action.option_strings) or str(action.metavar or action.dest).lower()
            raise UsageError(
                f"unknown {name} `{value}`{did_you_mean(str(value), known)}",
                hint=f"choose from {', '.join(known)}; see `{self.prog} --help`",
            )


def parse(parser: Parser, words: list[str]) -> Namespace:
    """Parse options and positional arguments in any order. Parsers with subcommands don't support that."""
    options = options_of(words)
    try:
        # Python 3.11 forgets the `--` when it parses in any order.
        if any(word.startswith("-") for word in words[len(options) + 1 :]):
            return parser.parse_args(words)
        return parser.parse_intermixed_args(words)
    except TypeError:
        return parser.parse_args(words)


def options_of(words: Sequence[str]) -> Sequence[str]:
    """Return the words that may be options: those before ``--``."""
    return words[: words.index("--")] if "--" in words else words


def with_json_last(words: Sequence[str]) -> list[str]:
    """Move ``--json`` from before the command or its action to the end of the options, where all parsers accept it."""
    name, *rest = [*dropwhile(_JSON.__eq__, words)] or [""]
    rest = [*dropwhile(_JSON.__eq__, rest)]
    if name and len(rest) + 1 < len(words):
        rest.insert(len(options_of(rest)), _JSON)
    return [name, *rest]
