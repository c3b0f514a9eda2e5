import pytest
from sideband import Plugin, hookimpl
from sideband.hooks import Deny
from sideband.ops import OpDenied

pytestmark = pytest.mark.anyio


@pytest.fixture
def previews():
    """The previews so far."""
    return []


@pytest.fixture
def more_plugins(previews):
    @hookimpl
    async def op_call(event):
        if event.preview is not None:
            previews.append(await event.preview(event.params))
        return Deny("preview only")

    return [Plugin("guard", "watch", type("Guard", (), {"op_call": staticmethod(op_call)}))]


@pytest.fixture
def preview_of(host, previews):
    """Return a function that previews an op without running it."""

    async def preview(name, path, **params):
        with pytest.raises(OpDenied, match="preview only"):
            await host.op(f"files.{name}", {"path": path, **params})
        return previews.pop()

    return preview


@pytest.fixture
def folder(home):
    (home / "x").write_text("one\ntwo\nthree\n" * 100)
    (home / "y").write_text("y")
    (home / "a").mkdir()
    return home


PREVIEWS = [
    ("write", "new", {"content": "größe\n"}, "would create `new` (8 bytes)\n@@ -0,0 +1,1 @@\n+größe"),
    (
        "write",
        "x",
        {"content": "y" * 5000 + "\n", "append": True},
        "would append 4.9 KB to `x` (1.4 KB)\n@@ -0,0 +1,1 @@\n+[a line of 5,000 characters]",
    ),
    ("write", "y", {"content": "y", "overwrite": True}, "would leave `y` unchanged: it already has this content"),
    ("delete", "y", {}, "would delete `y` (1 byte)"),
    ("delete", "a/", {}, "would delete the folder `a` if it is empty"),
    ("delete", "none", {}, "would fail: `none` does not exist"),
    ("copy", "y", {"target": "new"}, "would copy `y` (1 byte) to `new`"),
    ("copy", "none", {"target": "new"}, "would fail: `none` does not exist"),
    ("move", "y", {"target": "x"}, "would move `y` (1 byte) to `x`, replacing the existing file (1.4 KB)"),
    ("move", "none", {"target": "x"}, "would fail: `none` does not exist"),
    ("make_folder", "a/b", {}, "would create the folder `a/b`"),
    ("make_folder", "a", {}, "would leave `a` unchanged: it already exists"),
    ("restore", "y", {"expected": "0" * 64}, "would remove `y` (1 byte now)"),
    ("restore", "new", {"blob": "0" * 64}, "would restore `new` to its previous content (0 bytes)"),
]


@pytest.mark.parametrize("case", PREVIEWS, ids=lambda case: f"{case[0]}-{case[1]}")
async def test_preview_describes_the_change_without_making_it(preview_of, folder, case):
    name, path, params, expected = case
    before = {one: one.read_bytes() for one in folder.iterdir() if one.is_file()}
    assert await preview_of(name, path, **params) == expected
    assert {one: one.read_bytes() for one in folder.iterdir() if one.is_file()} == before
    assert not (folder.parent / "blobs").exists()


async def test_preview_counts_lines_and_shows_them(preview_of, folder):
    content = "one\ntwo\nfour\n" * 100 + "five"
    text = await preview_of("write", "x", content=content, overwrite=True)
    assert text.startswith(
        "would replace `x` (1.4 KB → 1.3 KB), 101 lines added, 100 removed\n@@ -1,300 +1,301 @@\n one"
    )
    (folder / "y").write_text("y\n")
    text = await preview_of("write", "y", content="y\nz", overwrite=True)
    assert text == (
        "would replace `y` (2 bytes → 3 bytes), 1 line added, 0 removed\n"
        "@@ -1,1 +1,2 @@\n y\n+z\n\\ no line feed at the end of the file"
    )


async def test_preview_shows_no_lines_if_they_contain_a_known_secret_of_several_lines(preview_of, host, folder):
    host.redactor.protect("first half\nsecond half", "key")
    (folder / "x").write_text("a\nfirst half\nsecond half\n")
    text = await preview_of("write", "x", content="b\n", overwrite=True)
    assert text == "would replace `x` (25 bytes → 2 bytes), 1 line added, 3 removed"


@pytest.mark.parametrize("content", [b"\0", b"x" * 1_100_000])
async def test_lines_of_binary_or_large_content_are_not_counted(preview_of, folder, content):
    assert (await preview_of("write", "y", content=content, overwrite=True)).endswith(")")
    (folder / "y").write_bytes(content)
    assert (await preview_of("write", "y", content="z", overwrite=True)).endswith(")")


async def test_preview_of_a_blob_contains_its_size(preview_of, host, folder):
    blob = await host.blobs.put(b"x" * 2048)
    assert await preview_of("write", "new", blob=blob.sha256) == "would create `new` (2 KB)"
    assert await preview_of("write", "y", blob=blob.sha256, overwrite=True) == "would replace `y` (1 byte → 2 KB)"


HOSTILE = "a` (1 byte) to `b"


@pytest.mark.parametrize("exists", [False, True])
@pytest.mark.parametrize(
    "request_of",
    [
        ("write", HOSTILE, {"content": "y", "overwrite": True}),
        ("write", HOSTILE, {"content": "z", "overwrite": True}),
        ("write", HOSTILE, {"content": "y", "append": True}),
        ("copy", HOSTILE, {"target": "new"}),
        ("copy", "y", {"target": HOSTILE}),
        ("move", HOSTILE, {"target": "new"}),
        ("move", "y", {"target": HOSTILE}),
        ("delete", HOSTILE, {}),
        ("restore", HOSTILE, {"blob": "0" * 64}),
        ("restore", HOSTILE, {"expected": "0" * 64}),
    ],
)
async def test_name_of_a_file_cannot_end_its_quotation(preview_of, folder, request_of, exists):
    name, path, params = request_of
    if exists:
        (folder / HOSTILE).write_text("y")
    text = await preview_of(name, path, **params)
    assert f'"{HOSTILE}"' in text
    assert "` (1 byte) to `" not in text.replace(f'"{HOSTILE}"', "")


@pytest.mark.parametrize(("name", "ending"), [("make_folder", ""), ("delete", "/")])
@pytest.mark.parametrize("exists", [False, True])
async def test_name_of_a_folder_cannot_end_its_quotation(preview_of, folder, name, ending, exists):
    if exists or name == "delete":
        (folder / HOSTILE).mkdir()
    assert f'"{HOSTILE}"' in await preview_of(name, HOSTILE + ending)
