from random import Random

import pytest
from sideband.blobs import BlobDamaged, BlobMissing, BlobTooLarge
from sideband.ops import EgressRefused, OpDenied, OpParamsInvalid
from sideband_blobs import BlobsFull, BlobsNotText

pytestmark = pytest.mark.anyio
UNKNOWN = "0" * 64


async def test_stored_blob_is_returned_by_digest(blobs, digest):
    stored = await blobs.put(content=b"\xff\0data")
    assert stored == {"sha256": digest(b"\xff\0data"), "size": 6}
    got = await blobs.get(sha256=stored["sha256"])
    assert got == {**stored, "content": b"\xff\0data", "next": None}
    assert await blobs.stat(sha256=stored["sha256"]) == stored


async def test_text_and_base64_are_stored_as_bytes(blobs, digest):
    assert (await blobs.put(content="größe"))["sha256"] == digest("größe")
    assert (await blobs.put(base64="Z3LDtsOfZQ=="))["sha256"] == digest("größe")
    assert (await blobs.put(content=""))["size"] == 0
    assert (await blobs.get(sha256=digest("größe"), kind="text"))["content"] == "größe"
    assert (await blobs.get(sha256=digest("größe"), kind="base64"))["content"] == "Z3LDtsOfZQ=="


async def test_part_of_a_blob_is_returned(blobs, digest):
    await blobs.put(content="0123456789")
    got = await blobs.get(sha256=digest("0123456789"), offset=2, length=3)
    assert (got["content"], got["size"], got["next"]) == (b"234", 10, 5)
    got = await blobs.get(sha256=digest("0123456789"), offset=8, length=99)
    assert (got["content"], got["next"]) == (b"89", None)
    assert (await blobs.get(sha256=digest("0123456789"), offset=99))["content"] == b""


async def test_any_part_of_a_large_blob_is_returned(blobs, digest):
    data = Random(1).randbytes(3_000_000)
    await blobs.put(content=data)
    for offset, length in ((0, 5), (1_048_570, 12), (1_500_000, 1_000_000), (2_999_990, 99)):
        got = await blobs.get(sha256=digest(data), offset=offset, length=length)
        assert got["content"] == data[offset : offset + length]


async def test_part_of_a_text_ends_at_a_character_boundary(blobs, digest):
    await blobs.put(content="aüb")
    got = await blobs.get(sha256=digest("aüb"), kind="text", length=2)
    assert (got["content"], got["next"]) == ("a", 1)


@pytest.mark.parametrize(
    ("content", "options"),
    [(b"ok\xff", {}), (b"ok\xc3", {}), (b"a\xffbc", {"length": 3}), ("ü".encode(), {"length": 1})],
)
async def test_error_for_invalid_utf_8_names_the_position(blobs, digest, content, options):
    await blobs.put(content=content)
    with pytest.raises(BlobsNotText, match="at byte") as caught:
        await blobs.get(sha256=digest(content), kind="text", **options)
    assert (caught.value.code, caught.value.nothing_happened) == ("blobs.text", True)
    assert "bytes" in caught.value.hint


@pytest.mark.parametrize(
    "name", ["../secrets", "/etc/passwd", "a" * 63, "A" * 64, f"{UNKNOWN}\n", "ab/" + "0" * 61, ""]
)
async def test_only_a_digest_is_accepted_as_name(blobs, name):
    for run in (blobs.get, blobs.stat, blobs.delete):
        with pytest.raises(OpParamsInvalid):
            await run(sha256=name)


async def test_unknown_blob_is_missing(blobs):
    for run in (blobs.get, blobs.stat):
        with pytest.raises(BlobMissing):
            await run(sha256=UNKNOWN)
    assert await blobs.delete(sha256=UNKNOWN) == {"deleted": False}


async def test_no_part_of_a_damaged_blob_is_returned(blobs, host, digest):
    sha256 = (await blobs.put(content=b"0123456789"))["sha256"]
    host.blobs.path(sha256).write_bytes(b"012345678x")
    with pytest.raises(BlobDamaged):
        await blobs.get(sha256=sha256, length=1)


@pytest.mark.parametrize("params", [{}, {"content": "", "base64": ""}, {"base64": "no base64!"}, {"content": 1}])
async def test_exactly_one_valid_content_is_required(blobs, params):
    with pytest.raises(OpParamsInvalid):
        await blobs.put(**params)


async def test_blobs_are_listed_and_deleted(blobs, digest):
    for content in ("a", "b", "c"):
        await blobs.put(content=content)
    listed = await blobs.list(limit=2)
    assert [one["sha256"] for one in listed["blobs"]] == sorted(map(digest, "abc"))[:2]
    assert listed["truncated"]
    assert await blobs.delete(sha256=digest("a")) == {"deleted": True}
    listed = await blobs.list(limit=2)
    assert {one["sha256"] for one in listed["blobs"]} == {digest("b"), digest("c")}
    assert not listed["truncated"]


@pytest.mark.parametrize("settings", [{"max_entries": 1}])
async def test_number_of_listed_blobs_is_limited(blobs):
    for content in ("a", "b"):
        await blobs.put(content=content)
    assert len((await blobs.list(limit=5))["blobs"]) == 1


@pytest.mark.parametrize("settings", [{"max_blob_bytes": 10, "max_read_bytes": 5}])
async def test_size_of_blobs_and_results_is_limited(blobs, host, digest):
    with pytest.raises(BlobTooLarge):
        await blobs.put(content="01234567890")
    assert await host.blobs.list() == ()
    await blobs.put(content="0123456789")
    with pytest.raises(BlobTooLarge):
        await blobs.get(sha256=digest("0123456789"))
    got = await blobs.get(sha256=digest("0123456789"), length=9)
    assert (got["content"], got["next"]) == (b"01234", 5)
    assert (await blobs.get(sha256=digest("0123456789"), offset=5))["content"] == b"56789"


@pytest.mark.parametrize("settings", [{"max_total_bytes": 10}])
async def test_total_size_is_limited(blobs, host, digest):
    await blobs.put(content="012345")
    with pytest.raises(BlobsFull, match="11 bytes") as caught:
        await blobs.put(content="abcde")
    assert (caught.value.code, caught.value.nothing_happened) == ("blobs.full", True)
    assert "blobs.delete" in caught.value.hint
    await blobs.put(content="012345")
    await blobs.put(content="abcd")
    await blobs.delete(sha256=digest("012345"))
    await blobs.put(content="012345")
    # a blob that is removed by others frees space as well
    await host.blobs.delete(digest("012345"))
    await blobs.put(content="543210")


async def test_known_secret_is_not_stored(blobs, host):
    host.redactor.protect("canary-7f3a9c51", "canary")
    for params in ({"content": "a canary-7f3a9c51"}, {"base64": "Y2FuYXJ5LTdmM2E5YzUx"}):
        with pytest.raises(EgressRefused):
            await blobs.put(**params)
    assert await host.blobs.list() == ()


OPS = [("put", {"content": "a"}), ("get", {"sha256": UNKNOWN}), ("list", {}), ("delete", {"sha256": UNKNOWN})]


@pytest.mark.parametrize("grant", ["write", "read", "list", "delete"])
async def test_modes_are_granted_separately(blobs, grant):
    modes = ["write", "read", "list", "delete"]
    for mode, (name, params) in zip(modes, OPS, strict=True):
        run = getattr(blobs, name)(grants=[f"blobs:mode={grant}"], **params)
        if mode != grant:
            with pytest.raises(OpDenied, match=f"blobs:mode={mode}"):
                await run
        elif mode == "read":
            with pytest.raises(BlobMissing):
                await run
        else:
            await run


async def test_list_and_delete_are_not_granted_by_default(blobs):
    for run in (blobs.list(grants=["blobs"]), blobs.delete(sha256=UNKNOWN, grants=["blobs"])):
        with pytest.raises(OpDenied):
            await run
    stored = await blobs.put(content="a", grants=["blobs"])
    await blobs.get(sha256=stored["sha256"], grants=["blobs"])


async def test_record_contains_digests_but_no_content(blobs, host, digest):
    await blobs.put(content="some words")
    lines = "".join(path.read_text() for path in host.ledger.folder.glob("*.jsonl"))
    assert digest("some words") in lines
    assert "some words" not in lines


@pytest.mark.parametrize(("offset", "length"), [(0, 8), (8, 4), (9, 3), (12, 99), (24, 99)])
async def test_part_that_would_split_a_secret_is_rejected(blobs, host, offset, length):
    content = b"before " + b"canary-7f3a9c51-0b" + b" after"
    stored = await host.blobs.put(content)
    host.redactor.protect("canary-7f3a9c51-0b", "canary")
    with pytest.raises(EgressRefused, match="`canary`") as caught:
        await blobs.get(sha256=stored.sha256, offset=offset, length=length)
    assert "`canary`" in caught.value.message


async def test_parts_beside_and_around_a_secret_are_returned(blobs, host):
    stored = await host.blobs.put(b"x" * 100_000 + b"canary-7f3a9c51-0b" + b"x" * 100_000)
    host.redactor.protect("canary-7f3a9c51-0b", "canary")
    assert (await blobs.get(sha256=stored.sha256, offset=99_990, length=10))["content"] == b"x" * 10
    assert (await blobs.get(sha256=stored.sha256, offset=100_018, length=3))["content"] == b"xxx"
    got = await blobs.get(sha256=stored.sha256, offset=99_999, length=20)
    assert got["content"] == b"x[redacted:canary]x"
