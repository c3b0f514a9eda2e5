"""Data that describes a kind of service."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve, field, frozen

from ._address import ServiceAddress


@frozen
class KeyForm:
    """The header that carries a key.

    Attributes:
        header: the header name in lower case.
        prefix: the text before the key.

    Example:
        >>> KeyForm("authorization", "Bearer ").headers("sk-1")
        {'authorization': 'Bearer sk-1'}
    """

    header: str
    prefix: str = ""

    def headers(self, key: str) -> dict[str, str]:
        """Return the headers that carry ``key``.

        Example:
            >>> KeyForm("x-api-key").headers("sk-1")
            {'x-api-key': 'sk-1'}
        """
        return {self.header: f"{self.prefix}{key}"}


@frozen
class ModelService:
    """A kind of service: its default address, the sources of its key, and how the key is sent.

    Attributes:
        official: the address to use if no other is configured.
        key_form: the header that carries a stored key.
        user_agent: the value of the ``User-Agent`` header.
        address_variable: the environment variable for another address, or an empty string.
        key_variables: the environment variables for a key, each with the header that carries it.
        version_path: a prefix such as ``/v1`` of all request paths. It is removed from the end of an address.
        hints: hints by HTTP status, which replace the general ones.
        without_key: the alternative to a key for the official address, for hints; may be empty.

    Example:
        >>> acme = ModelService(
        ...     official="https://api.acme.example/v1",
        ...     key_form=KeyForm("authorization", "Bearer "),
        ...     user_agent="sideband-acme/1.0",
        ...     key_variables={"ACME_API_KEY": KeyForm("authorization", "Bearer ")},
        ... )
        >>> acme.official_address.origin
        'https://api.acme.example'
    """

    official: str
    key_form: KeyForm
    user_agent: str
    address_variable: str = ""
    key_variables: Mapping[str, KeyForm] = field(factory=dict)
    version_path: str = ""
    hints: Mapping[int, str] = field(factory=dict)
    without_key: str = ""

    @property
    def official_address(self) -> ServiceAddress:
        """The official address, parsed."""
        return self.parse_address(self.official)

    def parse_address(self, text: str) -> ServiceAddress:
        """Parse an address of this kind of service.

        Raises:
            ValueError: if the text is not a valid address.

        Example:
            >>> acme = ModelService("https://acme.example", KeyForm("x-api-key"), "acme", version_path="/v1")
            >>> acme.parse_address("https://gateway.example/acme/v1").url
            'https://gateway.example/acme'
        """
        address = ServiceAddress.parse(text)
        if not self.version_path:
            return address
        return evolve(address, path=address.path.removesuffix(self.version_path))
