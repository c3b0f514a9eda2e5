"""Classification of IP addresses, on which the default reach of a grant depends.

The properties in ``ipaddress`` differ between Python versions and answer another question. What matters here is which
machine an address reaches, and an address that embeds another one must be classified at least as strictly.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from attrs import frozen

Address = IPv4Address | IPv6Address


class AddressClass(StrEnum):
    """The network location of an address, from harmless to forbidden. If several match, the last one applies."""

    PUBLIC = "public"
    PRIVATE = "private"
    LINK_LOCAL = "link-local"
    LOOPBACK = "loopback"
    METADATA = "metadata"
    MULTICAST = "multicast"
    RESERVED = "reserved"


FORBIDDEN = frozenset({AddressClass.MULTICAST, AddressClass.RESERVED})
"""Classes that no grant allows, because they contain no servers."""

_ORDER = {kind: index for index, kind in enumerate(AddressClass)}


@frozen
class Block:
    """A block of addresses of one class.

    Args:
        network: the addresses.
        kind: their class.
        what: a description for readers of the table.
        source: the defining document.
    """

    network: IPv4Network | IPv6Network
    kind: AddressClass
    what: str
    source: str


def _block(network: str, kind: AddressClass, what: str, source: str) -> Block:
    return Block(ip_network(network), kind, what, source)


# Other IPv4 addresses are public; other IPv6 addresses are reserved (RFC 4291, section 2.4).
BLOCKS: tuple[Block, ...] = (
    _block("0.0.0.0/8", AddressClass.RESERVED, "this network; 0.0.0.0 reaches the local machine", "RFC 791, 1122"),
    _block("10.0.0.0/8", AddressClass.PRIVATE, "private use", "RFC 1918"),
    _block("100.64.0.0/10", AddressClass.PRIVATE, "shared address space for carrier-grade NAT", "RFC 6598"),
    _block("127.0.0.0/8", AddressClass.LOOPBACK, "loopback", "RFC 1122"),
    _block("169.254.0.0/16", AddressClass.LINK_LOCAL, "link-local", "RFC 3927"),
    _block("172.16.0.0/12", AddressClass.PRIVATE, "private use", "RFC 1918"),
    _block("192.0.0.0/24", AddressClass.RESERVED, "protocol assignments", "RFC 6890"),
    _block("192.0.2.0/24", AddressClass.RESERVED, "documentation", "RFC 5737"),
    _block("192.88.99.0/24", AddressClass.RESERVED, "6to4 relay anycast, deprecated", "RFC 7526"),
    _block("192.168.0.0/16", AddressClass.PRIVATE, "private use", "RFC 1918"),
    _block("198.18.0.0/15", AddressClass.RESERVED, "benchmarking of network devices", "RFC 2544"),
    _block("198.51.100.0/24", AddressClass.RESERVED, "documentation", "RFC 5737"),
    _block("203.0.113.0/24", AddressClass.RESERVED, "documentation", "RFC 5737"),
    _block("224.0.0.0/4", AddressClass.MULTICAST, "multicast", "RFC 5771"),
    _block(
        "240.0.0.0/4", AddressClass.RESERVED, "reserved for future use; the last address is broadcast", "RFC 1112, 919"
    ),
    _block("2000::/3", AddressClass.PUBLIC, "global unicast", "RFC 4291"),
    _block("::1/128", AddressClass.LOOPBACK, "loopback", "RFC 4291"),
    _block("::ffff:0:0/96", AddressClass.PUBLIC, "IPv4-mapped: class of the embedded address", "RFC 4291"),
    _block("64:ff9b::/96", AddressClass.PUBLIC, "NAT64: class of the embedded address", "RFC 6052"),
    _block("64:ff9b:1::/48", AddressClass.PRIVATE, "local-use NAT64: class of the embedded address", "RFC 8215"),
    _block("100::/64", AddressClass.RESERVED, "discard-only", "RFC 6666"),
    _block("2001::/23", AddressClass.RESERVED, "protocol assignments", "RFC 2928"),
    _block("2001::/32", AddressClass.PUBLIC, "Teredo: class of the embedded client and server", "RFC 4380"),
    _block("2001:db8::/32", AddressClass.RESERVED, "documentation", "RFC 3849"),
    _block("2002::/16", AddressClass.PUBLIC, "6to4: class of the embedded address", "RFC 3056"),
    _block("3fff::/20", AddressClass.RESERVED, "documentation", "RFC 9637"),
    _block("fc00::/7", AddressClass.PRIVATE, "unique local", "RFC 4193"),
    _block("fe80::/10", AddressClass.LINK_LOCAL, "link-local", "RFC 4291"),
    _block("fec0::/10", AddressClass.PRIVATE, "site-local, deprecated", "RFC 3879"),
    _block("ff00::/8", AddressClass.MULTICAST, "multicast", "RFC 4291"),
)

METADATA: dict[Address, str] = {
    ip_address("169.254.169.254"): "Amazon, Google, Azure, Oracle, DigitalOcean, OpenStack and others",
    ip_address("169.254.170.2"): "Amazon ECS: credentials of a task",
    ip_address("169.254.170.23"): "Amazon EKS: credentials of a pod",
    ip_address("169.254.0.23"): "Tencent Cloud",
    ip_address("169.254.42.42"): "Scaleway",
    ip_address("100.100.100.200"): "Alibaba Cloud",
    ip_address("168.63.129.16"): "Azure's host",
    ip_address("192.0.0.192"): "Oracle Cloud, classic",
    ip_address("fd00:ec2::254"): "Amazon",
    ip_address("fd00:ec2::23"): "Amazon EKS: credentials of a pod",
    ip_address("fd00:42::42"): "Scaleway",
    ip_address("fd20:ce::254"): "Google",
    ip_address("fe80::a9fe:a9fe"): "OpenStack",
}
"""Addresses of cloud metadata services, which hand out credentials to machines."""

_NARROWEST_FIRST = sorted(BLOCKS, key=lambda block: -block.network.prefixlen)
_MAPPED, _NAT64, _LOCAL_NAT64 = (IPv6Network(one) for one in ("::ffff:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48"))
_TEREDO, _SIX_TO_FOUR = IPv6Network("2001::/32"), IPv6Network("2002::/16")
_ISATAP = frozenset({0x0000_5EFE, 0x0200_5EFE})
_LOW = 0xFFFF_FFFF


@lru_cache(maxsize=4_096)
def classify(address: Address) -> AddressClass:
    """Return the class of an address, taking embedded IPv4 addresses into account.

    Example:
        >>> classify(ip_address("::ffff:127.0.0.1")).value
        'loopback'
    """
    found = {_own_class(address)}
    if isinstance(address, IPv6Address):
        found |= {classify(inner) for inner in _embedded(address)}
    return max(found, key=_ORDER.__getitem__)


def literal(host: str) -> Address | None:
    """Return the address if a host is an IP address, else ``None``. Zone ids (``fe80::1%eth0``) are not accepted."""
    try:
        return None if "%" in host else ip_address(host)
    except ValueError:
        return None


def is_this_machine(host: str) -> bool:
    """Return whether a name refers to the local machine, which needs no lookup (RFC 6761)."""
    return host == "localhost" or host.endswith(".localhost")


def network_of(host: str) -> AddressClass | None:
    """Return the class of an IP address or of ``localhost``, or ``None`` for other names."""
    if is_this_machine(host):
        return AddressClass.LOOPBACK
    address = literal(host)
    return None if address is None else classify(address)


def _own_class(address: Address) -> AddressClass:
    if address in METADATA:
        return AddressClass.METADATA
    for block in _NARROWEST_FIRST:
        if address in block.network:
            return block.kind
    return AddressClass.PUBLIC if address.version == 4 else AddressClass.RESERVED


def _embedded(address: IPv6Address) -> Iterator[IPv4Address]:
    """Yield the IPv4 addresses that a translator on the path may extract from this one."""
    number = int(address)
    if address in _MAPPED or address in _NAT64:
        yield IPv4Address(number & _LOW)
    elif address in _LOCAL_NAT64:
        yield from _translated_locally(number)
    elif address in _SIX_TO_FOUR:
        yield IPv4Address(number >> 80 & _LOW)
    elif address in _TEREDO:
        yield IPv4Address(number >> 64 & _LOW)
        yield IPv4Address(~number & _LOW)
    if number >> 32 & _LOW in _ISATAP:
        yield IPv4Address(number & _LOW)


def _translated_locally(number: int) -> Iterator[IPv4Address]:
    """Yield the embedded address for each prefix length of RFC 6052, since only the network operator knows the prefix.

    Bits 64 to 71 are skipped. The bits after the address must be zero; otherwise that prefix length does not apply.
    """
    without_gap = number >> 64 << 56 | number & (1 << 56) - 1
    candidates = (without_gap >> suffix for suffix in (40, 32, 24) if without_gap & (1 << suffix) - 1 == 0)
    found = {one & _LOW for one in (number, *candidates)}
    yield from map(IPv4Address, found - {0} or found)
