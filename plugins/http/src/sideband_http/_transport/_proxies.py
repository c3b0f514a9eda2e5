"""Proxies: who passes requests on, and which. What the environment says about them is not read.

Whatever the scheme, a proxy is asked for a tunnel (``CONNECT``) to the address that was checked. So it learns no path,
header or body, changes none, and connects to nothing that the grant does not allow. Only where the configuration says
that the proxy resolves names it is given the name, and trusted with where that leads.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network

from attrs import define, field, frozen

from .._addresses._classes import Address, AddressClass, classify
from .._addresses._url import RequestTarget, parse_url

# To a proxy these are its own machine and its own link, which nobody meant.
_NEVER_PROXIED = frozenset({AddressClass.LOOPBACK, AddressClass.LINK_LOCAL, AddressClass.METADATA})


def proxy_from(text: str) -> RequestTarget:
    """The proxy of a configuration.

    Raises:
        ValueError: it is not ``http://host:port`` or ``https://host:port``.
    """
    proxy = parse_url(text)
    if proxy.request_path != "/":
        raise ValueError("a proxy is written as http://host:port")
    return proxy


@frozen
class Bypass:
    """Who is connected to without a proxy: a host, ``*.example.org`` for all below a name, a network, or ``*``."""

    text: str
    _network: IPv4Network | IPv6Network | None = field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_network", _network(self.text))

    def covers(self, host: str, address: Address | None) -> bool:
        """Whether it means this host, or the address that it stands for."""
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
    """Which proxy a request takes.

    Args:
        proxies: by scheme of the request.
        bypasses: who is connected to without.
        resolves: whether the proxy is given names instead of addresses.
    """

    proxies: Mapping[str, RequestTarget] = field(factory=dict)
    bypasses: tuple[Bypass, ...] = ()
    resolves: bool = False

    def for_name(self, target: RequestTarget) -> RequestTarget | None:
        """The proxy that is to resolve the host of a request itself; ``None``: it is resolved here."""
        return self._unless_bypassed(target, None) if self.resolves else None

    def for_address(self, target: RequestTarget, address: Address) -> RequestTarget | None:
        """The proxy for a request to a host that was resolved; ``None``: it is connected to."""
        return None if classify(address) in _NEVER_PROXIED else self._unless_bypassed(target, address)

    def _unless_bypassed(self, target: RequestTarget, address: Address | None) -> RequestTarget | None:
        if any(bypass.covers(target.host, address) for bypass in self.bypasses):
            return None
        return self.proxies.get(target.scheme)
