"""Keep the keyring of the user, which a process chooses once, apart from the hosts of a test."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

VARIABLE = "PYTHON_KEYRING_BACKEND"
REFUSING = "keyring.backends.fail.Keyring"
"""The backend that stores nothing."""


@contextmanager
def without_keyring() -> Iterator[None]:
    """Let this process have no keyring within the block, and after it the one that it had or would have.

    The package ``keyring`` is slow to import, so this does nothing unless other code imports it.
    """
    named = os.environ.get(VARIABLE)
    package: Any = sys.modules.get("keyring")
    before = None if package is None else package.get_keyring()
    if package is not None:
        package.set_keyring(package.core.load_keyring(REFUSING))
    try:
        yield
    finally:
        package = sys.modules.get("keyring")
        if before is not None:
            package.set_keyring(before)
        elif package is not None:
            _choose_again(package, named)


def _choose_again(package: Any, named: str | None) -> None:
    """Choose the keyring of the process as if the test had not run. It is chosen by a variable, which the test set."""
    set_by_test = os.environ.pop(VARIABLE, None)
    try:
        if named is not None:
            os.environ[VARIABLE] = named
        package.core.init_backend()
    finally:
        os.environ.pop(VARIABLE, None)
        if set_by_test is not None:
            os.environ[VARIABLE] = set_by_test
