import hashlib
import resource

import anyio
import pytest
from sideband.ops import OpDenied
from sideband_confined_files import FileFailed, FileRefused, FileTaken
from sideband_http import HttpError

pytestmark = pytest.mark.anyio
BOTH_BACKENDS = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])


def files(host):
    root = host.home / "files"
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


async def fetch(host, url, path="data/x.bin", grants=None, **params):
    return await host.op("http.download", {"url": url, "path": path, **params}, grants=grants)


async def test_body_is_saved_as_a_file(host, server):
    answer = await fetch(host, server.url("/bytes?count=3000000"))
    content = (host.home / "files/data/x.bin").read_bytes()
    assert content == b"x" * 3_000_000
    assert (answer["status"], answer["path"], answer["bytes"]) == (200, "data/x.bin", 3_000_000)
    assert answer["sha256"] == hashlib.sha256(content).hexdigest()
    assert files(host) == ["data/x.bin"]


async def test_body_is_decompressed(host, server):
    answer = await fetch(host, server.url("/gzip?count=5000"))
    assert answer["bytes"] == 5000


async def test_progress_is_reported(host, server):
    reports = []
    params = {"url": server.url("/bytes?count=3000000"), "path": "x"}
    await host.op("http.download", params, on_progress=reports.append)
    *reports, closed = reports
    assert closed.closed
    assert [one.total for one in reports] == [3_000_000] * len(reports)
    assert reports[-1].current >= 2_000_000


async def test_error_status_writes_no_file(host, server):
    answer = await fetch(host, server.url("/status?code=404"))
    assert (answer["status"], answer["path"], answer["sha256"]) == (404, None, None)
    assert files(host) == []


@BOTH_BACKENDS
@pytest.mark.parametrize(
    ("path", "code"),
    [("/bytes?count=101", "http.too_large"), ("/gzip?count=5000000", "http.too_large"), ("/cut", "http.protocol")],
)
async def test_failed_download_leaves_no_file(host, server, path, code):
    with pytest.raises(HttpError) as caught:
        await fetch(host, server.url(path), max_bytes=100)
    assert caught.value.code == code
    assert files(host) == []


async def test_full_disk_leaves_no_file(host, server):
    await fetch(host, server.url("/bytes?count=10"), path="warm")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, hard))
    try:
        with pytest.raises(FileFailed):
            await fetch(host, server.url("/bytes?count=5000000"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert files(host) == ["warm"]


@BOTH_BACKENDS
async def test_timed_out_download_leaves_no_file(host, server):
    with pytest.raises(TimeoutError):
        await fetch(host, server.url("/slowbody"), timeout=0.2)
    assert files(host) == []


@BOTH_BACKENDS
async def test_cancelled_download_leaves_no_file(host, server):
    async with anyio.create_task_group() as group:
        group.start_soon(fetch, host, server.url("/slowbody"))
        await anyio.to_thread.run_sync(server.arrived.wait)
        group.cancel_scope.cancel()
    assert files(host) == []


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", ".ssh/x", ""])
async def test_path_outside_the_folder_is_rejected(host, server, path):
    with pytest.raises(FileRefused):
        await fetch(host, server.url("/echo"), path=path)
    assert server.requests == []


async def test_file_is_replaced_only_with_overwrite(host, server):
    await fetch(host, server.url("/bytes?count=1"))
    with pytest.raises(FileTaken):
        await fetch(host, server.url("/bytes?count=2"))
    assert (await fetch(host, server.url("/bytes?count=2"), overwrite=True))["bytes"] == 2
    assert (host.home / "files/data/x.bin").read_bytes() == b"xx"


async def test_grant_may_limit_the_file(host, server):
    grants = ["http:file=data/*,network=loopback", "files:mode=write"]
    assert (await fetch(host, server.url("/echo"), grants=grants))["ok"]
    with pytest.raises(OpDenied):
        await fetch(host, server.url("/echo"), path="other/x", grants=grants)


async def test_download_requires_the_right_to_write_its_file(host, server):
    for missing in ((), ("files:mode=read",), ("files:path=other/*,mode=write",)):
        with pytest.raises(OpDenied, match="`files:"):
            await fetch(host, server.url("/echo"), grants=["http:network=loopback", *missing])
    assert server.requests == []
    grants = ["http:network=loopback", "files:path=data/*,mode=write"]
    with pytest.raises(OpDenied, match="`files:"):
        await fetch(host, server.url("/echo"), path="other/x", grants=grants)
    assert (await fetch(host, server.url("/echo"), grants=grants))["ok"]


async def test_redirected_download_requires_a_grant_and_does_not_forward_secrets(host, server, other):
    url = server.url("/redirect?to=") + other.url("/echo")
    with pytest.raises(OpDenied):
        await fetch(host, url, grants=[f"http:port={server.port},network=loopback", "files:mode=write"])
    assert other.requests == []
    await fetch(host, url, auth="bearer", headers={"X-A": "1"}, cookies={"c": "1"})
    assert not {"authorization", "x-a", "cookie"} & other.requests[0].headers.keys()


async def test_all_parameters_reach_the_server(host, server):
    await fetch(host, server.url("/text"), params={"q": 1}, headers={"X-A": "1"}, cookies={"c": "1"}, auth="apikey")
    seen = server.requests[0]
    assert (seen.path, seen.headers["x-a"], seen.headers["cookie"]) == ("/text?q=1", "1", "c=1")
    assert seen.headers["x-api-key"] == "s3cr3t-token-value"


async def test_redirects_can_be_disabled_and_limited(host, server):
    answer = await fetch(host, server.url("/redirect?to=/echo"), follow_redirects=False)
    assert (answer["status"], answer["path"]) == (302, None)
    with pytest.raises(RuntimeError, match="more than 1"):
        await fetch(host, server.url("/loop"), max_redirects=1)
