"""Documents that are damaged, or made to take much time or memory."""

import sys
import zlib
from functools import partial
from pathlib import Path

import anyio
import pytest
from anyio.lowlevel import checkpoint
from sideband_tools import DocumentUnreadable
from sideband_tools._documents import ReaderLimits, page_text, pdf_text

pytestmark = pytest.mark.anyio


async def read(html):
    return (await page_text(html.encode(), "https://example.org/")).text


HOSTILE = {
    "nested": "<div>" * 200_000,
    "lists": "<ul><li>" * 50_000,
    "tables": "<table><tr><td>" * 20_000,
    "reopened": "<p><font>" * 20_000,
    "attributes": "<a " + "x=y " * 500_000,
}


@pytest.mark.parametrize("html", HOSTILE.values(), ids=HOSTILE)
async def test_hostile_page_is_read_within_the_limits(html):
    await read(html + "end")


async def test_entities_do_not_multiply():
    assert await read("<!DOCTYPE html [<!ENTITY a 'x'><!ENTITY b '&a;&a;'>]><p>&b;</p>") == "&b;\n"


async def test_page_that_takes_too_much_memory_is_an_error():
    with pytest.raises(DocumentUnreadable, match="more than 20 seconds or 100 MiB of memory"):
        await page_text(b"<p>x</p>" * 1_000_000, "https://example.org/", limits=ReaderLimits(memory=100 << 20))


async def test_page_that_takes_too_much_time_is_an_error():
    with pytest.raises(DocumentUnreadable, match=r"more than 0\.001 seconds"):
        await page_text(b"<p>x</p>" * 100_000, "https://example.org/", limits=ReaderLimits(seconds=0.001))


@pytest.mark.parametrize("data", [b"%PDF-1.4\n", b"%PDF-1.4\n1 0 obj\n<< /Type /Catalog /Pages 1 0 R >>\n%%EOF"])
async def test_damaged_pdf_is_an_error(data):
    with pytest.raises(DocumentUnreadable, match="it is damaged"):
        await pdf_text("a.pdf", data, characters=1_000)


DRAWN = b"<< /Length 32 >>\nstream\nBT /F1 12 Tf 72 720 Td (x) Tj ET\nendstream"


def packed(pdf, content):
    """Return a PDF file with this content on its page, which is compressed."""
    small = zlib.compress(content, 1)
    stream = b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(small), small)
    assert DRAWN in pdf("x")
    return pdf("x").replace(DRAWN, stream)


async def test_compressed_content_is_limited(pdf):
    data = packed(pdf, b" " * 200_000_000 + b"BT /F1 12 Tf (end) Tj ET")
    with pytest.raises(DocumentUnreadable, match="Limit reached while decompressing"):
        await pdf_text("a.pdf", data, characters=1_000)


def children():
    """Return the processes that this one has started."""
    return {int(pid) for file in Path("/proc/self/task").glob("*/children") for pid in file.read_text().split()}


@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
async def test_process_ends_when_the_call_is_cancelled(pdf):
    before, slow = children(), packed(pdf, b"BT /F1 12 Tf " + b"(x) Tj " * 3_000_000 + b"ET")
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(pdf_text, "a.pdf", slow, characters=1_000))
            while children() == before:
                await checkpoint()
            tasks.cancel_scope.cancel()
    assert children() == before
