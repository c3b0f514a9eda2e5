from urllib.parse import urlsplit

import httpx
import pytest
import yarl
from hypothesis import given, settings
from hypothesis import strategies as st
from sideband_http import UrlInvalid
from sideband_http._addresses._url import parse_url

PORTS = {"http": 80, "https": 443}


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("HTTP://Example.ORG", "http://example.org/"),
        ("https://example.org:443/x", "https://example.org/x"),
        ("https://example.org:0080/x", "https://example.org:80/x"),
        ("http://example.org./x", "http://example.org/x"),
        ("http://example.org/a/./b/../c", "http://example.org/a/c"),
        ("http://example.org/a/%2e%2E/b", "http://example.org/b"),
        ("http://example.org/../../x", "http://example.org/x"),
        ("http://example.org/a/..", "http://example.org/"),
        ("http://example.org/%7euser/%c3%a4", "http://example.org/~user/%C3%A4"),
        ("http://example.org/ä?q=ü", "http://example.org/%C3%A4?q=%C3%BC"),
        ("http://example.org?q=1#part", "http://example.org/?q=1"),
        ("http://müller.example/", "http://xn--mller-kva.example/"),
        ("http://[2001:DB8:0:0::1]:8080/", "http://[2001:db8::1]:8080/"),
        ("http://127.0.0.1:80/", "http://127.0.0.1/"),
        ("http://example.org/projects/a%2fb", "http://example.org/projects/a%2Fb"),
    ],
)
def test_url_is_normalized(text, url):
    assert parse_url(text).url == url


@pytest.mark.parametrize(
    "text",
    [
        "",
        "example.org",
        "//example.org/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "http:/example.org",
        "http://",
        "http://user@example.org/",
        "http://user:password@example.org/",
        "http://example.org\\@evil.test/",
        "http://example.org/a b",
        "http://example.org/\r\nHost: evil.test",
        "http://example.org/\t",
        "http://example.org/\u2028",
        "http://example.org/\x00",
        "http://example.org/\ud800",
        "http://example.org:0/",
        "http://example.org:65536/",
        "http://example.org:-1/",
        "http://example.org:8o/",
        "http://example..org/",
        "http://-example.org/",
        "http://exa%6dple.org/",
        "http://[::1%25eth0]/",
        "http://[::1/",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f.0.0.1/",
        "http://127.0.0.01/",
        "http://example.org/%",
        "http://example.org/%0d%0aX",
        "http://example.org/%00",
        "http://example.org/%c0%ae%c0%ae/",
        "http://example.org/a/..%2f..%2fadmin",
        "http://example.org/a/..%5cadmin",
        "http://example.org/a/%252e%252e/admin",
        "http://example.org/a/..;x=1/admin",
        "http://example.org/" + "a" * 17_000,
    ],
)
def test_invalid_or_ambiguous_url_is_rejected(text):
    with pytest.raises(UrlInvalid) as caught:
        parse_url(text)
    assert caught.value.code == "http.url"


def test_error_does_not_contain_the_password():
    with pytest.raises(UrlInvalid) as caught:
        parse_url("http://user:hunter22@example.org/")
    assert "hunter22" not in str(caught.value)


@pytest.mark.parametrize(
    ("path", "readable"),
    [("/a%20b", "/a b"), ("/%C3%A4", "/ä"), ("/a%2Fb", "/a%2Fb"), ("/100%25", "/100%25"), ("/a%2Cb", "/a%2Cb")],
)
def test_readable_path_keeps_reserved_characters_encoded(path, readable):
    assert parse_url("http://example.org" + path).readable_path == readable


def test_different_paths_have_different_readable_paths():
    assert parse_url("http://h/a%2Fb").readable_path != parse_url("http://h/a/b").readable_path


TRICKY = st.text(alphabet="aZ09.-_~:/?#[]@!$&'()*+,;=%\\ \t\r\n\0|^`{}<>\"\u00e4\u3002\uff0f\u2100\u200b", max_size=12)
HOSTS = st.sampled_from(
    ["example.org", "127.0.0.1", "[::1]", "xn--mller-kva.example", "localhost", "a_b.c", "1.2.3.4."]
)


@st.composite
def urls(draw):
    """Generate texts that are almost URLs, with insertions in every part."""
    scheme = draw(st.sampled_from(["http", "https", "HTTP", "httpS"]))
    host = draw(HOSTS | TRICKY | st.builds("{}{}".format, HOSTS, TRICKY) | st.builds("{}{}".format, TRICKY, HOSTS))
    port = draw(st.sampled_from(["", ":", ":80", ":443", ":08080", ":65535"]) | TRICKY)
    return f"{scheme}://{host}{port}/{draw(TRICKY)}{draw(TRICKY)}"


@given(st.text(max_size=60) | urls() | st.text(alphabet="./%2eEfF5cC;\\ab", max_size=40).map("http://h/{}".format))
@settings(max_examples=200)
def test_accepted_url_is_parsed_identically_by_other_libraries(text):
    try:
        target = parse_url(text)
    except UrlInvalid:
        return
    assert parse_url(target.url) == target
    assert "/../" not in target.path + "/"
    assert target.url.isascii()
    ours = (target.scheme, target.host, target.port, target.request_path)

    lenient = urlsplit(target.url)
    path = f"{lenient.path}?{lenient.query}" if lenient.query else lenient.path
    assert (lenient.scheme, lenient.hostname, lenient.port or PORTS[target.scheme], path) == ours
    assert (lenient.username, lenient.fragment) == (None, "")

    ordinary = httpx.URL(target.url)
    port = ordinary.port or PORTS[target.scheme]
    assert (ordinary.scheme, ordinary.raw_host.decode(), port, ordinary.raw_path.decode()) == ours

    other = yarl.URL(target.url, encoded=True)
    assert (other.scheme, other.raw_host, other.port, other.raw_path_qs) == ours


@given(urls())
@settings(max_examples=200)
def test_accepted_url_has_the_same_host_in_other_libraries(text):
    try:
        target = parse_url(text)
    except UrlInvalid:
        return
    if text.isascii():
        assert (urlsplit(text).hostname or "").removesuffix(".") in {target.host, f"{target.host}."}
        assert httpx.URL(text).raw_host.decode().removesuffix(".") == target.host
        assert (yarl.URL(text).raw_host or "").removesuffix(".") == target.host


@given(st.text(max_size=40))
def test_reference_is_resolved_to_a_normalized_url_or_rejected(reference):
    base = parse_url("https://example.org/a/b?c")
    try:
        target = base.join(reference)
    except UrlInvalid:
        return
    assert parse_url(target.url) == target


@pytest.mark.parametrize("reference", ["http:///evil.test/", "https:/x", "https:x", "HTTPS:", "a:b", "https:?x"])
def test_reference_with_a_scheme_is_not_resolved_as_a_path(reference):
    with pytest.raises(UrlInvalid):
        parse_url("https://example.org/a/b").join(reference)


def test_params_are_appended_to_the_query():
    target = parse_url("http://example.org/?a=1").with_params([("b", "x y"), ("b", "&")])
    assert target.request_path == "/?a=1&b=x+y&b=%26"
