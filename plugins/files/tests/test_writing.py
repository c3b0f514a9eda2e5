import stat

import anyio
import pytest
from sideband.ops import EgressRefused, OpParamsInvalid
from sideband_confined_files import FileChanged, FileRefused, FileTaken, FileTooLarge

pytestmark = pytest.mark.anyio


async def test_new_file_is_accessible_by_its_owner_only(files, host, digest):
    written = await files.write("a/x.txt", content="größe")
    assert written == {"path": "a/x.txt", "size": 7, "sha256": digest("größe"), "replaced": False}
    file = host.home / "files/a/x.txt"
    assert file.read_text() == "größe"
    assert [stat.S_IMODE(one.stat().st_mode) for one in (file, file.parent, file.parent.parent)] == [
        0o600,
        0o700,
        0o700,
    ]


async def test_bytes_are_written_unchanged(files, home):
    await files.write("x", content=b"\xff\0")
    assert (home / "x").read_bytes() == b"\xff\0"


async def test_write_replaces_a_file_only_with_overwrite(files, home):
    (home / "x").write_text("old")
    with pytest.raises(FileTaken):
        await files.write("x", content="new")
    assert (home / "x").read_text() == "old"
    assert (await files.write("x", content="new", overwrite=True))["replaced"]
    assert (home / "x").read_text() == "new"


async def test_append_adds_to_a_file(files, home, digest):
    assert not (await files.write("x", content="one", append=True))["replaced"]
    written = await files.write("x", content="two", append=True)
    assert (written["size"], written["sha256"]) == (6, digest("onetwo"))
    assert (home / "x").read_text() == "onetwo"


async def test_file_is_replaced_only_if_it_has_the_expected_digest(files, home, digest):
    (home / "x").write_text("old")
    await files.write("x", content="new", expected=digest("old"))
    with pytest.raises(FileChanged):
        await files.write("x", content="newer", expected=digest("old"))
    with pytest.raises(FileChanged, match="`y`"):
        await files.write("y", content="newer", expected=digest("old"))
    with pytest.raises(FileChanged):
        await files.write("x", content="newer", expected=digest("old"), append=True)
    assert (home / "x").read_text() == "new"


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_concurrent_appends_lose_nothing(files, home):
    async with anyio.create_task_group() as group:
        for number in range(20):

            async def add(number=number):
                await files.write("x", content=f"{number}\n", append=True)

            group.start_soon(add)
    assert sorted((home / "x").read_text().split(), key=int) == [str(number) for number in range(20)]


async def test_blob_is_written(files, host, home):
    data = b"0123456789" * 200_000
    blob = await host.blobs.put(data)
    await files.write("x", blob=blob.sha256)
    assert (home / "x").read_bytes() == data


@pytest.mark.parametrize("params", [{}, {"content": "", "blob": "0" * 64}, {"blob": "../x"}, {"blob": "A" * 64}])
async def test_exactly_one_of_content_and_blob_is_required(files, params):
    with pytest.raises(OpParamsInvalid):
        await files.write("x", **params)


@pytest.mark.parametrize("settings", [{"max_file_bytes": 10}])
async def test_size_of_a_file_is_limited(files, host, home):
    await files.write("x", content="0123456789")
    for params in ({"content": "x" * 11}, {"content": "y", "append": True}):
        with pytest.raises(FileTooLarge):
            await files.write("x", overwrite=True, **params)
    blob = await host.blobs.put(b"x" * 11)
    with pytest.raises(FileTooLarge):
        await files.write("x", blob=blob.sha256, overwrite=True)
    assert (home / "x").read_text() == "0123456789"
    assert [one.name for one in home.iterdir()] == ["x"]


@pytest.mark.parametrize("settings", [{"max_file_bytes": 10}])
async def test_oversized_file_is_not_replaced_or_deleted(files, home):
    (home / "x").write_text("01234567890")
    with pytest.raises(FileTooLarge):
        await files.write("x", content="", overwrite=True)
    with pytest.raises(FileTooLarge):
        await files.delete("x")
    assert (home / "x").read_text() == "01234567890"


async def test_known_secret_is_not_written(files, host, home):
    host.redactor.protect("canary-7f3a9c51", "canary", origins=["https://api.example.org"])
    for params in ({"content": "a canary-7f3a9c51 b"}, {"content": b"\xffY2FuYXJ5LTdmM2E5YzUx"}):
        with pytest.raises(EgressRefused, match="content"):
            await files.write("x", **params)
    for run in (
        files.write("canary-7f3a9c51", content=""),
        files.make_folder("canary-7f3a9c51"),
        files.copy("x", target="canary-7f3a9c51"),
        files.move("x", target="canary-7f3a9c51"),
    ):
        with pytest.raises(EgressRefused, match=r"path|target"):
            await run
    assert list(home.iterdir()) == []


async def test_secret_across_two_chunks_of_a_blob_is_not_written(files, host, home):
    host.redactor.protect("canary-7f3a9c51", "canary")
    blob = await host.blobs.put(b"x" * (1024 * 1024 - 7) + b"canary-7f3a9c51")
    with pytest.raises(EgressRefused, match="blob"):
        await files.write("x", blob=blob.sha256)
    assert list(home.iterdir()) == []


async def test_write_does_not_follow_links(files, home, place):
    (place / "x").write_text("mine")
    (home / "file").symlink_to(place / "x")
    (home / "folder").symlink_to(place)
    for path in ("file", "folder/x", "folder/y"):
        with pytest.raises(FileRefused):
            await files.write(path, content="", overwrite=True)
    assert [one.name for one in place.iterdir()] == ["x"]
    assert (place / "x").read_text() == "mine"


async def test_record_contains_path_and_digests_but_no_content(files, host, home):
    (home / "x").write_text("old words")
    await files.write("x", content="new words", overwrite=True)
    lines = "".join(path.read_text() for path in host.ledger.folder.glob("*.jsonl"))
    assert '"path":"x"' in lines
    assert "words" not in lines
