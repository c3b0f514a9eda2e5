"""Classification of addresses, compared with the table and the standard library."""

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sideband_http import AddressClass
from sideband_http._addresses._classes import BLOCKS, METADATA, classify, literal

ORDER = list(AddressClass)
EMBEDDING = [IPv6Network(one) for one in ("::ffff:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "2001::/32", "2002::/16")]

ipv4 = st.ip_addresses(v=4) | st.sampled_from(
    [one[edge] for one in (block.network for block in BLOCKS) for edge in (0, -1) if one.version == 4]
)
ipv6 = st.ip_addresses(v=6) | st.sampled_from(
    [one[edge] for one in (block.network for block in BLOCKS) for edge in (0, -1) if one.version == 6]
)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("8.8.8.8", "public"),
        ("1.1.1.1", "public"),
        ("0.0.0.0", "reserved"),
        ("0.1.2.3", "reserved"),
        ("10.1.2.3", "private"),
        ("100.63.255.255", "public"),
        ("100.64.0.1", "private"),
        ("100.127.255.255", "private"),
        ("100.128.0.0", "public"),
        ("100.100.100.200", "metadata"),
        ("127.0.0.1", "loopback"),
        ("127.255.255.254", "loopback"),
        ("168.63.129.16", "metadata"),
        ("169.254.1.1", "link-local"),
        ("169.254.169.254", "metadata"),
        ("169.254.170.2", "metadata"),
        ("172.15.255.255", "public"),
        ("172.16.0.1", "private"),
        ("172.31.255.255", "private"),
        ("172.32.0.0", "public"),
        ("192.0.0.1", "reserved"),
        ("192.0.0.192", "metadata"),
        ("192.0.2.1", "reserved"),
        ("192.88.99.1", "reserved"),
        ("192.168.1.1", "private"),
        ("198.18.0.1", "reserved"),
        ("198.19.255.255", "reserved"),
        ("198.51.100.1", "reserved"),
        ("203.0.113.1", "reserved"),
        ("224.0.0.1", "multicast"),
        ("239.255.255.255", "multicast"),
        ("240.0.0.1", "reserved"),
        ("255.255.255.255", "reserved"),
        ("::", "reserved"),
        ("::1", "loopback"),
        ("::7f00:1", "reserved"),
        ("::ffff:0:7f00:1", "reserved"),
        ("100::1", "reserved"),
        ("4000::1", "reserved"),
        ("2606:4700:4700::1111", "public"),
        ("2001:10::1", "reserved"),
        ("2001:db8::1", "reserved"),
        ("3fff::1", "reserved"),
        ("5f00::1", "reserved"),
        ("fc00::1", "private"),
        ("fd12:3456::1", "private"),
        ("fd00:ec2::254", "metadata"),
        ("fd20:ce::254", "metadata"),
        ("fe80::1", "link-local"),
        ("fe80::a9fe:a9fe", "metadata"),
        ("fec0::1", "private"),
        ("ff02::1", "multicast"),
        ("::ffff:8.8.8.8", "public"),
        ("::ffff:127.0.0.1", "loopback"),
        ("::ffff:169.254.169.254", "metadata"),
        ("64:ff9b::8.8.8.8", "public"),
        ("64:ff9b::10.0.0.1", "private"),
        ("64:ff9b:1::8.8.8.8", "private"),
        ("64:ff9b:1::127.0.0.1", "loopback"),
        ("64:ff9b:1:7f00:0:100::", "reserved"),
        ("64:ff9b:1:808:8:800::", "private"),
        ("2002:7f00:1::1", "loopback"),
        ("2002:808:808::1", "public"),
        ("2001:0:808:808:0:0:f7f7:f7f7", "public"),
        ("2001:0:808:808:0:0:80ff:fffe", "loopback"),
        ("2001:0:a00:1:0:0:f7f7:f7f7", "private"),
        ("fe80::5efe:7f00:1", "loopback"),
        ("2606:4700::200:5efe:a9fe:a9fe", "metadata"),
        ("2606:4700::5efe:808:808", "public"),
    ],
)
def test_address_has_its_class(text, kind):
    assert classify(ip_address(text)).value == kind


@pytest.mark.parametrize("address", METADATA, ids=str)
def test_cloud_metadata_addresses_have_their_own_class(address):
    assert classify(address) is AddressClass.METADATA


@given(ipv4)
def test_ipv4_is_public_only_where_the_standard_library_agrees(address):
    if classify(address) is AddressClass.PUBLIC:
        assert address.is_global
        assert not address.is_multicast


@given(ipv4)
def test_ipv4_is_loopback_link_local_or_multicast_as_in_the_standard_library(address):
    kind = classify(address)
    assert (kind is AddressClass.LOOPBACK) == address.is_loopback
    assert (kind is AddressClass.MULTICAST) == address.is_multicast
    if kind is not AddressClass.METADATA:
        assert (kind is AddressClass.LINK_LOCAL) == address.is_link_local


@given(ipv6)
def test_ipv6_is_public_only_where_the_standard_library_agrees(address):
    if classify(address) is AddressClass.PUBLIC and not any(address in network for network in EMBEDDING):
        assert address.is_global
        assert not address.is_multicast
        assert not address.is_site_local


def embeddings(inner):
    """Yield every embedding of an IPv4 address in an IPv6 address."""
    number = int(inner)
    yield IPv6Address(0xFFFF << 32 | number)
    yield IPv6Address(number)
    yield IPv6Address(0xFFFF << 48 | number)
    yield IPv6Address(int(IPv6Address("64:ff9b::")) | number)
    local = int(IPv6Address("64:ff9b:1::"))
    high, low = divmod(number, 1 << 16)
    yield IPv6Address(local | high << 64 | low << 40)
    high, low = divmod(number, 1 << 24)
    yield IPv6Address(local | high << 64 | low << 32)
    yield IPv6Address(local | number << 24)
    yield IPv6Address(local | number)
    yield IPv6Address(0x2002 << 112 | number << 80 | 1)
    yield IPv6Address(0x20010000 << 96 | number << 64 | 0xF7F7_F7F7)
    yield IPv6Address(0x20010000 << 96 | 0x0808_0808 << 64 | ~number & 0xFFFF_FFFF)
    for prefix in ("2606:4700::", "fe80::", "fc00::"):
        for mark in (0x5EFE, 0x0200_5EFE):
            yield IPv6Address(int(IPv6Address(prefix)) | mark << 32 | number)


@given(ipv4)
def test_embedding_never_makes_the_class_less_strict(inner):
    for outer in embeddings(inner):
        assert ORDER.index(classify(outer)) >= ORDER.index(classify(inner)), outer


@given(st.integers(0, 0xFFFF_FFFF_FFFF_FFFF), ipv4)
def test_isatap_is_recognized_with_any_prefix(prefix, inner):
    outer = IPv6Address(prefix << 64 | 0x5EFE << 32 | int(inner))
    assert ORDER.index(classify(outer)) >= ORDER.index(classify(inner))


@given(st.sampled_from(BLOCKS), st.data())
def test_every_address_of_a_block_is_at_least_as_strict_as_the_table(block, data):
    first, last = int(block.network[0]), int(block.network[-1])
    kind = type(block.network[0])
    address = kind(data.draw(st.integers(first, last)))
    narrower = [one for one in BLOCKS if address in one.network and one.network.prefixlen > block.network.prefixlen]
    if not narrower and address not in METADATA:
        assert ORDER.index(classify(address)) >= ORDER.index(block.kind)


def test_blocks_are_unique_and_have_a_source():
    assert len({block.network for block in BLOCKS}) == len(BLOCKS)
    assert all(block.source.startswith("RFC ") and block.what for block in BLOCKS)


@pytest.mark.parametrize("text", ["example.org", "fe80::1%eth0", "127.1", "2130706433", "0x7f.0.0.1", "[::1]", ""])
def test_other_text_is_not_a_literal_address(text):
    assert literal(text) is None


def test_literal_address_is_parsed():
    assert literal("127.0.0.1") == IPv4Address("127.0.0.1")
    assert literal("::1") == IPv6Address("::1")
