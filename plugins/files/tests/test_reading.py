import pytest
from sideband.blobs import BlobMissing
from sideband.ops import EgressRefused, OpParamsInvalid
from sideband_confined_files import FileMissing, FileRefused, FileTooLarge
from sideband_files import FilesNotText

pytestmark = pytest.mark.anyio


async def test_text_is_read_with_its_digest(files, home, digest):
    (home / "x.txt").write_text("größe")
    read = await files.read("x.txt")
    assert read == {"path": "x.txt", "content": "größe", "size": 7, "next": None, "sha256": digest("größe")}


async def test_bytes_are_read_unchanged(files, home, digest):
    (home / "x").write_bytes(b"\xff\0")
    read = await files.read("x", kind="bytes")
    assert (read["content"], read["sha256"]) == (b"\xff\0", digest(b"\xff\0"))


async def test_empty_file_is_an_empty_text(files, home):
    (home / "x").write_text("")
    assert (await files.read("x"))["content"] == ""


async def test_part_of_a_file_has_no_digest(files, home):
    (home / "x").write_text("0123456789")
    read = await files.read("x", offset=2, length=3)
    assert (read["content"], read["size"], read["next"], read["sha256"]) == ("234", 10, 5, None)
    read = await files.read("x", offset=5)
    assert (read["content"], read["next"], read["sha256"]) == ("56789", None, None)
    assert (await files.read("x", offset=99))["content"] == ""


async def test_part_of_a_text_ends_at_a_character_boundary(files, home):
    (home / "x").write_text("aüb")
    first = await files.read("x", length=2)
    assert (first["content"], first["next"]) == ("a", 1)
    assert (await files.read("x", offset=first["next"]))["content"] == "üb"


@pytest.mark.parametrize(("content", "options"), [(b"ok\xff", {}), (b"a\xc3", {}), ("aü".encode(), {"offset": 2})])
async def test_error_for_invalid_utf_8_names_the_position(files, home, content, options):
    (home / "x").write_bytes(content)
    with pytest.raises(FilesNotText, match="at byte") as caught:
        await files.read("x", **options)
    assert (caught.value.code, caught.value.nothing_happened) == ("files.text", True)
    assert "bytes" in caught.value.hint


async def test_part_shorter_than_a_character_is_an_error(files, home):
    (home / "x").write_text("ü")
    with pytest.raises(FilesNotText):
        await files.read("x", length=1)


async def test_unknown_file_is_missing(files):
    with pytest.raises(FileMissing):
        await files.read("x")


@pytest.mark.parametrize("settings", [{"max_read_bytes": 10}])
async def test_large_file_is_only_readable_in_parts(files, home):
    (home / "x").write_text("01234567890")
    with pytest.raises(FileTooLarge):
        await files.read("x")
    assert (await files.read("x", offset=1))["content"] == "1234567890"
    assert (await files.read("x", length=100))["content"] == "0123456789"


async def test_file_is_read_into_a_blob(files, host, home, digest):
    data = b"0123456789" * 200_000
    (home / "x").write_bytes(data)
    read = await files.read("x", kind="blob")
    assert (read["content"], read["sha256"], read["next"]) == (None, digest(data), None)
    assert await host.blobs.read(digest(data), max_bytes=len(data)) == data
    part = await files.read("x", kind="blob", offset=5, length=10)
    assert (part["sha256"], part["next"]) == (digest(b"5678901234"), 15)


@pytest.mark.parametrize("settings", [{"max_file_bytes": 10}])
async def test_oversized_file_is_not_read_into_a_blob(files, host, home):
    with (home / "x").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(FileTooLarge):
        await files.read("x", kind="blob")
    assert await host.blobs.list() == ()


async def test_folder_is_listed_in_pages(files, home):
    for name in ("c", "a", "b"):
        (home / name).write_text(name)
    (home / ".part").write_text("")
    first = await files.list(limit=2)
    assert [one["name"] for one in first["entries"]] == ["a", "b"]
    assert (first["path"], first["next"], first["left_out"]) == (".", "b", 1)
    rest = await files.list(after="b")
    assert [one["name"] for one in rest["entries"]] == ["c"]
    assert rest["next"] is None
    assert rest["entries"][0] == {"name": "c", "kind": "file", "size": 1, "modified": (home / "c").stat().st_mtime}


@pytest.mark.parametrize("settings", [{"max_entries": 2}])
async def test_page_size_is_limited(files, home):
    for name in ("c", "a", "b"):
        (home / name).write_text(name)
    assert len((await files.list(limit=3))["entries"]) == 2
    found = await files.find(pattern="*")
    assert (len(found["entries"]), found["truncated"]) == (2, True)


async def test_hosts_folder_is_empty_before_the_first_write(files, host):
    assert (await files.list())["entries"] == []
    with pytest.raises(FileMissing):
        await files.list("x")
    assert not (host.home / "files").exists()


async def test_file_cannot_be_listed(files, home):
    (home / "x").write_text("")
    with pytest.raises(FileRefused):
        await files.list("x")


async def test_stat_returns_metadata(files, home, digest):
    (home / "x").write_text("abc")
    (home / "x").chmod(0o640)
    status = await files.stat("x", digest=True)
    modified = (home / "x").stat().st_mtime
    assert status == {
        "path": "x", "kind": "file", "size": 3, "modified": modified, "permissions": 0o640, "sha256": digest("abc"),
    }  # fmt: skip
    assert (await files.stat("x"))["sha256"] is None
    assert (await files.stat("."))["kind"] == "folder"


async def test_unknown_blob_is_missing(files):
    with pytest.raises(BlobMissing):
        await files.write("x", blob="0" * 64)


@pytest.mark.parametrize(
    "params",
    [{"path": "x", "offset": -1}, {"path": "x", "length": 0}, {"path": "x", "kind": "y"}, {"path": "a" * 9000}],
)
async def test_invalid_parameters_are_rejected(host, params):
    with pytest.raises(OpParamsInvalid):
        await host.op("files.read", params)


@pytest.mark.parametrize("kind", ["text", "bytes", "blob"])
@pytest.mark.parametrize("part", [(0, 8), (8, 4), (9, 3), (12, 99), (24, 99)])
async def test_part_that_would_split_a_secret_is_rejected(files, host, home, kind, part):
    (home / "a.txt").write_text("before canary-7f3a9c51-0b after")
    host.redactor.protect("canary-7f3a9c51-0b", "canary")
    with pytest.raises(EgressRefused, match="`canary`") as caught:
        await files.read("a.txt", kind=kind, offset=part[0], length=part[1])
    assert "`canary`" in caught.value.message
    assert await host.blobs.list(limit=1) == ()


async def test_parts_beside_and_around_a_secret_are_read(files, host, home):
    (home / "a.txt").write_text("x" * 100_000 + "canary-7f3a9c51-0b" + "x" * 100_000)
    host.redactor.protect("canary-7f3a9c51-0b", "canary")
    assert (await files.read("a.txt", offset=99_990, length=10))["content"] == "x" * 10
    assert (await files.read("a.txt", offset=100_018, length=3))["content"] == "xxx"
    assert (await files.read("a.txt", offset=99_999, length=20))["content"] == "x[redacted:canary]x"
