import os

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sideband.ops import OpDenied
from sideband_confined_files import FileMissing
from sideband_files import FilesPatternInvalid

pytestmark = pytest.mark.anyio


@pytest.fixture
def tree(place):
    """A function that writes files, given their paths and contents."""

    def write(files):
        for path, content in files.items():
            target = place / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content if isinstance(content, bytes) else content.encode())
        return place

    return write


@pytest.fixture
def find(files, place):
    async def run(pattern, **options):
        return await files.search(place, pattern=pattern, **options)

    return run


def lines(found):
    return [(one["path"], one["line"], one["text"]) for one in found["matches"]]


async def test_lines_are_found_with_path_and_number(find, tree):
    tree({"b.txt": "no\nyes 1\nyes 2", "a/c.txt": "\n\nyes 3\n"})
    found = await find("yes [0-9]")
    assert lines(found) == [("b.txt", 2, "yes 1"), ("b.txt", 3, "yes 2"), ("a/c.txt", 3, "yes 3")]
    assert (found["files"], found["skipped"], found["truncated"]) == (2, 0, None)


async def test_line_with_several_matches_is_found_once(find, tree):
    tree({"a": "x x x\n"})
    assert lines(await find("x")) == [("a", 1, "x x x")]


async def test_pattern_never_matches_across_lines(find, tree):
    tree({"a": "x\ny\n"})
    for pattern in (r"x\sy", "x\ny", "x[^z]y", "(?s)x.y"):
        assert lines(await find(pattern)) == []
    assert lines(await find("^y$")) == [("a", 2, "y")]


async def test_empty_matches_find_every_line(find, tree):
    tree({"a": "x\n\ny\n"})
    assert [line for _, line, _ in lines(await find("z*"))] == [1, 2, 3]


async def test_text_is_literal_on_request(find, tree):
    tree({"a": "a.b\naxb\n"})
    assert lines(await find("a.b", literal=True)) == [("a", 1, "a.b")]


async def test_case_is_ignored_on_request(find, tree):
    tree({"a": "Größe\n"})
    assert lines(await find("gRÖSSE|gröSSe|GRÖßE", ignore_case=True)) == [("a", 1, "Größe")]
    assert lines(await find("größe")) == []


@pytest.mark.parametrize("pattern", ["(", "a**", r"(a)\1", "[z-a]"])
async def test_invalid_pattern_is_reported(find, tree, pattern):
    tree({"a": "x"})
    with pytest.raises(FilesPatternInvalid, match="is not a valid regular expression") as caught:
        await find(pattern)
    assert caught.value.code == "files.pattern"


async def test_context_is_added(find, tree):
    tree({"a": "1\n2\nx\n4\n5\nx"})
    first, second = (await find("x", context=2))["matches"]
    assert (first["before"], first["after"]) == (["1", "2"], ["4", "5"])
    assert (second["before"], second["after"]) == (["4", "5"], [])


async def test_context_crosses_the_parts_in_which_a_file_is_read(find, tree):
    filler = "-" * 99 + "\n"
    count = 1024 * 1024 // 100
    tree({"a": filler * (count - 1) + "before\nx\n" + "after\n" * 3 + filler})
    for wanted in range(1, 4):
        (found,) = (await find("^x$", context=wanted))["matches"]
        assert (found["before"][-1], found["after"]) == ("before", ["after"] * wanted)
        assert found["line"] == count + 1


async def test_gitignore_is_respected(find, tree):
    tree(
        {
            ".gitignore": "*.log\nbuild/\n/root.txt\n",
            "a.log": "x",
            "build/b.txt": "x",
            "root.txt": "x",
            "sub/root.txt": "x",
            "sub/.gitignore": "!keep.log\nown.txt\n",
            "sub/keep.log": "x",
            "sub/own.txt": "x",
            ".git/config": "x",
        }
    )
    assert [path for path, *_ in lines(await find("x"))] == ["sub/keep.log", "sub/root.txt"]
    hidden = [path for path, *_ in lines(await find("x", hidden=True))]
    assert (".gitignore" in hidden, ".git/config" in hidden) == (True, False)
    everything = await find("x", ignored=True, hidden=True)
    assert {one["path"] for one in everything["matches"]} >= {".git/config", "a.log", "build/b.txt", "sub/own.txt"}


async def test_rules_above_the_searched_folder_apply_and_what_is_named_is_searched(find, tree):
    tree({".gitignore": "*.log\nbuild/\n", "build/a.log": "x", "build/b.txt": "x", "sub/c.log": "x", "sub/d": "x"})
    assert [path for path, *_ in lines(await find("x", below="sub"))] == ["sub/d"]
    assert [path for path, *_ in lines(await find("x", below="build"))] == ["build/a.log", "build/b.txt"]
    assert [path for path, *_ in lines(await find("x", below="build/a.log"))] == ["build/a.log"]


@pytest.mark.parametrize("rule", ["\\", f"{'*a' * 20}b\n" * 2_000])
async def test_rules_that_cannot_be_used_exclude_nothing(find, tree, rule):
    tree({".gitignore": f"{rule}\n", "a.txt": "x"})
    assert [path for path, *_ in lines(await find("x"))] == ["a.txt"]


async def test_names_select_files(find, tree):
    tree({"a.py": "x", "a.md": "x", "src/b.py": "x", "src/deep/c.py": "x"})
    assert [path for path, *_ in lines(await find("x", names=["*.py"]))] == ["a.py", "src/b.py", "src/deep/c.py"]
    assert [path for path, *_ in lines(await find("x", names=["src/*.py"]))] == ["src/b.py"]


async def test_files_that_are_not_text_are_skipped(find, tree):
    tree({"a": b"x\0x", "b": "x"})
    found = await find("x")
    assert (lines(found), found["skipped"]) == ([("b", 1, "x")], 1)


async def test_search_ends_at_the_limit(find, tree):
    tree({"a": "x\n" * 9})
    found = await find("x", limit=3)
    assert (len(found["matches"]), found["truncated"]) == (3, "limit")
    assert (await find("x", limit=9))["truncated"] is None


async def test_line_after_many_parts_of_a_file_has_its_number(find, tree):
    filler = "-" * 99 + "\n"
    place = tree({"a": "x\n" + filler * 30_000 + "x\n" + filler * 20_000 + "x"})
    assert [number for _, number, _ in lines(await find("x"))] == [1, 30_002, 50_003]
    (place / "a").write_text("-" * 3_000_000 + "x\nx")
    assert [number for _, number, _ in lines(await find("x"))] == [1, 2]


@pytest.fixture
def endless(tree):
    """A file that takes minutes to search, after one with a match."""
    place = tree({"a": "x\n", "b": "text\n" * 2_000})
    os.truncate(place / "b", 1 << 40)
    return place


@pytest.mark.parametrize("settings", [{"search_seconds": 0.2}])
async def test_search_ends_in_time_within_a_file(find, endless):
    found = await find("x$")
    assert (lines(found), found["truncated"]) == ([("a", 1, "x")], "time")


@pytest.mark.parametrize("settings", [{"search_seconds": 600}])
async def test_search_in_a_large_file_can_be_cancelled(host, endless):
    with anyio.CancelScope() as scope:
        params = {"path": str(endless), "pattern": "x$"}
        await host.op("files.search", params, on_progress=lambda _: scope.cancel())
    assert scope.cancelled_caught


async def test_long_line_is_shortened_around_the_match(find, tree):
    tree({"a": "-" * 5_000 + "x" + "-" * 5_000})
    ((_, _, text),) = lines(await find("x"))
    assert len(text) == 500
    assert "-x-" in text


async def test_links_are_not_followed(find, tree, tmp_path):
    place = tree({"a": "none"})
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "b").write_text("x")
    (place / "link").symlink_to(tmp_path / "outside")
    (place / "link-to-file").symlink_to(tmp_path / "outside" / "b")
    assert lines(await find("x")) == []
    for below in ("link", "link/b", "link-to-file"):
        with pytest.raises(OSError, match="rejected"):
            await find("x", below=below)


async def test_search_ends_at_the_maximum_number_of_names(open_host, settings, tree):
    settings["max_visited"] = 20
    place = tree({f"{number}/{name}": "x" for number in range(9) for name in "abcde"})
    async with open_host() as host:
        found = await host.op("files.search", {"path": str(place), "pattern": "x"})
    assert (found["truncated"], len(found["matches"]) < 45) == ("names", True)


async def test_folders_below_the_maximum_depth_are_not_entered(find, tree):
    tree({f"{'d/' * 60}near": "x", f"{'d/' * 70}far": "x"})
    assert [path.rpartition("/")[2] for path, *_ in lines(await find("x"))] == ["near"]


async def test_folder_of_the_host_is_not_searched(files, host, tmp_path):
    (host.home / "secret.txt").write_text("needle")
    (tmp_path / "open.txt").write_text("needle")
    assert lines(await files.search(tmp_path, pattern="needle")) == [("open.txt", 1, "needle")]


async def test_kernel_file_systems_are_not_searched(files):
    with pytest.raises(OSError, match="kernel file system"):
        await files.search("/", pattern="x", below="proc/self/status")


@pytest.mark.parametrize("below", ["../outside", "/etc"])
async def test_what_is_below_stays_below(find, tree, below):
    tree({"a": "x"})
    with pytest.raises(OSError, match="rejected"):
        await find("x", below=below)


async def test_missing_folder_is_reported(files, place, find):
    with pytest.raises(FileMissing):
        await files.search(place / "none", pattern="x")
    with pytest.raises(FileMissing):
        await find("x", below="none")


async def test_whole_folder_must_be_granted(files, place):
    with pytest.raises(OpDenied):
        await files.search(place, pattern="x", grants=[f"files:path={place}/a*"])
    with pytest.raises(OpDenied):
        await files.search(place, pattern="x", grants=[f"files:path={place}"])
    with pytest.raises(OpDenied):
        await files.search(place, pattern="x", hidden=True, grants=[f"files:path={place}/*"])


async def test_matches_are_emitted_while_the_search_goes_on_without_parts_of_secrets(tree, host, place):
    host.redactor.protect("first-half-of-it\nsecond-half-of-it", "key")
    tree({"a": "one half\n", "b": "first-half-of-it\nsecond-half-of-it\n"})
    seen = []

    def take(event):
        seen.append(event.text or "")

    await host.op("files.search", {"path": str(place), "pattern": "half"}, on_progress=take)
    hidden = "[line omitted: it is a part of a known secret]"
    assert "".join(seen) == f"a:1: one half\nb:1: {hidden}\nb:2: {hidden}\n"


async def test_no_name_forges_a_line_that_is_emitted(tree, host, place):
    tree({"a\nb:1: forged": "x\n"})
    seen = []
    await host.op(
        "files.search", {"path": str(place), "pattern": "x"}, on_progress=lambda event: seen.append(event.text)
    )
    assert "".join(filter(None, seen)) == "a\\nb:1: forged:1: x\n"


async def test_part_of_a_secret_is_not_shown(find, tree, host):
    host.redactor.protect("first-half-of-it\nsecond-half-of-it", "key")
    tree({"a": "first-half-of-it\nsecond-half-of-it\n"})
    ((_, _, text),) = lines(await find("second"))
    assert text == "[line omitted: it is a part of a known secret]"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(alphabet="xy \r", max_size=4), max_size=8).map("\n".join), st.integers(0, 2))
async def test_found_lines_are_those_that_match(find, tree, content, context):
    tree({"a": content})
    all_lines = [one.rstrip("\r") for one in content.removesuffix("\n").split("\n")] if content else []
    expected = [
        (number, text, all_lines[max(0, number - 1 - context) : number - 1], all_lines[number : number + context])
        for number, text in enumerate(all_lines, 1)
        if "x" in text
    ]
    found = (await find("x", context=context))["matches"]
    assert [(one["line"], one["text"], one["before"], one["after"]) for one in found] == expected
