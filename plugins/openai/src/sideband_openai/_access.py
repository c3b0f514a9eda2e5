"""How one service is reached: its address, and what proves that it may be used."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from ._address import Address

__all__ = ["Access"]

_SHORTEST_SECRET = 4


@frozen
class Access:
    """What a request needs besides its body.

    Attributes:
        provider: the name under which the service is a provider.
        address: where it is.
        headers: all that are sent, the key's included.
        secrets: the values that nobody may see.
        key_source: where the key came from, or may be set, for people.
    """

    provider: str
    address: Address
    headers: Mapping[str, str] = field(factory=dict, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    key_source: str = ""

    def without_secrets(self, text: str) -> str:
        """``text`` without the key, should the server repeat it."""
        for secret in self.secrets:
            if len(secret) >= _SHORTEST_SECRET:
                text = text.replace(secret, "[key]")
        return text
