"""Examples: what a test does with a plugin."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from attrs import field, frozen


@frozen
class Example:
    """One use of an op, a tool or a command's action.

    In texts, ``{folder}`` stands for a folder that is new for each run.

    Args:
        name: the name of the op or tool, such as ``clock.now``.
        params: its parameters or arguments.
        result: the result that it must have; by default any.
        error: the code of the error that it must fail with, for a tool a part of the message; empty if it must succeed.

    Example:
        >>> Example("clock.now", {"zone": "Mars"}, error="clock.zone").error
        'clock.zone'
    """

    name: str
    params: Mapping[str, Any] = field(default=MappingProxyType({}))
    result: Any = field(default=Ellipsis, kw_only=True)
    error: str = field(default="", kw_only=True)
