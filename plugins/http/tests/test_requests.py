import base64
import json

import anyio
import pytest
from sideband.ops import OpDenied, OpParamsInvalid
from sideband_http import HeaderRefused

pytestmark = pytest.mark.anyio
BOTH_BACKENDS = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])


def seen(answer):
    return answer["json"]


async def test_equal_responses_have_equal_results(host, server):
    first, second = [await host.op("http.get", {"url": server.url("/echo?a=1")}) for _ in range(2)]
    for one in (first, second):
        one["headers"].pop("date", None)
    assert first == second


async def test_response_has_all_fields(host, server):
    answer = await host.op("http.get", {"url": server.url("/echo?a=1")})
    assert answer["status"] == 200
    assert answer["ok"] is True
    assert answer["url"] == server.url("/echo?a=1")
    assert answer["headers"]["content-type"] == "application/json"
    assert answer["json"] == json.loads(answer["body"])
    assert answer["bytes"] is None
    assert answer["body_length"] == len(answer["body"])
    assert answer["content_encoding"] is None
    assert answer["http_version"] == "HTTP/1.1"
    assert answer["redirects"] == []
    assert seen(answer)["headers"]["user-agent"].startswith("sideband/")


@BOTH_BACKENDS
@pytest.mark.parametrize("verb", ["get", "post", "put", "patch", "delete", "options"])
async def test_each_op_sends_its_method(host, server, verb):
    assert seen(await host.op(f"http.{verb}", {"url": server.url("/echo")}))["method"] == verb.upper()


async def test_head_returns_headers_without_a_body(host, server):
    answer = await host.op("http.head", {"url": server.url("/bytes?count=1000"), "max_bytes": 10})
    assert answer["headers"]["content-length"] == "1000"
    assert answer["body"] == ""


async def test_request_accepts_any_method_in_any_case(host, server):
    answer = await host.op("http.request", {"url": server.url("/echo"), "method": "propfind"})
    assert seen(answer)["method"] == "PROPFIND"


async def test_default_method_of_request_is_get(host, server):
    assert seen(await host.op("http.request", {"url": server.url("/echo")}))["method"] == "GET"


UNSUPPORTED = [
    "CONNECT",
    "TRACE",
    "TRACK",
    "PRI",
    "trace",
    "Track",
    "pri",
    "pr\u0131",
    "TRACK ",
    "GET /x",
    "GET\r\n",
    "",
]


@pytest.mark.parametrize("method", UNSUPPORTED)
async def test_unsupported_method_is_rejected(host, server, method):
    with pytest.raises(OpParamsInvalid):
        await host.op("http.request", {"url": server.url("/echo"), "method": method})
    with pytest.raises(OpParamsInvalid):
        await host.op("http.session_request", {"session_id": "s", "url": server.url("/echo"), "method": method})
    assert server.requests == []


@pytest.mark.parametrize(
    "header", ["X-HTTP-Method-Override", "x_http_method_override", "X-HTTP-Method", "X-Method-Override"]
)
async def test_header_that_names_an_unsupported_method_is_rejected(host, server, header):
    for method in ("TRACE", "track", " Pri", "CONNECT\t"):
        with pytest.raises(HeaderRefused):
            await host.op("http.post", {"url": server.url("/echo"), "headers": {header: method}})
    assert server.requests == []
    await host.op("http.post", {"url": server.url("/echo"), "headers": {header: "PATCH"}})
    assert len(server.requests) == 1


async def test_params_are_added_to_the_query(host, server):
    params = {"q": "a b&c", "n": 1, "yes": True, "many": ["x", "y"], "none": None}
    answer = await host.op("http.get", {"url": server.url("/echo?first=1"), "params": params})
    assert seen(answer)["path"] == "/echo?first=1&q=a+b%26c&n=1&yes=true&many=x&many=y"


async def test_headers_are_sent(host, server):
    answer = await host.op("http.get", {"url": server.url("/echo"), "headers": {"X-Mine": "1", "User-Agent": "me"}})
    assert seen(answer)["headers"]["x-mine"] == "1"
    assert seen(answer)["headers"]["user-agent"] == "me"


@pytest.mark.parametrize("headers", [{"Host": "evil.test"}, {"X": "a\r\nY: b"}, {"Content-Length": "0"}], ids=str)
async def test_reserved_or_invalid_header_is_rejected(host, server, headers):
    with pytest.raises(ValueError, match="header") as caught:
        await host.op("http.get", {"url": server.url("/echo"), "headers": headers})
    assert caught.value.code == "http.header"
    assert server.requests == []


async def test_cookies_are_sent(host, server):
    await host.op("http.get", {"url": server.url("/echo"), "cookies": {"a": "1", "b": "2"}})
    assert server.requests[0].headers["cookie"] == "a=1; b=2"


@BOTH_BACKENDS
@pytest.mark.parametrize(
    ("content", "kind", "sent"),
    [
        ({"json": {"a": ["ü", None]}}, "application/json", '{"a":["ü",null]}'.encode()),
        ({"json": None}, "application/json", b"null"),
        ({"data": {"a": "b c", "n": 2}}, "application/x-www-form-urlencoded", b"a=b+c&n=2"),
        ({"body": "grüß"}, "text/plain; charset=utf-8", "grüß".encode()),
        ({"body": b"\x00\xff"}, "application/octet-stream", b"\x00\xff"),
        ({"body": "<a/>", "headers": {"Content-Type": "text/xml"}}, "text/xml", b"<a/>"),
    ],
    ids=str,
)
async def test_each_kind_of_body_is_sent(host, server, content, kind, sent):
    await host.op("http.post", {"url": server.url("/echo"), **content})
    assert server.requests[0].headers["content-type"] == kind
    assert server.requests[0].body == sent


async def test_two_bodies_are_rejected(host, server):
    with pytest.raises(OpParamsInvalid, match="json and body"):
        await host.op("http.post", {"url": server.url("/echo"), "json": 1, "body": "x"})


@pytest.mark.parametrize("data", [float("nan"), {"a": b"bytes"}, "\ud800"])
async def test_data_that_is_not_json_is_rejected(host, server, data):
    with pytest.raises(OpParamsInvalid):
        await host.op("http.post", {"url": server.url("/echo"), "json": data})
    assert server.requests == []


@pytest.mark.parametrize("code", [204, 304, 404, 500])
async def test_status_is_returned_and_not_raised(host, server, code):
    answer = await host.op("http.get", {"url": server.url(f"/status?code={code}")})
    assert (answer["status"], answer["ok"]) == (code, code < 300)


async def test_text_is_decoded_with_its_charset(host, server):
    answer = await host.op(
        "http.get", {"url": server.url("/text"), "params": {"as": "latin-1", "kind": "text/plain; charset=latin-1"}}
    )
    assert answer["body"] == "grüß"


async def test_binary_body_is_returned_as_bytes(host, server):
    body = base64.b64encode(b"\x89PNG\xff\xfe").decode()
    answer = await host.op("http.get", {"url": server.url("/raw"), "params": {"body": body}})
    assert (answer["body"], answer["bytes"], answer["body_length"]) == (None, b"\x89PNG\xff\xfe", 6)


async def test_invalid_json_is_returned_as_text_only(host, server):
    texts = ["{broken", "NaN", '"\\ud800"', "[" * 100 + "]" * 100, "[" * 100_000, "1" * 5000]
    responses = []
    for text in texts:
        server.reply(text.encode(), kind="application/problem+json", path="/given")
        responses.append(await host.op("http.get", {"url": server.url("/given")}))
    assert [(one["json"], one["body"]) for one in responses] == [(None, text) for text in texts]


async def test_repeated_headers_are_joined_and_set_cookie_is_removed(host, server):
    answer = await host.op("http.get", {"url": server.url("/repeated")})
    assert answer["headers"]["x-many"] == "1, 2"
    assert "set-cookie" not in answer["headers"]


async def test_body_is_decompressed(host, server):
    answer = await host.op("http.get", {"url": server.url("/gzip?count=1000")})
    assert answer["body"] == "\0" * 1000
    assert answer["content_encoding"] == "gzip"
    assert (await host.op("http.get", {"url": server.url("/deflate")}))["body"] == "deflated"


@BOTH_BACKENDS
async def test_requests_are_concurrent(host, server):
    answers = []

    async def fetch():
        answers.append(await host.op("http.get", {"url": server.url("/together")}))

    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(fetch)
    assert [answer["body"] for answer in answers] == ["together"] * 3


async def test_cookies_are_not_kept_between_requests(host, server):
    await host.op("http.get", {"url": server.url("/setcookie?cookie=a%3D1")})
    await host.op("http.get", {"url": server.url("/echo")})
    assert "cookie" not in server.requests[1].headers


@BOTH_BACKENDS
async def test_request_after_a_cancelled_one_succeeds(host, server):
    async with anyio.create_task_group() as group:
        group.start_soon(host.op, "http.get", {"url": server.url("/slow")})
        await anyio.to_thread.run_sync(server.arrived.wait)
        group.cancel_scope.cancel()
    assert (await host.op("http.get", {"url": server.url("/echo")}))["status"] == 200


async def test_proxies_from_the_environment_are_ignored(host, server, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert (await host.op("http.get", {"url": server.url("/echo")}))["status"] == 200


async def test_configured_user_agent_is_sent(open_host, server):
    async with open_host(user_agent="team/1.0") as host:
        await host.op("http.get", {"url": server.url("/echo")})
    assert server.requests[0].headers["user-agent"] == "team/1.0"


@BOTH_BACKENDS
async def test_number_of_connections_is_limited(open_host, server):
    async with open_host(max_connections=1) as host, anyio.create_task_group() as group:
        group.start_soon(host.op, "http.get", {"url": server.url("/slow")})
        await anyio.to_thread.run_sync(server.arrived.wait)
        with pytest.raises(TimeoutError) as caught:
            await host.op("http.get", {"url": server.url("/echo"), "timeout": 0.2})
        group.cancel_scope.cancel()
    assert caught.value.code == "http.timeout"
    assert len(server.requests) == 1


NOT_COVERING = [
    "http:scheme=https,network=loopback",
    "http:host=127.0.0.2",
    "http:port=1,network=loopback",
    "http:method=POST,network=loopback",
    "http:path=/other/*,network=loopback",
    "http:path=/echo/*,network=loopback",
    "http:file=x",
]


async def test_each_field_of_a_grant_is_checked(host, server, code_of):
    request = {"url": server.url("/echo")}
    codes = {grant: await code_of(host.op("http.get", request, grants=[grant])) for grant in NOT_COVERING}
    assert codes == dict.fromkeys(NOT_COVERING, "op.denied")
    assert server.requests == []


async def test_request_with_a_covering_grant_is_sent(host, server):
    grant = f"http:scheme=http,host=127.0.0.1,port={server.port},method=GET,path=/echo"
    answer = await host.op("http.get", {"url": server.url("/x/../echo")}, grants=[grant])
    assert seen(answer)["path"] == "/echo"


async def test_dot_segments_cannot_escape_the_granted_path(host, server):
    for path in ("/public/../private", "/public/%2e%2e/private"):
        with pytest.raises(OpDenied):
            await host.op("http.get", {"url": server.url(path)}, grants=["http:path=/public/*,network=loopback"])
    with pytest.raises(ValueError, match="hides"):
        await host.op(
            "http.get", {"url": server.url("/public/..%2fprivate")}, grants=["http:path=/public/*,network=loopback"]
        )
    assert server.requests == []


async def test_invalid_url_is_rejected(host):
    with pytest.raises(ValueError, match="scheme") as caught:
        await host.op("http.get", {"url": "file:///etc/passwd"})
    assert caught.value.code == "http.url"


@BOTH_BACKENDS
async def test_cancellation_is_not_swallowed(host, server):
    with anyio.move_on_after(0.2) as scope:
        await host.op("http.get", {"url": server.url("/slow")})
    assert scope.cancelled_caught


async def test_ops_have_their_documented_levels(host):
    levels = {}
    for verb in ("get", "head", "options", "put", "delete", "post", "patch", "request", "download", "session_open"):
        bound = await host.broker.ops.get(f"http.{verb}")
        levels[verb] = (bound.spec.level.name, bound.spec.idempotent)
    assert levels == {
        "get": ("CONTROLLED", True),
        "head": ("CONTROLLED", True),
        "options": ("CONTROLLED", True),
        "put": ("CONTROLLED", True),
        "delete": ("CONTROLLED", True),
        "post": ("RESTRICTED", False),
        "patch": ("RESTRICTED", False),
        "request": ("RESTRICTED", False),
        "download": ("CONTROLLED", False),
        "session_open": ("SAFE", True),
    }


@pytest.mark.parametrize(
    ("http2", "version"), [({}, "HTTP/2"), ({"http2": True}, "HTTP/2"), ({"http2": False}, "HTTP/1.1")]
)
async def test_http2_parameter_selects_the_protocol(open_host, http2_server, ca_file, http2, version):
    async with open_host(ca_file=str(ca_file), transport="auto") as host:
        answer = await host.op("http.get", {"url": http2_server.url("/echo"), **http2})
        steps = [
            ("http.session_open", http2),
            ("http.session_request", {"session_id": "$session", "url": http2_server.url("/echo")}),
        ]
        in_session = (await host.op("flow.run", {"steps": steps}))[1]
    assert (answer["http_version"], in_session["http_version"]) == (version, version)
