import pytest
from sideband_http import RedirectRefused, UrlInvalid
from sideband_http._addresses._url import parse_url
from sideband_http._exchange._redirects import next_hop
from sideband_http._request._plan import Hop


def hop(method="GET", url="https://a.example/x", content=None):
    return Hop(
        method,
        parse_url(url),
        headers={"x-mine": "1", "content-type": "text/plain"},
        cookies={"c": "1"},
        credential={"authorization": "Bearer x"},
        content=content,
    )


@pytest.mark.parametrize(
    ("status", "method", "becomes"),
    [
        (301, "POST", "GET"),
        (302, "POST", "GET"),
        (303, "POST", "GET"),
        (303, "PUT", "GET"),
        (303, "DELETE", "GET"),
        (303, "HEAD", "HEAD"),
        (301, "PUT", "PUT"),
        (302, "DELETE", "DELETE"),
        (307, "POST", "POST"),
        (308, "PATCH", "PATCH"),
        (302, "HEAD", "HEAD"),
    ],
)
def test_the_method_changes_as_in_browsers(status, method, becomes):
    assert next_hop(hop(method), status, "/y").method == becomes


def test_body_is_dropped_if_the_method_becomes_get():
    following = next_hop(hop("POST", content=b"body"), 302, "/y")
    assert following.content is None
    assert following.headers == {"x-mine": "1"}


def test_body_is_kept_if_the_method_is_kept():
    assert next_hop(hop("POST", content=b"body"), 307, "/y").content == b"body"


def test_redirect_within_the_origin_keeps_everything():
    following = next_hop(hop(), 302, "/y?z")
    assert following.target.url == "https://a.example/y?z"
    assert (following.credential, following.cookies) == ({"authorization": "Bearer x"}, {"c": "1"})
    assert "x-mine" in following.headers


@pytest.mark.parametrize("location", ["https://b.example/", "https://a.example:8443/", "//b.example/"])
def test_redirect_to_another_origin_drops_headers_cookies_and_credential(location):
    following = next_hop(hop(), 302, location)
    assert (following.headers, following.cookies, following.credential) == ({}, {}, {})


def test_body_is_not_sent_to_another_origin():
    with pytest.raises(RedirectRefused) as caught:
        next_hop(hop("POST", content=b"body"), 307, "https://b.example/")
    assert caught.value.code == "http.redirect_body"


def test_redirect_from_https_to_http_is_refused():
    with pytest.raises(RedirectRefused) as caught:
        next_hop(hop(), 302, "http://a.example/")
    assert caught.value.code == "http.downgrade"


def test_redirect_from_http_to_https_drops_the_credential():
    following = next_hop(hop(url="http://a.example/"), 301, "https://a.example/")
    assert following.target.scheme == "https"
    assert following.credential == {}


@pytest.mark.parametrize("location", ["file:///etc/passwd", "javascript:alert(1)", "http://u:p@b.example/", "/a b"])
def test_invalid_location_is_refused(location):
    with pytest.raises(UrlInvalid):
        next_hop(hop(), 302, location)


@pytest.mark.parametrize(("status", "location"), [(200, "/y"), (304, "/y"), (300, "/y"), (302, None)])
def test_other_responses_are_not_redirects(status, location):
    assert next_hop(hop(), status, location) is None
