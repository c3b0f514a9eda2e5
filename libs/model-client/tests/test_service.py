import pytest
from sideband_model_client import KeyForm, ModelService, checked_headers


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("https://example.org/v1", "https://example.org"),
        ("https://example.org/v1/", "https://example.org"),
        ("https://example.org/a/v1", "https://example.org/a"),
        ("https://example.org/av1", "https://example.org/av1"),
        ("https://example.org", "https://example.org"),
    ],
)
def test_version_path_is_removed_from_an_address(text, url):
    service = ModelService("https://api.acme.example", KeyForm("x-api-key"), "acme", version_path="/v1")
    assert service.parse_address(text).url == url


def test_address_is_unchanged_without_a_version_path(acme):
    assert acme.parse_address("https://example.org/v1").url == "https://example.org/v1"


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("Authorization", "Bearer x", "secret store"),
        ("api-key", "x", "secret store"),
        ("X-Api-Key", "x", "secret store"),
        ("Cookie", "x", "secret store"),
        ("Host", "x", "provider sets it"),
        ("Content-Length", "1", "provider sets it"),
        ("Accept-Encoding", "gzip", "provider sets it"),
        ("Acme-Version", "1", "provider sets it"),
        ("X Title", "x", "one line"),
        ("X-Title", "a\r\nX-Evil: 1", "one line"),
        ("X-Title", "grüß", "one line"),
        ("", "x", "one line"),
    ],
)
def test_reserved_or_malformed_header_is_rejected(name, value, problem):
    with pytest.raises(ValueError, match=problem):
        checked_headers({name: value}, reserved={"acme-version"})


def test_other_headers_are_returned_unchanged():
    assert checked_headers({"X-Title": "our team", "acme-version": "1"}) == {"X-Title": "our team", "acme-version": "1"}
