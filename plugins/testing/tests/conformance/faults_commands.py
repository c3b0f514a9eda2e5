"""Commands with one fault each."""

from argparse import Namespace
from types import SimpleNamespace

from sideband import Plugin
from sideband.commands import Command
from sideband_testing import CommandConformance, CommandExample


def configure(parser):
    parser.add_argument("name", help="who is greeted")


def run(arguments):
    print("hello", arguments.name)
    return 0


def command(**changes):
    made = Command(**{"name": "faulty", "summary": "greet", "configure": configure, "run": run, **changes})
    return Plugin("command", "faulty", SimpleNamespace(sideband_commands=lambda: made))


class Base(CommandConformance):
    fault = ""
    max_steps = 6
    examples = (CommandExample(["Ada"]), CommandExample([], exit_code=2))


class TestGood(Base):
    plugin = command()


class TestLongSummary(Base):
    fault = "test_summary_fits_the_list_of_commands"
    plugin = command(summary="greet\nsomeone")


class TestArgumentWithoutHelp(Base):
    fault = "test_help_describes_each_argument"
    plugin = command(configure=lambda parser: parser.add_argument("name"))


def lenient(parser):
    configure(parser)
    parser.parse_args = lambda words: Namespace(name="Ada")


class TestAcceptsAnything(Base):
    fault = "test_unknown_arguments_are_errors"
    plugin = command(configure=lenient)
    examples = (CommandExample(["Ada"]),)


class TestOtherExitCode(Base):
    fault = "test_examples_end_with_their_exit_codes"
    plugin = command(run=lambda arguments: 1)


async def opens(arguments, host):
    return {arguments.name}


class TestResultIsNotData(Base):
    fault = "test_results_are_json"
    plugin = command(run=opens, opens="host")
