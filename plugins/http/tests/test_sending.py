import pytest
from sideband_http import UrlInvalid
from sideband_http._addresses._url import RequestTarget
from sideband_http._request._building import build_request
from sideband_http._request._cookies import CookieJar
from sideband_http._request._plan import Hop


@pytest.mark.parametrize(
    "target",
    [
        RequestTarget("http", "h.example", 80, "/a/../b"),
        RequestTarget("http", "H.example", 80, "/"),
        RequestTarget("http", "h", 80, "/ü"),
    ],
)
def test_request_that_differs_from_the_checked_url_is_rejected(target):
    with pytest.raises(UrlInvalid, match="different URL"):
        build_request(Hop("GET", target), "agent", CookieJar())
