"""Cookies set by servers: sent only to the host that set them, and limited in number and size."""

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sideband_http._request._cookies import CookieJar

URL = "https://app.example.co.uk/path/page"


def learned(*lines, url=URL):
    jar = CookieJar()
    set_by(jar, *lines, url=url)
    return jar


def set_by(jar, *lines, url=URL):
    headers = [(b"set-cookie", line.encode()) for line in lines]
    jar.learn(httpx.Response(200, headers=headers, request=httpx.Request("GET", url)))


def sent(jar, url=URL):
    return jar.cookies_for(httpx.Request("GET", url))


def test_cookie_is_sent_to_the_host_that_set_it():
    jar = learned("a=1; Path=/; Secure; HttpOnly; SameSite=Lax")
    assert sent(jar) == {"a": "1"}


@pytest.mark.parametrize("domain", ["co.uk", ".co.uk", "uk", "example.co.uk", ".EXAMPLE.co.uk", "app.example.co.uk"])
@pytest.mark.parametrize(
    "other",
    ["https://other.co.uk/", "https://example.co.uk/", "https://b.example.co.uk/", "https://x.app.example.co.uk/"],
)
def test_cookie_with_a_domain_is_sent_to_its_host_only(domain, other):
    jar = learned(f"a=1; Domain={domain}; Path=/")
    assert (sent(jar), sent(jar, other)) == ({"a": "1"}, {})


@pytest.mark.parametrize(
    "domain",
    ["other.example", "pp.example.co.uk", "x.app.example.co.uk", "127.0.0.1", "app.example.co.uk.evil.example"],
)
def test_cookie_for_another_domain_is_rejected(domain):
    jar = learned(f"a=1; Domain={domain}; Path=/")
    assert sent(jar) == sent(jar, f"https://{domain}/") == {}


def test_expired_cookie_is_removed():
    jar = learned("a=1; Domain=example.co.uk; Path=/", "b=1; Path=/")
    set_by(jar, "a=; Domain=.example.co.uk; Path=/; Max-Age=0", "b=; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT")
    assert sent(jar) == {}


@pytest.mark.parametrize(
    "line",
    ["a=\u00fc", "a=b\x00c", "a=b\tc", "a b=c", "=x", "a=" + "x" * 5_000, "\u00fc=1", "a\x7f=1"],
)
def test_invalid_cookie_is_rejected(line):
    assert sent(learned(line, "good=1")) == {"good": "1"}


def test_cookies_of_a_response_are_limited():
    assert len(sent(learned(*(f"c{number}=1; Path=/" for number in range(1_000))))) == 100


def test_cookies_of_a_jar_are_limited():
    jar = CookieJar()
    for start in range(0, 1_000, 100):
        set_by(jar, *(f"c{number}=1; Path=/" for number in range(start, start + 100)))
    assert len(sent(jar)) == 300
    set_by(jar, "c0=2; Path=/", "new=1; Path=/")
    assert (sent(jar)["c0"], len(sent(jar))) == ("2", 300)


def test_total_size_of_a_jar_is_limited():
    jar = CookieJar()
    for number in range(20):
        set_by(jar, f"c{number}={'x' * 4_000}; Path=/")
    assert len(sent(jar)) == 8


@given(st.text(max_size=80))
def test_any_set_cookie_gives_a_valid_cookie_header(line):
    try:
        jar = learned(line.encode("utf-8", "replace").decode())
    except ValueError:
        return
    for name, value in sent(jar).items():
        assert (name + value).isprintable()
        assert (name + value).isascii()
        assert ";" not in name + value


def test_overlong_expires_is_ignored():
    assert sent(learned(f"a=1; expires=Mon, 01-Jan-{'9' * 5_000} 00:00:00 GMT")) == {"a": "1"}
