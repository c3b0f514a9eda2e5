"""Rules that select a proxy. They come from the configuration only, not from the environment.

For both schemes, a proxy is asked for a tunnel (``CONNECT``) to the checked address. So it cannot see or change the
path, headers or body, and it connects only to what the grant allows. If the configuration says that the proxy resolves
names, it receives the name instead and is trusted with its address.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network

from attrs import define, field, frozen

from .._addresses._classes import Address, AddressClass, classify
from .._addresses._url import RequestTarget, parse_url

# For a proxy these addresses are its own machine and link, which is never intended.
_NEVER_PROXIED = frozenset({AddressClass.LOOPBACK, AddressClass.LINK_LOCAL, AddressClass.METADATA})


def proxy_from(text: str) -> RequestTarget:
    """Parse the address of a proxy.

    Raises:
        ValueError: if it does not have the form ``http://host:port`` or ``https://host:port``.
    """
    proxy = parse_url(text)
    if proxy.request_path != "/":
        raise ValueError("expected the form http://host:port")
    return proxy


@frozen
class Bypass:
    """A rule for direct connections: a host, ``*.example.org`` for all subdomains, a network, or ``*``."""

    text: str
    _network: IPv4Network | IPv6Network | None = field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_network", _network(self.text))

    def covers(self, host: str, address: Address | None) -> bool:
        """Return whether the rule matches the host or its address."""
        if self._network is not None:
            return address is not None and address in self._network
        if self.text == "*":
            return True
        return host.endswith(self.text[1:]) if self.text.startswith("*.") else host == self.text


def _network(text: str) -> IPv4Network | IPv6Network | None:
    try:
        return ip_network(text)
    except ValueError:
        return None


@define
class ProxyRules:
    """The rules that select a proxy.

    Args:
        proxies: the proxies by scheme of the request.
        bypasses: the rules for direct connections.
        resolves: whether the proxy resolves names.
    """

    proxies: Mapping[str, RequestTarget] = field(factory=dict)
    bypasses: tuple[Bypass, ...] = ()
    resolves: bool = False

    def for_name(self, target: RequestTarget) -> RequestTarget | None:
        """Return the proxy that resolves the host itself, or ``None`` if it is resolved here."""
        return self._unless_bypassed(target, None) if self.resolves else None

    def for_address(self, target: RequestTarget, address: Address) -> RequestTarget | None:
        """Return the proxy for a resolved host, or ``None`` for a direct connection."""
        return None if classify(address) in _NEVER_PROXIED else self._unless_bypassed(target, address)

    def _unless_bypassed(self, target: RequestTarget, address: Address | None) -> RequestTarget | None:
        if any(bypass.covers(target.host, address) for bypass in self.bypasses):
            return None
        return self.proxies.get(target.scheme)
