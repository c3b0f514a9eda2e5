"""Retries and idempotency keys."""

import anyio
import pytest
from sideband.ops import OpParamsInvalid
from sideband_http import ConnectFailed, HttpError, HttpTimeout, ProtocolFailed

pytestmark = pytest.mark.anyio

AGAIN = {"retry": 3, "retry_delay": 0}


@pytest.mark.parametrize("verb", ["get", "head", "options", "put", "delete"])
async def test_idempotent_method_is_retried(host, server, verb):
    answer = await host.op(f"http.{verb}", {"url": server.url("/flaky?failures=2"), **AGAIN})
    assert answer["status"] == 200
    assert len(server.requests) == 3


@pytest.mark.parametrize("op", ["http.post", "http.patch", "http.request"])
async def test_other_method_is_not_retried(host, server, op):
    params = {"url": server.url("/flaky?failures=2"), **AGAIN}
    answer = await host.op(op, {**params, "method": "POST"} if op == "http.request" else params)
    assert answer["status"] == 503
    assert len(server.requests) == 1


@pytest.mark.parametrize("op", ["http.post", "http.patch", "http.request"])
async def test_request_with_an_idempotency_key_is_retried_with_the_same_key(host, server, op):
    params = {"url": server.url("/flaky?failures=2"), "idempotency_key": "order-17", **AGAIN}
    answer = await host.op(op, {**params, "method": "POST"} if op == "http.request" else params)
    assert answer["status"] == 200
    assert [one.headers["idempotency-key"] for one in server.requests] == ["order-17"] * 3


async def test_post_with_a_key_is_retried_after_a_lost_connection(host, server):
    url = server.url("/hangup?failures=2")
    assert (await host.op("http.post", {"url": url, "idempotency_key": "k", **AGAIN}))["body"] == "at last"
    with pytest.raises(ProtocolFailed) as caught:
        await host.op("http.post", {"url": server.url("/cut"), "idempotency_key": "k"})
    assert caught.value.retryable is True


async def test_session_retries_a_post_with_a_key(host, server):
    ask = {"session_id": "$session", "url": server.url("/flaky?failures=2"), "method": "POST", "idempotency_key": "k"}
    answers = await host.op("flow.run", {"steps": [("http.session_open", AGAIN), ("http.session_request", ask)]})
    assert answers[1]["status"] == 200
    assert [one.headers["idempotency-key"] for one in server.requests] == ["k"] * 3


async def test_idempotency_key_is_not_sent_to_another_origin(host, server, other):
    url = server.url("/redirect?code=303&to=") + other.url("/echo")
    await host.op("http.post", {"url": url, "idempotency_key": "k"})
    assert "idempotency-key" not in other.requests[0].headers


@pytest.mark.parametrize("key", ["", "a b", "a\r\nX-Evil: 1", "ü", "k" * 256, "k\n"])
async def test_invalid_idempotency_key_is_rejected(host, server, key):
    with pytest.raises(OpParamsInvalid):
        await host.op("http.post", {"url": server.url("/echo"), "idempotency_key": key})
    assert server.requests == []


async def test_idempotency_key_and_header_are_rejected(host, server):
    params = {"url": server.url("/echo"), "idempotency_key": "k", "headers": {"Idempotency-Key": "other"}}
    with pytest.raises(HttpError, match="duplicated"):
        await host.op("http.post", params)
    assert server.requests == []


async def test_post_is_retried_if_the_connection_is_refused(host, closed_port, delays):
    with pytest.raises(ConnectFailed) as caught:
        await host.op("http.post", {"url": f"http://127.0.0.1:{closed_port}/", "retry": 2, "retry_delay": 1})
    assert len(delays) == 2
    assert caught.value.retryable is True


async def test_post_is_not_retried_if_the_target_of_its_redirect_refuses_the_connection(host, server, closed_port):
    url = server.url(f"/redirect?code=303&to=http://127.0.0.1:{closed_port}/")
    with pytest.raises(ConnectFailed) as caught:
        await host.op("http.post", {"url": url, **AGAIN})
    assert len(server.requests) == 1
    assert caught.value.retryable is False


async def test_timeout_covers_all_attempts(host, server):
    with anyio.fail_after(10), pytest.raises(HttpTimeout):
        await host.op("http.get", {"url": server.url("/slow"), "timeout": 0.3, **AGAIN})
    assert len(server.requests) == 1


@pytest.mark.parametrize("after", ["5", "1000000000000000000", "Fri, 01 Jan 2999 00:00:00 GMT"])
async def test_retry_after_beyond_the_timeout_ends_retrying(host, server, after):
    url = server.url(f"/flaky?failures=1&after={after.replace(' ', '+')}")
    with anyio.fail_after(4):
        answer = await host.op("http.get", {"url": url, "timeout": 3, **AGAIN})
    assert answer["status"] == 503
    assert len(server.requests) == 1


@pytest.mark.parametrize("after", ["Thu, 01 Jan 1970 00:00:00 GMT", "-1", "now", "0"])
async def test_invalid_or_past_retry_after_is_ignored(host, server, after):
    url = server.url(f"/flaky?failures=1&code=429&after={after.replace(' ', '+')}")
    with anyio.fail_after(4):
        assert (await host.op("http.get", {"url": url, **AGAIN}))["status"] == 200


async def test_permanent_error_is_not_retried(host, server):
    with pytest.raises(HttpError):
        await host.op("http.get", {"url": server.url("/bytes?count=10"), "max_bytes": 1, **AGAIN})
    assert len(server.requests) == 1


async def test_retry_after_over_two_minutes_ends_retrying(host, server):
    ask = {"session_id": "$session", "url": server.url("/flaky?failures=1&after=300")}
    with anyio.fail_after(10):
        answers = await host.op("flow.run", {"steps": [("http.session_open", AGAIN), ("http.session_request", ask)]})
    assert answers[1]["status"] == 503
