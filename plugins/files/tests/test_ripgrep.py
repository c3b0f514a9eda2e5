"""With ripgrep, searches of large files find the same, whatever it does."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sideband.ops import OpError

pytestmark = pytest.mark.anyio
RIPGREP = Path(sys.executable).with_name("rg")
# Longer than the part of a file that a search reads at once.
FILLER = b"0.0\n" * 300_000
LONG = (b"~" * 999 + b"\n") * 1_050
ELEMENTS = [
    *("a", "b", "k", "s", "B", "1", "_", " ", "é", "-", ",", ".", r"\.", r"\d", r"\w", r"\s", r"\b", "^", "$", "|"),
    *("[a-c]", "[^a]", r"[\d_]", r"[^a-z ]", "(ab|k)", "(?:b)", "a+", "b{2}", "(a|)*", "k?", ".*", "é+?"),
    *(r"\D", r"\W", r"\S", r"\B", r"\z", r"\pL", "(?i)", "(?s)", "[[:alpha:]]", r"\Qa", r"\x61", r"\n", "[é]", r"\C"),
]
PIECES = st.sampled_from(
    [*b"abkseB1_- ,.".decode(), "é", "É", "\u212a", "\u017f", "\u0661", "\u00a0", "\r", "\n", "\r\n", "\0", "\ufeff"]
).map(str.encode) | st.sampled_from([b"\xff", b"\xc3", b"\xa9", b"\n\n", b"ab" * 600, b"\xed\xa0\x80"])
CONTENTS = st.lists(st.lists(PIECES, max_size=12).map(b"".join), min_size=1, max_size=3)


@pytest.fixture
async def twins(open_host, tmp_path, anyio_backend):
    """A host that uses ripgrep, and one that does not."""
    options = {"with": {"ripgrep": str(RIPGREP), "ripgrep_bytes": 1}, "without": {"ripgrep": "never"}}
    async with (
        open_host(tmp_path / "with", options["with"]) as one,
        open_host(tmp_path / "without", options["without"]) as other,
    ):
        yield one, other


async def found(host, **params):
    try:
        return await host.op("files.search", params)
    except OpError as error:
        return error.code


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    CONTENTS,
    st.fixed_dictionaries(
        {
            "pattern": st.lists(st.sampled_from(ELEMENTS), min_size=1, max_size=4).map("".join),
            "literal": st.booleans(),
            "ignore_case": st.booleans(),
            "context": st.integers(0, 2),
        }
    ),
)
async def test_equal_lines_are_found_with_and_without_ripgrep(twins, place, contents, params):
    (place / "a").write_bytes(LONG + LONG.join(contents))
    one, other = [await found(host, path=str(place), limit=50, **params) for host in twins]
    assert one == other


LATE = {"pattern": "ne+dle", "context": 1}


async def search_late(host, place):
    (place / "a").write_bytes(b"one\n" + FILLER + b"a needle\n" + FILLER * 2 + b"needle")
    matches = (await host.op("files.search", {"path": str(place), **LATE}))["matches"]
    return [(one["line"], one["text"], one["before"], one["after"]) for one in matches]


EXPECTED = [(300_002, "a needle", ["0.0"], ["0.0"]), (900_003, "needle", ["0.0"], [])]


def program(folder, script):
    path = folder / "program"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o700)
    return {"ripgrep": str(path), "ripgrep_bytes": 1_000_000}


async def test_ripgrep_decides_which_parts_of_a_large_file_are_read(open_host, tmp_path, place):
    says_nothing = program(tmp_path, "exit 1")
    async with open_host(settings=says_nothing) as host:
        assert await search_late(host, place) == []
    async with open_host(settings={**says_nothing, "ripgrep_bytes": 100_000_000}) as host:
        assert await search_late(host, place) == EXPECTED
    async with open_host(settings={**says_nothing, "ripgrep": "never"}) as host:
        assert await search_late(host, place) == EXPECTED


@pytest.mark.parametrize("script", ["exit 2", "kill -9 $$", "echo hello", "echo 2:8:x; exit 2", "echo 1:x:"])
async def test_everything_is_found_if_ripgrep_fails(open_host, tmp_path, place, script):
    async with open_host(settings=program(tmp_path, script)) as host:
        assert await search_late(host, place) == EXPECTED


async def test_everything_is_found_if_ripgrep_is_missing(open_host, tmp_path, place):
    async with open_host(settings={"ripgrep": str(tmp_path / "none"), "ripgrep_bytes": 1}) as host:
        assert await search_late(host, place) == EXPECTED


async def test_ripgrep_gets_the_open_file_and_no_path_and_no_variables(open_host, tmp_path, place):
    files = [tmp_path / name for name in ("arguments", "variables", "folder")]
    script = 'echo "$@" > {}; env > {}; pwd > {}; '.format(*files) + f'exec {RIPGREP} "$@"'
    async with open_host(settings=program(tmp_path, script)) as host:
        assert await search_late(host, place) == EXPECTED
    arguments = (tmp_path / "arguments").read_text()
    assert str(place) not in arguments
    assert arguments.startswith("--no-config --text --encoding=none ")
    assert arguments.endswith(" --regexp ne+dle -\n")
    assert (tmp_path / "folder").read_text() == "/\n"
    assert {line.partition("=")[0] for line in (tmp_path / "variables").read_text().splitlines()} <= {"PWD", "_"}


@pytest.mark.parametrize("settings", [{"ripgrep": str(RIPGREP), "ripgrep_bytes": 1, "search_seconds": 0.2}])
async def test_search_with_ripgrep_ends_in_time(files, place):
    (place / "a").write_bytes(b"x\n" + FILLER)
    os.truncate(place / "a", 1 << 40)
    found = await files.search(place, pattern="x$")
    assert ([one["line"] for one in found["matches"]], found["truncated"]) == ([1], "time")
