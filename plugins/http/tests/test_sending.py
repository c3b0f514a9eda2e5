import pytest
from sideband_http import UrlInvalid
from sideband_http._cookies import CookieJar
from sideband_http._exchange import Plan, _request
from sideband_http._redirects import Hop
from sideband_http._url import Target


@pytest.mark.parametrize(
    "target",
    [Target("http", "h.example", 80, "/a/../b"), Target("http", "H.example", 80, "/"), Target("http", "h", 80, "/ü")],
)
def test_nothing_is_sent_that_is_not_what_was_checked(target):
    with pytest.raises(UrlInvalid, match="another one than was checked"):
        _request(Hop("GET", target), Plan("GET", target, "agent"), CookieJar())
