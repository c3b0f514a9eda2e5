"""Addresses have one normal form; ambiguous ones are rejected."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sideband_model_client import ServiceAddress

parse = ServiceAddress.parse


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("https://api.example.org", "https://api.example.org"),
        (" https://api.example.org/v1/ ", "https://api.example.org/v1"),
        ("HTTPS://API.Example.ORG/V1", "https://api.example.org/V1"),
        ("https://api.example.org:443/v1", "https://api.example.org/v1"),
        ("https://api.example.org:0443/v1", "https://api.example.org/v1"),
        ("http://api.example.org:443/v1", "http://api.example.org:443/v1"),
        ("http://127.0.0.1:08000", "http://127.0.0.1:8000"),
        ("http://[0:0::1]:8000/v1", "http://[::1]:8000/v1"),
        ("https://example.org/a%20b/~c", "https://example.org/a%20b/~c"),
        ("https://xn--bcher-kva.example", "https://xn--bcher-kva.example"),
    ],
)
def test_address_is_normalized(text, url):
    assert parse(text).url == url
    assert parse(url).url == url


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "form"),
        ("api.example.org", "form"),
        ("ftp://example.org", "form"),
        ("https:example.org", "form"),
        ("https://", "form"),
        ("https:///v1", "form"),
        ("https://user:pw@example.org", "user name"),
        ("https://example.org\\@evil.example/v1", "user name"),
        ("https://example.org/v1?x=1", "query"),
        ("https://example.org/v1?", "query"),
        ("https://example.org/#x", "fragment"),
        ("https://exa mple.org", "invalid host"),
        ("https://exa\tmple.org", "invalid host"),
        ("https://example.org\\evil", "invalid host"),
        ("https://bücher.example", "xn--"),
        ("https://\u212aelvin.example", "invalid host"),
        ("https://.example.org", "invalid host"),
        ("https://example.org.", "invalid host"),
        ("https://example.org:", "invalid host"),
        ("https://example.org:99999999", "invalid host"),
        ("https://example.org:0", "65535"),
        ("https://example.org:65536", "65535"),
        ("https://[1::2::3]", "IPv6"),
        ("https://example.org/a b", "percent-encoded"),
        ("https://example.org/ä", "percent-encoded"),
        ("https://example.org//v1", "empty segment"),
        ("https://example.org/v1//", "empty segment"),
        ("https://example.org/v1\r\nX-Evil: 1", "percent-encoded"),
    ],
)
def test_invalid_address_is_rejected_with_its_problem(text, problem):
    with pytest.raises(ValueError, match=problem):
        parse(text)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", True),
        ("models.localhost", True),
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("[::1]", True),
        ("127.0.0.1.example.org", False),
        ("127.999.0.1", False),
        ("localhost.example.org", False),
        ("10.0.0.1", False),
        ("[fe80::1]", False),
    ],
)
def test_loopback_addresses_are_recognized(host, expected):
    assert parse(f"http://{host}:8000").is_loopback is expected


@given(st.text(st.sampled_from("htps:/@?#[]abz.-019%\\ \r\u212aä"), max_size=30))
def test_any_text_is_normalized_or_rejected(text):
    for one in (text, f"https://{text}"):
        try:
            address = parse(one)
        except ValueError:
            continue
        assert parse(address.url) == address
        assert address.url.isascii()
