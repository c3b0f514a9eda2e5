"""What makes one service different from another, as data."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve, field, frozen

from ._address import ServiceAddress


@frozen
class KeyForm:
    """How a key stands in a request.

    Attributes:
        header: the header, in lower case.
        prefix: what comes before the key in it.

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
    """A kind of service: its usual address, where its key may come from, and how it takes it.

    Attributes:
        official: the address that is used if no other is configured.
        key_form: how it takes a key.
        user_agent: what requests call themselves.
        address_variable: the environment variable that may hold another address; empty for none.
        key_variables: the environment variables that may hold a key, and the form in which each is sent.
        version_path: a part such as ``/v1`` with which all paths of requests begin. An address may end with it.
        hints: what to do about a status, where the service knows better than the library.
        without_key: what people can do who have no key for the official address; empty for nothing.

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
        """The official address, in its parts."""
        return self.parse_address(self.official)

    def parse_address(self, text: str) -> ServiceAddress:
        """Read an address of such a service.

        Raises:
            ValueError: the text is not an address.

        Example:
            >>> acme = ModelService("https://acme.example", KeyForm("x-api-key"), "acme", version_path="/v1")
            >>> acme.parse_address("https://gateway.example/acme/v1").url
            'https://gateway.example/acme'
        """
        address = ServiceAddress.parse(text)
        if not self.version_path:
            return address
        return evolve(address, path=address.path.removesuffix(self.version_path))
