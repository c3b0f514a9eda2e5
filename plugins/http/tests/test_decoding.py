import gzip
import zlib
from contextlib import suppress

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sideband_http import ContentInvalid, ResponseTooLarge
from sideband_http._response._decoding import decoded


def decode(data, encoding, *, max_bytes=1_000_000, chunk=1000):
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
def test_compressed_data_is_decoded(data, repeat, encoding, chunk):
    data = data * repeat
    assert decode(CODECS[encoding](data), encoding, chunk=chunk) == data


def test_long_runs_are_decoded_completely():
    data = b"\0" * 300_000 + b"end"
    assert decode(gzip.compress(data), "gzip", chunk=7) == data


def test_deflate_without_a_header_is_decoded():
    assert decode(raw_deflate(b"text"), "deflate") == b"text"


def test_several_layers_are_decoded_in_order():
    assert decode(gzip.compress(zlib.compress(b"text")), "deflate, gzip") == b"text"


def test_gzip_members_are_joined():
    assert decode(gzip.compress(b"one") + gzip.compress(b"two"), "gzip") == b"onetwo"


def test_padding_after_gzip_is_ignored():
    assert decode(gzip.compress(b"one") + b"\0" * 20, "gzip") == b"one"


def test_unknown_encoding_is_not_decoded():
    assert decode(b"abc", "br") == b"abc"


@pytest.mark.parametrize("encoding", ["gzip", "gzip, gzip"])
def test_decompression_bomb_stops_at_the_limit(encoding):
    bomb = gzip.compress(b"\0" * 50_000_000)
    if encoding == "gzip, gzip":
        bomb = gzip.compress(bomb)
    with pytest.raises(ResponseTooLarge):
        decode(bomb, encoding, max_bytes=100_000, chunk=65_536)


def test_limit_applies_to_the_compressed_size_too():
    with pytest.raises(ResponseTooLarge):
        decode(gzip.compress(b"one") + b"\0" * 10_000, "gzip", max_bytes=1000)


def test_truncated_data_is_an_error():
    with pytest.raises(ContentInvalid):
        decode(gzip.compress(b"some text")[:-6], "gzip")


def test_invalid_gzip_is_an_error():
    with pytest.raises(ContentInvalid):
        decode(b"plain text", "gzip")


@given(st.binary(max_size=300), st.sampled_from(["gzip", "deflate", "deflate, gzip"]))
def test_random_data_is_decoded_or_raises_content_invalid(data, encoding):
    with suppress(ContentInvalid):
        decode(data, encoding)
