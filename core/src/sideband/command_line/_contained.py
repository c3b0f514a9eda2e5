"""Import the plugin of a command, so that it can fail but not end the program."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from ..plugins._objects import describe
from ..plugins._records import PluginRecord


@contextmanager
def contained(record: PluginRecord) -> Iterator[None]:
    """Convert what the import of a plugin raises to an error of the plugin, except for an interrupt by the user.

    Raises:
        PluginImportFailed: if it raised anything, such as ``SystemExit``.
    """
    interrupted = False

    def interrupt(*_: object) -> None:
        nonlocal interrupted
        interrupted = True
        raise KeyboardInterrupt

    # Only a handler of our own tells an interrupt from a plugin that raises KeyboardInterrupt.
    handles = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if handles:
        signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    except BaseException as error:
        if interrupted:
            raise KeyboardInterrupt from None
        from ..plugins._errors import PluginImportFailed

        raise PluginImportFailed(record, describe(error)) from error
    finally:
        if handles:
            signal.signal(signal.SIGINT, signal.default_int_handler)
