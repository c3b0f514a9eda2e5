import pytest
from sideband_http import (
    AuthoritiesInvalid,
    ConnectFailed,
    ContentInvalid,
    HttpTimeout,
    ProtocolFailed,
    ResponseTooLarge,
    TlsFailed,
)

pytestmark = pytest.mark.anyio
BOTH_BACKENDS = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])


async def failure(host, kind, url, op="http.get", **params):
    with pytest.raises(kind) as caught:
        await host.op(op, {"url": url, **params})
    return caught.value


@BOTH_BACKENDS
async def test_refused_connection_is_retryable(host, closed_port):
    error = await failure(host, ConnectFailed, f"http://127.0.0.1:{closed_port}/")
    assert (error.code, error.retryable) == ("http.connect", True)
    assert str(closed_port) in error.message


async def test_unknown_host_is_a_connect_error(host):
    error = await failure(host, ConnectFailed, "http://nowhere.invalid/")
    assert error.code == "http.connect"


@BOTH_BACKENDS
@pytest.mark.parametrize("path", ["/slow", "/slowbody"])
async def test_slow_server_is_a_timeout(host, server, path):
    error = await failure(host, HttpTimeout, server.url(path), timeout=0.2)
    assert (error.code, error.retryable) == ("http.timeout", True)


async def test_server_that_trickles_data_is_a_timeout(host, server):
    url = server.url("/trickle")
    await failure(host, HttpTimeout, url, timeout=0.2)
    await failure(host, HttpTimeout, url, op="http.download", path="x", timeout=0.2)
    steps = [("http.session_open", {"timeout": 0.2}), ("http.session_request", {"session_id": "$session", "url": url})]
    answers = await host.op("flow.run", {"steps": steps})
    assert answers[1]["error"] == "http.timeout"


async def test_timeout_of_a_post_is_not_retryable(host, server):
    error = await failure(host, HttpTimeout, server.url("/slow"), op="http.post", timeout=0.2)
    assert error.retryable is False


@BOTH_BACKENDS
@pytest.mark.parametrize("path", ["/garbage", "/cut"])
async def test_lost_connection_is_a_retryable_protocol_error(host, server, path):
    error = await failure(host, ProtocolFailed, server.url(path))
    assert (error.code, error.retryable) == ("http.protocol", True)


async def test_lost_connection_of_a_post_is_not_retryable(host, server):
    error = await failure(host, ProtocolFailed, server.url("/cut"), op="http.post")
    assert error.retryable is False


@BOTH_BACKENDS
@pytest.mark.parametrize("path", ["/bytes?count=1001", "/chunked?count=2", "/gzip?count=5000000"])
async def test_body_over_the_limit_is_an_error(host, server, path):
    error = await failure(host, ResponseTooLarge, server.url(path), max_bytes=1000)
    assert error.code == "http.too_large"


async def test_body_at_the_limit_is_accepted(host, server):
    answer = await host.op("http.get", {"url": server.url("/bytes?count=1000"), "max_bytes": 1000})
    assert answer["body_length"] == 1000


@BOTH_BACKENDS
async def test_headers_over_the_limit_are_an_error(host, server):
    await failure(host, ResponseTooLarge, server.url("/manyheaders"))


async def test_invalid_compression_is_an_error(host, server):
    error = await failure(host, ContentInvalid, server.url("/badgzip"))
    assert error.code == "http.content"


async def test_body_with_unknown_compression_is_returned_unchanged(host, server):
    answer = await host.op("http.get", {"url": server.url("/brotli")})
    assert (answer["bytes"], answer["content_encoding"]) == (b"\x8b\x02\x80hello", "br")


@BOTH_BACKENDS
async def test_untrusted_certificate_is_a_tls_error(host, tls_server):
    error = await failure(host, TlsFailed, tls_server.url("/echo"))
    assert (error.code, error.retryable) == ("http.tls", False)
    assert "ca_file" in error.hint
    assert tls_server.requests == []


@BOTH_BACKENDS
async def test_certificate_for_another_name_is_a_tls_error(open_host, tls_server, ca_file):
    async with open_host(ca_file=str(ca_file)) as host:
        url = f"https://localhost:{tls_server.port}/echo"
        error = await failure(host, TlsFailed, url)
    assert error.code == "http.tls"


@BOTH_BACKENDS
async def test_unencrypted_server_on_https_is_a_tls_error(host, server):
    error = await failure(host, TlsFailed, server.url("/echo").replace("http://", "https://"), timeout=5)
    assert error.code == "http.tls"


@BOTH_BACKENDS
async def test_configured_authority_is_trusted(open_host, tls_server, ca_file):
    async with open_host(ca_file=str(ca_file)) as host:
        answer = await host.op("http.get", {"url": tls_server.url("/echo")})
    assert answer["status"] == 200


@pytest.mark.parametrize(
    ("content", "problem"), [(None, "No such file"), ("not a certificate", "contains no certificate")]
)
async def test_invalid_ca_file_is_an_error(open_host, tls_server, tmp_path, content, problem):
    path = tmp_path / "authorities.pem"
    if content is not None:
        path.write_text(content)
    async with open_host(ca_file=str(path)) as host:
        error = await failure(host, AuthoritiesInvalid, tls_server.url("/echo"))
    assert (error.code, error.nothing_happened) == ("http.ca_file", True)
    assert problem in error.message
    assert "PEM" in error.hint
    assert tls_server.requests == []


async def test_authorities_from_the_environment_are_not_trusted(host, tls_server, ca_file, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(ca_file))
    await failure(host, TlsFailed, tls_server.url("/echo"))


@BOTH_BACKENDS
@pytest.mark.parametrize("path", ["/chunked?count=500", "/gzip?count=9000000"])
async def test_partially_read_body_leaves_nothing_to_the_garbage_collector(host, server, path, collect_garbage):
    for _ in range(3):
        with pytest.raises(ResponseTooLarge):
            await host.op("http.get", {"url": server.url(path), "max_bytes": 50_000})
        collect_garbage()
