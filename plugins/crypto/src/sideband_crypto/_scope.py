"""The scope that capabilities of the family use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
from sideband.ops import Scope

_NO_SECRET = "-"  # noqa: S105  no name of a secret: those begin with a letter or digit
"""What `key` is in a request that uses no stored key."""


@attrs.frozen
class CryptoScope(Scope, family="crypto"):
    """What a capability of `crypto` may limit: `crypto:op=sign,key=release`.

    Attributes:
        op: the verb: `hash`, `sign`.
        key: the name of the stored key; `-` where there is none, or the caller brings one.
    """

    op: str | None = None
    key: str | None = None


def scope_of(verb: str) -> Callable[[Any], CryptoScope]:
    """What an op needs to be granted: itself, with the stored key that its parameters name, or with none."""

    def scope(params: Any) -> CryptoScope:
        return CryptoScope(op=verb, key=getattr(params, "handle", None) or _NO_SECRET)

    return scope
