from types import SimpleNamespace

import pytest
from sideband import Plugin, hookimpl
from sideband.hooks import Deny
from sideband.ops import OpDenied

pytestmark = pytest.mark.anyio


@pytest.fixture
def previews():
    """What ops said they would do, in order."""
    return []


@pytest.fixture
def more_plugins(previews):
    @hookimpl
    async def op_call(event):
        if event.preview is not None:
            previews.append(await event.preview(event.params))
        return Deny("only asked")

    return [Plugin("hook", "watch", SimpleNamespace(op_call=op_call))]


@pytest.fixture
def ask(host, previews):
    """What an op would do; it is kept from doing it."""

    async def preview(name, path, **params):
        with pytest.raises(OpDenied, match="only asked"):
            await host.op(f"files.{name}", {"path": path, **params})
        return previews.pop()

    return preview


@pytest.fixture
def there(home):
    (home / "x").write_text("one\ntwo\nthree\n" * 100)
    (home / "y").write_text("y")
    (home / "a").mkdir()
    return home


PREVIEWS = [
    ("write", "new", {"content": "größe"}, "would create `new` (7 bytes)"),
    ("write", "x", {"content": "y" * 5000, "append": True}, "would add 4.9 KB to `x` (1.4 KB)"),
    ("write", "y", {"content": "y", "overwrite": True}, "would leave `y` as it is: it has this content"),
    ("delete", "y", {}, "would delete `y` (1 byte)"),
    ("delete", "a/", {}, "would delete the folder `a`, if nothing is in it"),
    ("delete", "none", {}, "would fail: there is no `none`"),
    ("copy", "y", {"target": "new"}, "would copy `y` (1 byte) to `new`"),
    ("copy", "none", {"target": "new"}, "would fail: there is no `none`"),
    ("move", "y", {"target": "x"}, "would move `y` (1 byte) to `x`, replacing the file that is there (1.4 KB)"),
    ("move", "none", {"target": "x"}, "would fail: there is no `none`"),
    ("make_folder", "a/b", {}, "would make the folder `a/b`"),
    ("make_folder", "a", {}, "would leave `a` as it is: it is there"),
    ("restore", "y", {"expected": "0" * 64}, "would remove `y` (1 byte now)"),
    ("restore", "new", {"blob": "0" * 64}, "would put back `new` as it was (0 bytes)"),
]


@pytest.mark.parametrize("case", PREVIEWS, ids=lambda case: f"{case[0]}-{case[1]}")
async def test_a_preview_says_what_would_happen_and_changes_nothing(ask, there, case):
    name, path, params, said = case
    before = {one: one.read_bytes() for one in there.iterdir() if one.is_file()}
    assert await ask(name, path, **params) == said
    assert {one: one.read_bytes() for one in there.iterdir() if one.is_file()} == before
    assert not (there.parent / "blobs").exists()


async def test_a_preview_counts_lines(ask, there):
    content = "one\ntwo\nfour\n" * 100 + "five"
    said = await ask("write", "x", content=content, overwrite=True)
    assert said == "would replace `x` (1.4 KB → 1.3 KB), 101 lines added, 100 removed"
    said = await ask("write", "y", content="y\nz", overwrite=True)
    assert said == "would replace `y` (1 byte → 3 bytes), 1 line added, 0 removed"


@pytest.mark.parametrize("content", [b"\0", b"x" * 1_100_000])
async def test_lines_of_what_is_no_text_or_large_are_not_counted(ask, there, content):
    assert (await ask("write", "y", content=content, overwrite=True)).endswith(")")
    (there / "y").write_bytes(content)
    assert (await ask("write", "y", content="z", overwrite=True)).endswith(")")


async def test_a_preview_of_a_blob_says_its_size(ask, host, there):
    blob = await host.blobs.put(b"x" * 2048)
    assert await ask("write", "new", blob=blob.sha256) == "would create `new` (2 KB)"
    assert await ask("write", "y", blob=blob.sha256, overwrite=True) == "would replace `y` (1 byte → 2 KB)"


async def test_a_preview_shows_nothing_of_what_is_in_a_file(ask, there):
    (there / "x").write_text("old words")
    assert "words" not in await ask("write", "x", content="new words", overwrite=True)
