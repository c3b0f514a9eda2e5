"""Requests that are made again, and those that must not be."""

import anyio
import pytest
from sideband.ops import OpParamsInvalid
from sideband_http import ConnectFailed, HttpError, HttpTimeout, ProtocolFailed

pytestmark = pytest.mark.anyio

AGAIN = {"retry": 3, "retry_delay": 0}


@pytest.mark.parametrize("verb", ["get", "head", "options", "put", "delete"])
async def test_what_is_the_same_twice_is_repeated(host, server, verb):
    answer = await host.op(f"http.{verb}", {"url": server.url("/flaky?failures=2"), **AGAIN})
    assert answer["status"] == 200
    assert len(server.seen) == 3


@pytest.mark.parametrize("op", ["http.post", "http.patch", "http.request"])
async def test_what_is_not_the_same_twice_is_not_repeated(host, server, op):
    params = {"url": server.url("/flaky?failures=2"), **AGAIN}
    answer = await host.op(op, {**params, "method": "POST"} if op == "http.request" else params)
    assert answer["status"] == 503
    assert len(server.seen) == 1


@pytest.mark.parametrize("op", ["http.post", "http.patch", "http.request"])
async def test_with_a_key_it_is_repeated_with_the_same_one(host, server, op):
    params = {"url": server.url("/flaky?failures=2"), "idempotency_key": "order-17", **AGAIN}
    answer = await host.op(op, {**params, "method": "POST"} if op == "http.request" else params)
    assert answer["status"] == 200
    assert [one["headers"]["idempotency-key"] for one in server.seen] == ["order-17"] * 3


async def test_with_a_key_a_post_that_broke_off_is_repeated(host, server):
    url = server.url("/hangup?failures=2")
    assert (await host.op("http.post", {"url": url, "idempotency_key": "k", **AGAIN}))["body"] == "at last"
    with pytest.raises(ProtocolFailed) as caught:
        await host.op("http.post", {"url": server.url("/cut"), "idempotency_key": "k"})
    assert caught.value.retryable is True


async def test_a_session_repeats_with_a_key_too(host, server):
    ask = {"session_id": "$session", "url": server.url("/flaky?failures=2"), "method": "POST", "idempotency_key": "k"}
    answers = await host.op("flow.run", {"steps": [("http.session_open", AGAIN), ("http.session_request", ask)]})
    assert answers[1]["status"] == 200
    assert [one["headers"]["idempotency-key"] for one in server.seen] == ["k"] * 3


async def test_a_key_does_not_go_to_another_origin(host, server, other):
    url = server.url("/redirect?code=303&to=") + other.url("/echo")
    await host.op("http.post", {"url": url, "idempotency_key": "k"})
    assert "idempotency-key" not in other.seen[0]["headers"]


@pytest.mark.parametrize("key", ["", "a b", "a\r\nX-Evil: 1", "ü", "k" * 256, "k\n"])
async def test_a_key_that_is_no_proper_one_is_refused(host, server, key):
    with pytest.raises(OpParamsInvalid):
        await host.op("http.post", {"url": server.url("/echo"), "idempotency_key": key})
    assert server.seen == []


async def test_a_key_beside_a_header_of_that_name_is_refused(host, server):
    params = {"url": server.url("/echo"), "idempotency_key": "k", "headers": {"Idempotency-Key": "other"}}
    with pytest.raises(HttpError, match="twice"):
        await host.op("http.post", params)
    assert server.seen == []


async def test_a_post_that_reached_nobody_is_repeated(host, closed_port):
    started = anyio.current_time()
    with pytest.raises(ConnectFailed) as caught:
        await host.op("http.post", {"url": f"http://127.0.0.1:{closed_port}/", "retry": 2, "retry_delay": 0.1})
    assert anyio.current_time() - started >= 0.3
    assert caught.value.retryable is True


async def test_a_post_that_was_answered_by_a_redirect_to_nobody_is_not_repeated(host, server, closed_port):
    url = server.url(f"/redirect?code=303&to=http://127.0.0.1:{closed_port}/")
    with pytest.raises(ConnectFailed) as caught:
        await host.op("http.post", {"url": url, **AGAIN})
    assert len(server.seen) == 1
    assert caught.value.retryable is False


async def test_all_attempts_have_the_time_of_one_request(host, server):
    with anyio.fail_after(10), pytest.raises(HttpTimeout):
        await host.op("http.get", {"url": server.url("/slow"), "timeout": 0.3, **AGAIN})
    assert len(server.seen) == 1


@pytest.mark.parametrize("after", ["5", "1000000000000000000", "Fri, 01 Jan 2999 00:00:00 GMT"])
async def test_a_server_that_asks_for_more_time_than_there_is_is_not_waited_for(host, server, after):
    url = server.url(f"/flaky?failures=1&after={after.replace(' ', '+')}")
    with anyio.fail_after(4):
        answer = await host.op("http.get", {"url": url, "timeout": 3, **AGAIN})
    assert answer["status"] == 503
    assert len(server.seen) == 1


@pytest.mark.parametrize("after", ["Thu, 01 Jan 1970 00:00:00 GMT", "-1", "now", "0"])
async def test_a_time_in_the_past_is_no_wait(host, server, after):
    url = server.url(f"/flaky?failures=1&code=429&after={after.replace(' ', '+')}")
    with anyio.fail_after(4):
        assert (await host.op("http.get", {"url": url, **AGAIN}))["status"] == 200


async def test_a_request_that_can_not_be_mended_is_not_repeated(host, server):
    with pytest.raises(HttpError):
        await host.op("http.get", {"url": server.url("/bytes?count=10"), "max_bytes": 1, **AGAIN})
    assert len(server.seen) == 1


async def test_nobody_is_waited_for_longer_than_two_minutes(host, server):
    ask = {"session_id": "$session", "url": server.url("/flaky?failures=1&after=300")}
    with anyio.fail_after(10):
        answers = await host.op("flow.run", {"steps": [("http.session_open", AGAIN), ("http.session_request", ask)]})
    assert answers[1]["status"] == 503
