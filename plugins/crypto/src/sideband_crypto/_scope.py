"""The scope of `crypto` capabilities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
from sideband.ops import Scope

_NO_SECRET = "-"  # noqa: S105  not a valid secret name: those begin with a letter or digit
"""The value of `key` for a request without a stored key."""


@attrs.frozen
class CryptoScope(Scope, family="crypto"):
    """The scope of a `crypto` capability: `crypto:op=sign,key=release`.

    Attributes:
        op: the op without its family: `hash`, `sign`.
        key: the name of the stored key, or `-` if no stored key is used.
    """

    op: str | None = None
    key: str | None = None


def scope_of(verb: str) -> Callable[[Any], CryptoScope]:
    """Return a function that computes the required scope from the parameters: the op and its stored key, if any."""

    def scope(params: Any) -> CryptoScope:
        return CryptoScope(op=verb, key=getattr(params, "handle", None) or _NO_SECRET)

    return scope
