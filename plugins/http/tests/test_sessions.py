import anyio
import pytest
from sideband.ops import OpDenied, OpParamsInvalid
from sideband_http import HttpError, HttpSessionNotFound
from sideband_http._exchange._sessions import OpenSession

pytestmark = pytest.mark.anyio
BOTH_BACKENDS = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])

REQUEST = "http.session_request"


async def run(host, *steps, grants=None):
    return await host.op("flow.run", {"steps": list(steps)}, grants=grants)


def ask(url, **params):
    return REQUEST, {"session_id": "$session", "url": url, **params}


def opening(**params):
    return "http.session_open", params


async def test_cookies_stay_in_the_session(host, server):
    answers = await run(host, opening(), ask(server.url("/setcookie?cookie=a%3D1")), ask(server.url("/echo")))
    assert server.requests[1].headers["cookie"] == "a=1"
    assert "set-cookie" not in answers[1]["headers"]


async def test_sessions_do_not_share_cookies(host, server):
    await run(host, opening(), ask(server.url("/setcookie?cookie=a%3D1")), opening(), ask(server.url("/echo")))
    assert "cookie" not in server.requests[1].headers


async def test_cookie_is_not_sent_to_another_host(host, server):
    elsewhere = server.url("/echo").replace("127.0.0.1", "localhost")
    await run(host, opening(), ask(server.url("/setcookie?cookie=a%3D1")), ask(elsewhere))
    assert "cookie" not in server.requests[1].headers


async def test_secure_cookie_is_not_sent_over_http(host, server):
    await run(host, opening(), ask(server.url("/setcookie?cookie=a%3D1%3B+Secure")), ask(server.url("/echo")))
    assert "cookie" not in server.requests[1].headers


async def test_request_can_override_the_defaults(host, server):
    defaults = opening(headers={"X-A": "1", "X-B": "1"}, cookies={"c": "1", "d": "1"})
    await run(host, defaults, ask(server.url("/echo"), headers={"x-b": "2"}, cookies={"d": "2"}))
    headers = server.requests[0].headers
    assert (headers["x-a"], headers["x-b"], headers["cookie"]) == ("1", "2", "c=1; d=2")


async def test_server_cookie_replaces_an_initial_cookie(host, server):
    await run(
        host, opening(cookies={"a": "old"}), ask(server.url("/setcookie?cookie=a%3Dnew")), ask(server.url("/echo"))
    )
    assert server.requests[1].headers["cookie"] == "a=new"


async def test_urls_are_relative_to_base_url(host, server):
    answers = await run(host, opening(base_url=server.url("/api/v1/")), ask("items?x=1"), ask("/top"))
    assert [one.path for one in server.requests] == ["/api/v1/items?x=1", "/top"]
    assert answers[1]["url"] == server.url("/api/v1/items?x=1")


async def test_defaults_are_not_sent_to_another_origin_than_base_url(host, server, other):
    defaults = opening(base_url=server.origin, headers={"X-A": "1"}, cookies={"c": "1"}, auth="bearer")
    await run(host, defaults, ask("/echo"), ask(other.url("/echo")))
    assert server.requests[0].headers["authorization"] == "Bearer s3cr3t-token-value"
    assert not {"x-a", "cookie", "authorization"} & other.requests[0].headers.keys()


async def test_auth_of_a_session_requires_base_url(host):
    with pytest.raises(OpParamsInvalid, match="base_url"):
        await host.op("http.session_open", {"auth": "bearer"})


async def test_relative_url_without_base_url_is_rejected(host):
    answers = await run(host, opening(), ask("/echo"))
    assert answers[1]["error"] == "http.url"


async def test_each_request_of_a_session_requires_a_grant(host, server):
    grants = ["http:method=POST,network=loopback", "secrets"]
    answers = await run(
        host, opening(), ask(server.url("/echo")), ask(server.url("/echo"), method="post"), grants=grants
    )
    assert answers[1]["error"] == "op.denied"
    assert [one.method for one in server.requests] == ["POST"]


async def test_credential_is_not_resolved_for_a_denied_request_of_a_session(host, server, credentials):
    grants = ["http:host=example.org", "secrets"]
    answers = await run(host, opening(), ask(server.url("/echo"), auth="bearer"), grants=grants)
    assert answers[1]["error"] == "op.denied"
    assert credentials.resolved == []


async def test_session_requires_some_grant(host):
    with pytest.raises(OpDenied):
        await host.op("http.session_open", {}, grants=["secrets"])


async def test_all_parameters_of_a_request_reach_the_server(host, server):
    params = {"params": {"q": 1}, "json": {"a": 1}, "headers": {"X-A": "1"}, "cookies": {"c": "1"}, "auth": "apikey"}
    await run(host, opening(), ask(server.url("/echo"), method="PUT", **params))
    seen = server.requests[0]
    assert (seen.method, seen.path, seen.headers["x-a"]) == ("PUT", "/echo?q=1", "1")
    assert (seen.headers["x-api-key"], seen.headers["cookie"]) == ("s3cr3t-token-value", "c=1")
    assert seen.headers["content-type"] == "application/json"


async def test_limits_of_a_request_apply_in_a_session(host, server):
    answers = await run(
        host,
        opening(),
        ask(server.url("/bytes?count=100"), max_bytes=10),
        ask(server.url("/loop"), max_redirects=1),
        ask(server.url("/loop"), follow_redirects=False),
        ask(server.url("/slow"), timeout=0.1),
    )
    assert [one.get("error", one.get("status")) for one in answers[1:]] == [
        "http.too_large",
        "http.redirects",
        302,
        "http.timeout",
    ]


@BOTH_BACKENDS
async def test_timeout_of_the_session_applies(host, server):
    answers = await run(host, opening(timeout=0.1), ask(server.url("/slow")))
    assert answers[1]["error"] == "http.timeout"


async def test_closed_session_cannot_be_used(host, server):
    answers = await run(
        host,
        opening(),
        ("http.session_close", {"session_id": "$session"}),
        ask(server.url("/echo")),
        ("http.session_close", {"session_id": "$session"}),
    )
    assert answers[1] == {"closed": True}
    assert [one["error"] for one in answers[2:]] == ["http.session", "http.session"]


async def test_session_ends_with_its_call(host):
    opened = await host.op("http.session_open", {})
    state = (await host.broker.ops.plugin("http")).state
    assert opened["session_id"] not in state.sessions.ids()
    assert len(state.sessions.ids()) == 0


@BOTH_BACKENDS
async def test_session_of_another_caller_cannot_be_used(host, server):
    async with anyio.create_task_group() as group:
        group.start_soon(run, host, opening(), ask(server.url("/slow")))
        await anyio.to_thread.run_sync(server.arrived.wait)
        state = (await host.broker.ops.plugin("http")).state
        (theirs_id,) = state.sessions.ids()
        with pytest.raises(HttpSessionNotFound) as caught:
            await host.op(REQUEST, {"session_id": theirs_id, "url": server.url("/echo")})
        with pytest.raises(HttpSessionNotFound):
            await host.op("http.session_close", {"session_id": theirs_id})
        assert len(state.sessions.ids()) == 1
        group.cancel_scope.cancel()
    assert caught.value.code == "http.session"
    assert len(server.requests) == 1
    assert len(state.sessions.ids()) == 0


async def test_sessions_end_with_the_host(open_host):
    async with open_host() as host:
        await host.op("http.session_open", {})
        state = (await host.broker.ops.plugin("http")).state
        session = OpenSession(domain="x", connections=state.new_connections())
        state.sessions.add(session)
    assert len(state.sessions.ids()) == 0
    with pytest.raises(HttpError):
        await session.connections.transport("http", http2=False)


async def test_number_of_open_sessions_is_limited(open_host):
    async with open_host(max_sessions=2) as host:
        answers = await run(host, opening(), opening(), opening())
    assert [one.get("error") for one in answers] == [None, None, "limit.http_sessions"]


async def test_idempotent_request_is_retried_until_it_succeeds(host, server):
    answers = await run(host, opening(retry=2, retry_delay=0), ask(server.url("/flaky?failures=2")))
    assert (answers[1]["status"], answers[1]["body"]) == (200, "at last")
    assert len(server.requests) == 3


async def test_last_response_is_returned_if_retries_fail(host, server):
    answers = await run(host, opening(retry=1, retry_delay=0), ask(server.url("/flaky?failures=5")))
    assert answers[1]["status"] == 503
    assert len(server.requests) == 2


async def test_requests_are_not_retried_by_default(host, server):
    await run(host, opening(), ask(server.url("/flaky?failures=1")))
    assert len(server.requests) == 1


async def test_post_is_not_retried(host, server):
    session = opening(retry=3, retry_delay=0)
    answers = await run(
        host,
        session,
        ask(server.url("/flaky?failures=1"), method="POST"),
        ask(server.url("/hangup?failures=1"), method="POST"),
    )
    assert (answers[1]["status"], answers[2]["error"]) == (503, "http.protocol")
    assert len(server.requests) == 2


async def test_request_is_retried_after_a_lost_connection(host, server):
    answers = await run(host, opening(retry=1, retry_delay=0), ask(server.url("/hangup?failures=1")))
    assert answers[1]["body"] == "at last"


async def test_permanent_error_is_not_retried(host, server):
    await run(host, opening(retry=3, retry_delay=0), ask(server.url("/bytes?count=10"), max_bytes=1))
    assert len(server.requests) == 1


async def test_retry_delay_doubles_with_jitter(host, server, delays):
    await run(host, opening(retry=2, retry_delay=10, timeout=600), ask(server.url("/flaky?failures=2")))
    first, second = delays
    assert 10 <= first <= 15
    assert 20 <= second <= 30


async def test_retry_after_is_observed(host, server, delays):
    await run(host, opening(retry=1, retry_delay=0), ask(server.url("/flaky?failures=1&after=7&code=429")))
    assert delays == [7]


async def test_retry_after_of_an_hour_ends_retrying(host, server):
    answers = await run(host, opening(retry=1, retry_delay=0), ask(server.url("/flaky?failures=1&after=3600")))
    assert answers[1]["status"] == 503
    assert len(server.requests) == 1
