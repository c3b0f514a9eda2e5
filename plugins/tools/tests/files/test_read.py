import base64
import os

import pytest

pytestmark = pytest.mark.anyio
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


async def test_lines_have_their_numbers(call, work):
    (work / "a.py").write_text("one\ntwo\n")
    assert (await call("read", path="a.py")).text == "1\tone\n2\ttwo"


async def test_part_says_where_it_continues(call, work):
    (work / "a.py").write_text("".join(f"line {number}\n" for number in range(1, 10)))
    result = await call("read", path="a.py", first=3, count=2)
    assert result.text == "3\tline 3\n4\tline 4\n[continue with line 5 of a file of 63 bytes]"


async def test_paths_may_be_absolute_or_relative(call, work):
    (work / "src").mkdir()
    (work / "src" / "a.py").write_text("one")
    assert (await call("read", path="src/../src/a.py")).text == "1\tone"
    assert (await call("read", path=str(work / "src" / "a.py"))).text == "1\tone"


async def test_file_outside_of_the_places_is_refused(call, tmp_path):
    (tmp_path / "secret.txt").write_text("the content")
    for path in ("../secret.txt", str(tmp_path / "secret.txt")):
        result = await call("read", path=path)
        assert result.is_error
        assert "is outside of the folders in which you may work" in result.text


async def test_link_out_of_the_places_is_refused(call, work, tmp_path):
    (tmp_path / "secret.txt").write_text("the content")
    (work / "link").symlink_to(tmp_path / "secret.txt")
    result = await call("read", path="link")
    assert result.is_error
    assert "is not granted" in result.text


async def test_missing_file_is_named(call):
    result = await call("read", path="none.txt")
    assert result.is_error
    assert "does not exist" in result.text


async def test_image_is_shown(call, work):
    (work / "a.png").write_bytes(PNG)
    result = await call("read", path="a.png")
    (part,) = result.content
    assert (part.media_type, base64.b64decode(part.data)) == ("image/png", PNG)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
async def test_byte_order_mark_determines_the_encoding(call, work, encoding):
    (work / "a.txt").write_text("größe\nzwei\n", encoding=encoding)
    assert (await call("read", path="a.txt")).text == "1\tgröße\n2\tzwei"
    assert (await call("read", path="a.txt", first=2)).text == "2\tzwei"


async def test_other_bytes_are_shown_as_latin_1(call, work):
    (work / "a.txt").write_bytes(b"gr\xf6\xdfe\n")
    assert (await call("read", path="a.txt")).text == "1\tgröße\n[not UTF-8, shown as Latin-1]"


async def test_binary_file_is_an_error(call, work):
    (work / "a.bin").write_bytes(b"\0\1\2")
    result = await call("read", path="a.bin")
    assert (result.is_error, "not text" in result.text) == (True, True)


async def test_empty_file_and_lines_beyond_the_end_are_reported(call, work):
    (work / "a.txt").write_text("")
    assert (await call("read", path="a.txt")).text == "[the file is empty]"
    (work / "b.txt").write_text("x\n")
    assert (await call("read", path="b.txt", first=7)).text == "[the file has fewer than 7 lines]"


async def test_long_line_is_shortened(call, work):
    (work / "a.txt").write_text("x" * 3_000 + "\nend\n")
    result = await call("read", path="a.txt")
    assert result.text == f"1\t{'x' * 2_000} [1,000 characters omitted]\n2\tend"


async def test_pdf_is_shown_by_page(call, work, pdf):
    (work / "a.pdf").write_bytes(pdf("one star", "two stars", "three stars"))
    assert (await call("read", path="a.pdf", pages="2")).text == "[page 2 of 3]\ntwo stars"
    assert (await call("read", path="a.pdf", pages="2-9")).text.endswith("[page 3 of 3]\nthree stars")


async def test_missing_page_of_a_pdf_is_an_error(call, work, pdf):
    (work / "a.pdf").write_bytes(pdf("one star"))
    assert "`a.pdf`: it has 1 pages; you requested 4" in (await call("read", path="a.pdf", pages="4")).text


async def test_long_pdf_says_where_it_continues(call, work, pdf):
    (work / "a.pdf").write_bytes(pdf("x" * 40_000, "two stars"))
    assert (await call("read", path="a.pdf")).text.endswith("[continue with the pages 2-2]")


async def test_pdf_that_is_too_large_is_an_error(call, work, pdf):
    (work / "a.pdf").write_bytes(pdf("one star"))
    os.truncate(work / "a.pdf", 65 << 20)
    assert "more than the limit of 67,108,864" in (await call("read", path="a.pdf")).text


async def test_pdf_is_read_in_parts(call, work, pdf):
    (work / "a.pdf").write_bytes(pdf("one star", "x" * (5 << 20)))
    assert (await call("read", path="a.pdf", pages="1")).text == "[page 1 of 2]\none star"
