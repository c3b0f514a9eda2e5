"""Previews, reconciliation and undo."""

import hashlib

import pytest
from attrs import evolve
from sideband import Plugin, hookimpl
from sideband.broker import recover
from sideband.hooks import Deny
from sideband.ledger import Intent, find
from sideband.ops import EffectUnknown, Level, OpDenied, Origin

pytestmark = pytest.mark.anyio

GRANT = ("http:host=127.0.0.1", "secrets", "blobs")
TOKEN = "s3cr3t-token-value"


@pytest.fixture
def previews():
    return []


@pytest.fixture
def more_plugins(previews):
    @hookimpl
    async def op_call(event):
        if event.preview is None or not (
            event.params.get("http2") is False or "X-Ask" in event.params.get("headers", {})
        ):
            return None
        previews.append(await event.preview(event.params))
        return Deny("preview only")

    return [Plugin("guard", "watch", type("Guard", (), {"op_call": staticmethod(op_call)}))]


class Ledger:
    """A ledger after a crash, with open intents."""

    def __init__(self, *intents):
        self.intents = intents
        self.outcomes = []

    async def orphans(self):
        return self.intents

    async def outcome(self, entry, *, due):
        self.outcomes.append(entry)


async def do(host, op, effect_key=None, **params):
    """Run an op and return its record in the ledger."""
    reports = []
    await host.op(op, params, key=effect_key, on_effect=reports.append)
    return await find(host.ledger.folder, next(one.id for one in reports if one.op == op))


async def lose(host, record, *, grant=GRANT, key=None, noted=True):
    """Recover the effect as if the host had died during it; return its status and result."""
    intent = Intent(
        effect="dead-1",
        op=record.op,
        key=key,
        params=record.params,
        grant=grant,
        origin=Origin(skill="writer"),
        level=Level.RESTRICTED,
        note=record.note if noted else {},
    )
    ledger = Ledger(intent)
    (recovered,) = await recover(host.broker, ledger, host.broker._claims)
    if key:
        await host.ledger.outcome(evolve(ledger.outcomes[0], effect=record.effect))
    return recovered.status, ledger.outcomes[0].result


@pytest.mark.parametrize(
    ("now", "status"), [(b"what was sent", "done"), (None, "failed"), (b"something else", "unknown")]
)
async def test_lost_put_is_reconciled_with_the_server(host, server, now, status):
    record = await do(host, "http.put", url=server.url("/stored"), body=b"what was sent", params={"q": 1})
    server.stored = now
    assert (await lose(host, record))[0] == status
    assert [one.method for one in server.requests] == ["PUT", "GET"]
    assert server.requests[1].path == "/stored?q=1"


async def test_lost_put_of_a_blob_is_reconciled(host, server):
    blob = await host.blobs.put(b"x" * 2_000_000)
    record = await do(host, "http.request", method="PUT", url=server.url("/stored"), body_blob=blob.sha256)
    assert (await lose(host, record))[0] == "done"


@pytest.mark.parametrize(("now", "status"), [(None, "done"), (b"still there", "failed")])
async def test_lost_delete_is_reconciled_with_the_server(host, server, now, status):
    record = await do(host, "http.delete", url=server.url("/stored"))
    server.stored = now
    assert (await lose(host, record))[0] == status


async def test_server_error_leaves_a_lost_delete_unknown(host, server):
    record = await do(host, "http.delete", url=server.url("/status?code=500"))
    assert (await lose(host, record))[0] == "unknown"


async def test_lost_change_in_a_session_is_reconciled(host, server):
    reports = []
    opening = ("http.session_open", {"base_url": server.origin, "auth": "bearer"})
    ask = ("http.session_request", {"session_id": "$session", "url": "/stored", "method": "PUT", "body": "x"})
    await host.op("flow.run", {"steps": [opening, ask]}, on_effect=reports.append)
    effect = next(one.id for one in reports if one.op == "http.session_request")
    assert (await lose(host, await find(host.ledger.folder, effect)))[0] == "done"
    assert server.requests[1].headers["authorization"] == f"Bearer {TOKEN}"


async def test_reconciliation_requires_a_grant_for_get(host, server):
    record = await do(host, "http.delete", url=server.url("/stored"))
    assert (await lose(host, record, grant=("http:host=127.0.0.1,method=DELETE",)))[0] == "unknown"
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("op", "params"),
    [
        ("http.post", {"idempotency_key": "order-17"}),
        ("http.request", {"method": "PATCH", "idempotency_key": "order-17"}),
        ("http.request", {"method": "GET"}),
        ("http.get", {}),
        ("http.fetch_blob", {}),
    ],
    ids=str,
)
async def test_repeatable_request_may_be_repeated_under_its_key(host, server, op, params):
    params = {"url": server.url("/echo"), **params}
    assert (await lose(host, await do(host, op, "k", **params), key="k"))[0] == "unknown"
    await host.op(op, params, key="k")
    assert len(server.requests) == 2


async def test_lost_post_without_an_idempotency_key_is_not_repeated(host, server):
    params = {"url": server.url("/echo")}
    assert (await lose(host, await do(host, "http.post", "k", **params), key="k"))[0] == "unknown"
    with pytest.raises(EffectUnknown):
        await host.op("http.post", params, key="k")
    assert len(server.requests) == 1


@pytest.mark.parametrize(("now", "status"), [("same", "done"), (None, "failed"), (b"other", "unknown")])
async def test_lost_download_is_reconciled_with_the_file(host, server, now, status):
    record = await do(host, "http.download", url=server.url("/bytes?count=9"), path="x")
    file = host.home / "files/x"
    if now is None:
        file.unlink()
    elif now != "same":
        file.write_bytes(now)
    found, result = await lose(host, record, key="k")
    assert found == status
    if status == "done":
        assert (result["path"], result["bytes"], result["sha256"]) == ("x", 9, hashlib.sha256(b"x" * 9).hexdigest())


async def test_download_lost_before_its_end_did_not_happen(host, server):
    record = await do(host, "http.download", url=server.url("/bytes?count=9"), path="x")
    assert (await lose(host, record, noted=False))[0] == "failed"


async def undo(host, op, **params):
    return await host.plan_undo((await do(host, op, **params)).effect)


async def test_undo_of_a_download_removes_the_file(host, server):
    plan = await undo(host, "http.download", url=server.url("/bytes?count=9"), path="x")
    (step,) = plan.steps
    expected = {"path": "x", "expected": hashlib.sha256(b"x" * 9).hexdigest()}
    assert (step.op, {**step.params, **expected}) == ("files.restore", step.params)
    assert "blob" not in step.params
    assert (host.home / "files/x").exists()


async def test_undo_of_a_download_restores_the_replaced_file(host, server):
    await host.op("http.download", {"url": server.url("/bytes?count=3"), "path": "x"})
    plan = await undo(host, "http.download", url=server.url("/bytes?count=9"), path="x", overwrite=True)
    (step,) = plan.steps
    assert (step.op, step.params["path"], step.params["permissions"]) == ("files.restore", "x", 0o600)
    assert step.params["expected"] == hashlib.sha256(b"x" * 9).hexdigest()
    assert await host.blobs.read(step.params["blob"], max_bytes=3) == b"xxx"


async def test_undo_of_a_download_reports_that_a_large_replaced_file_was_not_kept(host, server):
    await host.op("http.download", {"url": server.url("/bytes?count=17000000"), "path": "x"})
    plan = await undo(host, "http.download", url=server.url("/bytes?count=9"), path="x", overwrite=True)
    assert plan.steps == ()
    assert "was not kept" in plan.remains[0]
    assert "17,000,000 bytes" in plan.remains[0]


@pytest.mark.parametrize("kind", ["link", "folder"])
async def test_undo_of_a_download_does_not_change_what_replaced_the_folder(host, server, tmp_path, kind):
    record = await do(host, "http.download", url=server.url("/bytes?count=9"), path="sub/x")
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "x").write_bytes(b"x" * 9)
    folder = host.home / "files/sub"
    folder.rename(tmp_path / "moved away")
    if kind == "link":
        folder.symlink_to(victim)
    else:
        victim.rename(folder)
    plan = await host.plan_undo(record.effect)
    assert plan.steps == ()
    assert f"`sub` is now {f'a symbolic link to `{victim}`' if kind == 'link' else 'another folder'}" in plan.remains[0]


@pytest.mark.parametrize(("content", "remains"), [(b"changed", "has changed since"), (b"xxx", "nothing to undo")])
async def test_undo_keeps_a_file_that_changed_after_the_download(host, server, content, remains):
    await host.op("http.download", {"url": server.url("/bytes?count=3"), "path": "x"})
    record = await do(host, "http.download", url=server.url("/bytes?count=9"), path="x", overwrite=True)
    (host.home / "files/x").write_bytes(content)
    plan = await host.plan_undo(record.effect)
    assert plan.steps == ()
    assert remains in plan.remains[0]


@pytest.mark.parametrize(
    ("op", "params", "remains"),
    [
        ("http.get", {}, "only read"),
        ("http.request", {"method": "GET"}, "only read"),
        ("http.post", {}, "cannot undo the changes of POST http"),
        ("http.put", {}, "cannot undo the changes of PUT http"),
        ("http.request", {"method": "PATCH"}, "cannot undo the changes of PATCH http"),
        ("http.fetch_blob", {}, "the blob is kept"),
        ("http.download", {"path": "x", "url": "/status?code=404"}, "no file was written"),
    ],
    ids=str,
)
async def test_undo_reports_what_remains(host, server, op, params, remains):
    params = {**params, "url": server.url(params.get("url", "/echo"))}
    plan = await undo(host, op, **params)
    assert plan.steps == ()
    assert remains in plan.remains[0]


PREVIEWS = [
    ("http.get", {"params": {"q": 1}}, "GET {}/echo?q=1"),
    ("http.post", {"json": {"a": 1}, "auth": "bearer"}, "POST {}/echo with 7 bytes of JSON, credential `bearer`"),
    ("http.put", {"body": "ü"}, "PUT {}/echo with 2 bytes of text"),
    ("http.put", {"body": b"xyz"}, "PUT {}/echo with 3 bytes"),
    ("http.patch", {"data": {"a": 1}}, "PATCH {}/echo with 3 bytes of a form"),
    ("http.request", {"method": "delete"}, "DELETE {}/echo"),
    ("http.fetch_blob", {}, "GET {}/echo into a blob"),
    ("http.download", {"path": "new", "auth": "bearer"}, "GET {}/echo, credential `bearer`, into the new file `new`"),
]


async def preview(host, previews, op, params):
    with pytest.raises(OpDenied, match="preview only"):
        await host.op(op, {**params, "http2": False})
    return previews.pop()


async def test_op_has_a_preview(host, server, previews):
    found = []
    for op, params, _ in PREVIEWS:
        text = await preview(host, previews, op, {"url": server.url("/echo"), **params})
        found.append((op, params, text.replace(server.origin, "{}")))
    assert found == PREVIEWS
    assert server.requests == []


async def test_preview_with_a_blob_states_its_size(host, server, previews):
    sha256 = (await host.blobs.put(b"12345")).sha256
    text = await preview(host, previews, "http.put", {"url": server.url("/echo"), "body_blob": sha256})
    assert text == f"PUT {server.origin}/echo with 5 bytes of a blob"


@pytest.mark.parametrize(("overwrite", "effect"), [(True, "replacing the file `x`"), (False, "would fail")])
async def test_preview_of_a_download_mentions_the_existing_file(host, server, previews, overwrite, effect):
    await host.op("http.download", {"url": server.url("/bytes?count=3"), "path": "x"})
    params = {"url": server.url("/echo"), "path": "x", "overwrite": overwrite}
    text = await preview(host, previews, "http.download", params)
    assert "3 bytes" in text
    assert effect in text


async def test_name_of_a_file_in_a_preview_cannot_end_its_quotation(host, server, previews):
    params = {"url": server.url("/echo"), "path": "a`, replacing the file `b"}
    text = await preview(host, previews, "http.download", params)
    assert text.endswith(' into the new file "a`, replacing the file `b"')


async def test_preview_in_a_session_shows_the_full_url(host, server, previews):
    opening = ("http.session_open", {"base_url": server.origin, "auth": "bearer"})
    request = {"url": "/x", "method": "POST", "body": "abc", "headers": {"X-Ask": "1"}}
    requests = [("http.session_request", {"session_id": session_id, **request}) for session_id in ("$session", "none")]
    await host.op("flow.run", {"steps": [opening, *requests]})
    known, unknown = previews
    assert known == f"POST {server.origin}/x with 3 bytes of text, credential `bearer`, in a session"
    assert unknown == "POST /x, in an unknown or closed session"
