"""The address, headers and key for a service."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import field, frozen
from sideband.messages import JsonPieces

from ._address import ServiceAddress
from ._service import ModelService

_SHORTEST_SECRET = 4


EgressCheck = Callable[[str | None, Mapping[str, str | bytes | JsonPieces]], None]
"""``check_egress`` of a plugin's context."""


@frozen
class ServiceAccess:
    """What all requests to a service share. ``find_access`` creates it.

    Attributes:
        provider: the name of the provider, as shown in errors.
        service: the kind of service.
        address: the address of the service.
        check_egress: checks each body before it is sent: no model may get a secret.
        headers: the headers sent with each request, including the key.
        secrets: the values that must not be shown, longest first.
        key_hint: the hint to show if the service rejects the key or requires one.
        plugin: the plugin whose settings the hints mention.

    Example:
        >>> acme = ModelService("https://acme.example", KeyForm("x-api-key"), "acme")
        >>> access = ServiceAccess("acme", acme, acme.official_address, ctx.check_egress, secrets=("sk-12345",))
        >>> access.without_secrets("the key sk-12345 is wrong")
        'the key [key] is wrong'
    """

    provider: str
    service: ModelService
    address: ServiceAddress
    check_egress: EgressCheck = field(repr=False)
    headers: Mapping[str, str] = field(factory=dict, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    key_hint: str = ""
    plugin: str = ""

    def without_secrets(self, text: str) -> str:
        """Return ``text`` with the key replaced, in case the server echoes it."""
        for secret in self.secrets:
            if len(secret) >= _SHORTEST_SECRET:
                text = text.replace(secret, "[key]")
        return text
