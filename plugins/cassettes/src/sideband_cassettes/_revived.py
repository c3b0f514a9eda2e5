"""Errors as data of a cassette, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sideband import ops
from sideband.errors import SidebandError
from sideband.ops import OpError, OpFailed

_OF_CORE = {name: one for name, one in vars(ops).items() if isinstance(one, type) and issubclass(one, OpError)}


def described(error: OpError) -> dict[str, Any]:
    """Return an error as data, with the name of its class."""
    return {"type": type(error).__name__, **error.as_dict()}


def revived(data: Mapping[str, Any], declared: Iterable[type[SidebandError]]) -> OpError:
    """Return the error that a recorded effect was answered with.

    Args:
        data: the error as data.
        declared: the errors that the family of its op declares. Others are raised as those of the core.
    """
    classes = {**_OF_CORE, **{one.__name__: one for one in declared if issubclass(one, OpError)}}
    return classes.get(str(data.get("type")), OpFailed).from_dict(data)
