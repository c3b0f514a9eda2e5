import httpx
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


def test_a_server_can_not_fill_the_memory_with_cookies():
    jar = CookieJar()
    request = httpx.Request("GET", "http://h.example/")
    for number in range(400):
        jar.learn(httpx.Response(200, headers={"set-cookie": f"c{number}=1"}, request=request))
    assert len(jar.cookies_for(request)) == 300
