"""The scope of `crypto` capabilities."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

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

    valid_values: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "op": (
            *("aes_cbc_decrypt", "aes_cbc_encrypt", "aes_gcm_decrypt", "aes_gcm_encrypt", "compare", "create_key"),
            *("generate_key", "hash", "hkdf", "hmac", "hmac_verify", "pbkdf2", "random", "rsa_oaep_decrypt"),
            *("rsa_oaep_encrypt", "scrypt", "sign", "verify"),
        )
    }

    op: str | None = None
    key: str | None = None


def scope_of(verb: str) -> Callable[[Any], CryptoScope]:
    """Return a function that computes the required scope from the parameters: the op and its stored key, if any."""

    def scope(params: Any) -> CryptoScope:
        return CryptoScope(op=verb, key=getattr(params, "handle", None) or _NO_SECRET)

    return scope
