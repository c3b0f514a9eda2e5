import os
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sideband_confined_files import ConfinedFolder, FileRefused, normal_path, recorded_path, resolved_path

ELSEWHERE = [
    *("/", "/etc/passwd", "~/x", "~root", "..", "../x", "a/../../x", "a/./x", "./a", "a/..", ".hidden", "a/.git/x"),
    *("//x", "a\\b", "a\\..\\b", "c:x", "C:\\x", "x.", "x ", "a*", "a?", 'a"', "<a>", "a|b"),
]
INVISIBLE = ["a\0b", "a\nb", "a\rb", "a\x1b[2J", "a\x7f", "a\u202etxt.exe", "a\u200b", "a\ufeff", "a\u2028b", "\ud800"]
LARGE = ["a" * 300, "ü" * 101, "/".join("abcdefghijklmnopq"), "/".join(["a"] * 4_000), "a/" * 4_000, "a" * 5_000]


@pytest.mark.parametrize("path", [*ELSEWHERE, *INVISIBLE, *LARGE, "e\u0301.txt"])
def test_unsafe_or_misleading_path_is_rejected(path):
    with pytest.raises(FileRefused) as caught:
        normal_path(path)
    assert caught.value.code == "file.refused"
    assert caught.value.hint
    assert caught.value.message.isprintable()
    assert len(caught.value.message) < 600


@pytest.mark.parametrize(
    ("path", "normal"),
    [("a//b c/ü.txt", "a/b c/ü.txt"), ("a/", "a"), ("", "."), (".", "."), ("...a"[3:], "a"), ("日本/x", "日本/x")],
)
def test_path_is_normalized(path, normal):
    assert normal_path(path) == normal


@given(st.text(max_size=60) | st.text(alphabet="a./~\\ \0:é\u0301", max_size=60))
def test_accepted_path_stays_below_the_folder_and_is_idempotent(path):
    try:
        normal = normal_path(path)
    except FileRefused:
        return
    assert normal_path(normal) == normal
    assert unicodedata.is_normalized("NFC", normal)
    assert os.path.normpath(f"/root/{normal}") == (f"/root/{normal}" if normal != "." else "/root")
    assert normal.isprintable() or any(unicodedata.category(one) in {"Cn", "Co", "Zs"} for one in normal)


@pytest.mark.parametrize(
    "path", ["x", "", "~root/x", "~", "../x", "/a" * 3_000, "/a" * 65, *(f"/{one}" for one in INVISIBLE)]
)
def test_resolved_path_rejects_relative_long_and_invisible_paths(path):
    with pytest.raises(FileRefused):
        resolved_path(path)


@pytest.mark.parametrize("path", ["~/x", "x", "/" + "a" * 4_100, "/a\u202eb", "/" + "a/" * 70])
def test_recorded_path_rejects_what_no_resolved_path_is(path):
    with pytest.raises(FileRefused):
        recorded_path(path)


def test_recorded_path_does_not_resolve_links(tmp_path):
    (tmp_path / "link").symlink_to("/usr")
    assert recorded_path(f"{tmp_path}/link/x/") == f"{tmp_path}/link/x"
    assert recorded_path("/") == "/"


def test_resolved_path_resolves_links(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert resolved_path(f"{tmp_path}/link/../real/./x/") == f"{tmp_path}/real/x"
    assert resolved_path(f"/{tmp_path}/link/x") == f"{tmp_path}/real/x"


def test_resolved_path_expands_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert resolved_path("~/x") == f"{tmp_path}/x"


def test_link_to_an_invisible_path_is_rejected(tmp_path):
    (tmp_path / "link").symlink_to("a\nb")
    with pytest.raises(FileRefused):
        resolved_path(f"{tmp_path}/link")


@pytest.mark.anyio
@pytest.mark.parametrize(
    "path", ["..", "a/../../outside/secret", "../outside/secret", "/outside", "a//b", "a/./b", "\0"]
)
async def test_folder_rejects_paths_that_are_not_normalized(folder, outside, path):
    with pytest.raises(FileRefused):
        await folder.read(path, max_bytes=100)


@pytest.mark.anyio
async def test_message_shows_the_absolute_path(tmp_path):
    with pytest.raises(FileNotFoundError, match=f"`{tmp_path}/x`"):
        await ConfinedFolder(Path("/")).read(str(tmp_path / "x")[1:], max_bytes=1)
