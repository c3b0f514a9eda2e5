import gzip
import zlib
from contextlib import suppress

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sideband_http import ContentInvalid, ResponseTooLarge
from sideband_http._response._decoding import decoded


def undo(data, encoding, *, max_bytes=1_000_000, chunk=1000):
    async def chunks():
        for start in range(0, len(data), chunk):
            yield data[start : start + chunk]

    async def collect():
        return [piece async for piece in decoded(chunks(), encoding, max_bytes=max_bytes)]

    return b"".join(anyio.run(collect))


def raw_deflate(data):
    engine = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return engine.compress(data) + engine.flush()


CODECS = {"gzip": gzip.compress, "deflate": zlib.compress, "x-gzip": gzip.compress}


@given(st.binary(max_size=500), st.integers(1, 400), st.sampled_from(sorted(CODECS)), st.integers(1, 50))
def test_what_was_compressed_comes_back(data, repeat, encoding, chunk):
    data = data * repeat
    assert undo(CODECS[encoding](data), encoding, chunk=chunk) == data


def test_long_runs_come_back_whole():
    data = b"\0" * 300_000 + b"end"
    assert undo(gzip.compress(data), "gzip", chunk=7) == data


def test_deflate_without_its_header_is_understood():
    assert undo(raw_deflate(b"text"), "deflate") == b"text"


def test_several_layers_are_undone_in_order():
    assert undo(gzip.compress(zlib.compress(b"text")), "deflate, gzip") == b"text"


def test_a_gzip_of_several_members_is_one_text():
    assert undo(gzip.compress(b"one") + gzip.compress(b"two"), "gzip") == b"onetwo"


def test_padding_after_a_gzip_is_ignored():
    assert undo(gzip.compress(b"one") + b"\0" * 20, "gzip") == b"one"


def test_an_unknown_encoding_is_handed_out_as_it_came():
    assert undo(b"abc", "br") == b"abc"


@pytest.mark.parametrize("encoding", ["gzip", "gzip, gzip"])
def test_a_bomb_stops_at_the_limit(encoding):
    bomb = gzip.compress(b"\0" * 50_000_000)
    if encoding == "gzip, gzip":
        bomb = gzip.compress(bomb)
    with pytest.raises(ResponseTooLarge):
        undo(bomb, encoding, max_bytes=100_000, chunk=65_536)


def test_what_comes_counts_even_if_it_decodes_to_little():
    with pytest.raises(ResponseTooLarge):
        undo(gzip.compress(b"one") + b"\0" * 10_000, "gzip", max_bytes=1000)


def test_a_cut_text_is_an_error():
    with pytest.raises(ContentInvalid):
        undo(gzip.compress(b"some text")[:-6], "gzip")


def test_what_is_no_gzip_is_an_error():
    with pytest.raises(ContentInvalid):
        undo(b"plain text", "gzip")


@given(st.binary(max_size=300), st.sampled_from(["gzip", "deflate", "deflate, gzip"]))
def test_rubbish_is_decoded_or_ends_in_a_typed_error(data, encoding):
    with suppress(ContentInvalid):
        undo(data, encoding)
