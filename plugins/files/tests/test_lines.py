import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sideband.ops import EgressRefused
from sideband_confined_files import FileMissing

pytestmark = pytest.mark.anyio


async def test_lines_are_returned_with_their_ends_and_the_number_of_the_next(files, home):
    (home / "x").write_bytes(b"a\r\nb\nc\n")
    read = await files.lines("x", first=1, count=2)
    assert (read["content"], read["count"], read["next"]) == (b"a\r\nb\n", 2, 3)
    read = await files.lines("x", first=3)
    assert (read["content"], read["count"], read["next"]) == (b"c\n", 1, None)


async def test_last_line_needs_no_line_feed(files, home):
    (home / "x").write_bytes(b"a\nb")
    read = await files.lines("x", first=2)
    assert (read["content"], read["count"], read["next"]) == (b"b", 1, None)


async def test_line_beyond_the_end_is_an_empty_result(files, home):
    (home / "x").write_bytes(b"a\n")
    read = await files.lines("x", first=9)
    assert (read["content"], read["count"], read["next"]) == (b"", 0, None)


async def test_digest_is_that_of_the_whole_file(files, home, digest):
    (home / "x").write_bytes(b"a\nb\n")
    read = await files.lines("x", first=2)
    assert (read["sha256"], read["size"], read["beginning"]) == (digest("a\nb\n"), 4, b"a\nb\n")


async def test_lines_that_exceed_the_limit_are_left_for_the_next_call(files, home):
    (home / "x").write_bytes(b"aa\nbb\ncc\n")
    read = await files.lines("x", max_bytes=7)
    assert (read["content"], read["count"], read["next"], read["cut"]) == (b"aa\nbb\n", 2, 3, False)


async def test_line_that_alone_exceeds_the_limit_is_cut(files, home):
    (home / "x").write_bytes(b"aaaa\nb\n")
    read = await files.lines("x", max_bytes=3)
    assert (read["content"], read["count"], read["next"], read["cut"]) == (b"aaa", 1, 2, True)


async def test_file_that_is_too_large_to_be_read_at_once_has_lines(files, home):
    with (home / "x").open("wb") as file:
        for number in range(10):
            file.write(b"%d" % number + b"x" * 1_000_000 + b"\n")
    read = await files.lines("x", first=10, max_bytes=10)
    assert (read["content"], read["cut"], read["sha256"]) == (b"9xxxxxxxxx", True, None)


async def test_missing_file_is_reported(files):
    with pytest.raises(FileMissing):
        await files.lines("x")


async def test_lines_must_not_divide_a_secret(files, home, host):
    host.redactor.protect("begin-of-key\nend-of-key", "key")
    (home / "x").write_text("a\nbegin-of-key\nend-of-key\n")
    with pytest.raises(EgressRefused):
        await files.lines("x", count=2)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.sampled_from([b"\n", b"ab", b"\r\n", b"\0", "ü".encode()]), max_size=12).map(b"".join),
    st.tuples(st.integers(1, 5), st.integers(1, 4), st.integers(1, 9)),
)
async def test_lines_are_those_of_the_file(files, home, content, limits):
    first, count, room = limits
    (home / "x").write_bytes(content)
    expected = content.split(b"\n")
    lines = [one + b"\n" for one in expected[:-1]] + ([expected[-1]] if expected[-1] else [])
    read = await files.lines("x", first=first, count=count, max_bytes=room)
    wanted = lines[first - 1 :]
    taken = []
    while wanted and len(taken) < count and len(b"".join(taken)) + len(wanted[0]) <= room:
        taken.append(wanted.pop(0))
    if wanted and not taken:
        assert (read["content"], read["cut"]) == (wanted[0][:room], True)
    else:
        assert (read["content"], read["count"]) == (b"".join(taken), len(taken))
        assert read["next"] == (first + len(taken) if wanted else None)
