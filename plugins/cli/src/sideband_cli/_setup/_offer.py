"""Set up a model when a command needs one."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from typing import TypeVar

from sideband.command_line import load_options

from .._dialogs._questions import confirmed, has_terminal, say
from .._errors import ModelUnconfigured
from ._dialog import Dialog

T = TypeVar("T")


def with_model(arguments: Namespace, do: Callable[[], T]) -> T:
    """Run a command. If no model is configured, offer to set one up at a terminal, and run the command again.

    Args:
        arguments: the options of the command.
        do: runs the command.

    Raises:
        ModelUnconfigured: if no model is configured, and none was set up.
    """
    try:
        return do()
    except (ModelUnconfigured, ExceptionGroup) as error:
        if not _is_unconfigured(error) or arguments.json or not has_terminal():
            raise
        say("no model is configured")
        if not confirmed("Set one up now?") or not _set_up(arguments):
            raise
    return do()


def _set_up(arguments: Namespace) -> bool:
    choices = Dialog(arguments, load_options(arguments, tolerant=True)).run()
    if choices.model or choices.folders:
        say(f"wrote {choices.write(arguments)}")
    return bool(choices.model)


def _is_unconfigured(error: BaseException) -> bool:
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return isinstance(error, ModelUnconfigured)
