"""How a check fails: with the plugin, what was expected, what happened, and the remedy."""

from __future__ import annotations

from typing import Any, NoReturn

import pytest

_Failed: Any = pytest.fail.Exception


class CheckFailed(_Failed):  # type: ignore[misc]  # pytest defines it in a private module
    """A check of a conformance class failed.

    Args:
        plugin: the plugin, as ``kind.name``.
        expected: what every plugin of this kind does, as a clause.
        happened: what this one did.
        remedy: what its author can do.
    """

    def __init__(self, plugin: str, expected: str, happened: str, remedy: str) -> None:
        super().__init__(
            f"{plugin}\n  expected: {expected}\n  happened: {happened}\n  remedy:   {remedy}", pytrace=False
        )
        self.plugin = plugin
        self.expected = expected
        self.happened = happened
        self.remedy = remedy


def fail(plugin: str, *, expected: str, happened: object, remedy: str) -> NoReturn:
    """Fail the running check."""
    __tracebackhide__ = True
    raise CheckFailed(plugin, expected, str(happened)[:2_000], remedy)
