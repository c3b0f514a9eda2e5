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
def test_nothing_is_sent_that_is_not_what_was_checked(target):
    with pytest.raises(UrlInvalid, match="another one than was checked"):
        build_request(Hop("GET", target), "agent", CookieJar())
