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
def test_the_version_that_paths_begin_with_is_taken_off_an_address(text, url):
    service = ModelService("https://api.acme.example", KeyForm("x-api-key"), "acme", version_path="/v1")
    assert service.parse_address(text).url == url


def test_without_such_a_version_an_address_is_left_alone(acme):
    assert acme.parse_address("https://example.org/v1").url == "https://example.org/v1"


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("Authorization", "Bearer x", "store of secrets"),
        ("api-key", "x", "store of secrets"),
        ("X-Api-Key", "x", "store of secrets"),
        ("Cookie", "x", "store of secrets"),
        ("Host", "x", "sets it itself"),
        ("Content-Length", "1", "sets it itself"),
        ("Accept-Encoding", "gzip", "sets it itself"),
        ("Acme-Version", "1", "sets it itself"),
        ("X Title", "x", "one line"),
        ("X-Title", "a\r\nX-Evil: 1", "one line"),
        ("X-Title", "grüß", "one line"),
        ("", "x", "one line"),
    ],
)
def test_headers_that_can_not_be_meant_are_refused(name, value, problem):
    with pytest.raises(ValueError, match=problem):
        checked_headers({name: value}, reserved={"acme-version"})


def test_other_headers_are_taken_as_they_are():
    assert checked_headers({"X-Title": "our team", "acme-version": "1"}) == {"X-Title": "our team", "acme-version": "1"}
