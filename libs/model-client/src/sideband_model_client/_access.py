"""How a service is reached: its address, and the key that it takes."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from ._address import ServiceAddress
from ._service import ModelService

_SHORTEST_SECRET = 4


@frozen
class ServiceAccess:
    """What all requests to a service share. ``find_access`` makes it.

    Attributes:
        provider: the name of the provider, as it stands in errors.
        service: the kind of service.
        address: where it is.
        headers: the headers that all requests send, with the key.
        secrets: the values that must not be shown, the longest first.
        key_hint: what to do if the service refuses the key, or asks for one.
        plugin: the plugin whose settings the hints name.

    Example:
        >>> acme = ModelService("https://acme.example", KeyForm("x-api-key"), "acme")
        >>> access = ServiceAccess("acme", acme, acme.official_address, secrets=("sk-12345",))
        >>> access.without_secrets("the key sk-12345 is wrong")
        'the key [key] is wrong'
    """

    provider: str
    service: ModelService
    address: ServiceAddress
    headers: Mapping[str, str] = field(factory=dict, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    key_hint: str = ""
    plugin: str = ""

    def without_secrets(self, text: str) -> str:
        """Return ``text`` without the key, in case a server repeats it."""
        for secret in self.secrets:
            if len(secret) >= _SHORTEST_SECRET:
                text = text.replace(secret, "[key]")
        return text
