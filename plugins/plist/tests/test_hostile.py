"""Documents that are made to deceive, or to exhaust memory or time."""

import plistlib
import struct
import time
import tracemalloc
from contextlib import suppress

import anyio
import pytest
from sideband.ops import OpDenied, OpTimeout
from sideband_plist import Config, PlistRefused, PlistSyntax, PlistTooLarge, PlistValue
from sideband_plist._binary import read_binary
from sideband_plist._xml import read_xml

pytestmark = pytest.mark.anyio

DOCTYPE = '<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">'


def binary(*objects, top=0, size=2, table=None, count=None, offsets=None):
    """Return a document of these encoded objects, with an optionally forged trailer."""
    body, positions = b"bplist00", []
    for one in objects:
        positions.append(len(body))
        body += one
    at = len(body) if table is None else table
    positions = positions if offsets is None else offsets
    body += b"".join(position.to_bytes(4, "big") for position in positions)
    return body + struct.pack(">6xBBQQQ", 4, size, len(positions) if count is None else count, top, at)


def listing(*references):
    return (
        bytes([0xAF, 0x12])
        + struct.pack(">I", len(references))
        + b"".join(struct.pack(">H", one) for one in references)
    )


def text(length):
    return bytes([0x5F, 0x12]) + struct.pack(">I", length) + b"x" * length


async def test_standard_doctype_is_accepted(parse):
    assert await parse(f'<?xml version="1.0"?>{DOCTYPE}<plist version="1.0"><true/></plist>') is True


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))


@pytest.mark.parametrize(
    "subset",
    [
        f'<!ENTITY l0 "ha">{LAUGHS}',
        '<!ENTITY x SYSTEM "file:///etc/passwd">',
        '<!ENTITY % x SYSTEM "http://127.0.0.1/x"> %x;',
        "<!ELEMENT plist ANY>",
        '<!ATTLIST plist a CDATA "x">',
        "",
    ],
    ids=["laughs", "file", "parameter", "element", "attributes", "empty"],
)
async def test_document_with_declarations_is_rejected(parse, subset):
    with pytest.raises(PlistRefused) as caught:
        await parse(f"<!DOCTYPE plist [{subset}]><plist><string>&l9;&x;</string></plist>")
    assert caught.value.code == "plist.refused"
    assert caught.value.hint


INVALID_XML = [
    "",
    "x",
    "{ a = 1; }",
    "<plist/>",
    "<plist></plist>",
    "<plist><true/><true/></plist>",
    "<true/>",
    "<html/>",
    "<html><true/></html>",
    "<plist><plist><true/></plist></plist>",
    "<plist><uid>1</uid></plist>",
    "<plist><string><b/></string></plist>",
    "<plist><string>a<string>b</string></string></plist>",
    "<plist>text<true/></plist>",
    "<plist><true>x</true></plist>",
    "<plist><key>a</key></plist>",
    "<plist><array><key>a</key></array></plist>",
    "<plist><dict><true/></dict></plist>",
    "<plist><dict><key>a</key></dict></plist>",
    "<plist><dict><key>a</key><key>b</key><true/></dict></plist>",
    "<plist><dict><key>a</key><true/><key>a</key><false/></dict></plist>",
    "<plist><integer>1.5</integer></plist>",
    "<plist><integer></integer></plist>",
    "<plist><integer>\u0661</integer></plist>",
    "<plist><integer>1_0</integer></plist>",
    f"<plist><integer>{'9' * 10_000}</integer></plist>",
    f"<plist><integer>0x{'f' * 10_000}</integer></plist>",
    "<plist><real>1,5</real></plist>",
    f"<plist><real>{'9' * 10_000}</real></plist>",
    "<plist><date>yesterday</date></plist>",
    "<plist><date>2001-02-30T00:00:00Z</date></plist>",
    "<plist><date>0000-01-01T00:00:00Z</date></plist>",
    "<plist><date>99999-01-01T00:00:00Z</date></plist>",
    "<plist><data>!</data></plist>",
    "<plist><true/>",
    '<?xml version="1.0" encoding="rot13"?><plist><true/></plist>',
    '<?xml version="1.0" encoding="no-such"?><plist><true/></plist>',
    '<?xml version="1.0" encoding="shift_jis"?><plist><true/></plist>',
]


async def test_invalid_xml_document_is_a_syntax_error(parse):
    accepted = []
    for document in INVALID_XML:
        try:
            await parse(document.encode())
        except PlistSyntax as error:
            assert (error.code, bool(error.hint)) == ("plist.syntax", True)  # noqa: PT017
        else:
            accepted.append(document)
    assert accepted == []


DAMAGED = [
    b"bplist00",
    b"bplist00" + bytes(31),
    b"bplist00" + bytes(32),
    b"bplist16" + bytes(64),
    binary(b"\x08", top=1),
    binary(b"\x08", top=1 << 63),
    binary(b"\x08", table=7),
    binary(b"\x08", table=1 << 62),
    binary(b"\x08", count=1 << 62),
    binary(b"\x08", count=50_000),
    binary(b"\x08", size=0),
    binary(b"\x08", size=200),
    binary(b"\x08", offsets=[0]),
    binary(b"\x08", offsets=[7]),
    binary(b"\x08", offsets=[9]),
    binary(b"\x08", offsets=[1 << 31]),
    binary(b"\x0c"),
    binary(b"\x70"),
    binary(b"\xb0"),
    binary(b"\x15" + bytes(32)),
    binary(b"\x21\x00\x00"),
    binary(b"\x88" + bytes(9)),
    binary(b"\x5f\x12\xff\xff\xff\xff"),
    binary(b"\x4f\x13\xff\xff\xff\xff\xff\xff\xff\xff"),
    binary(b"\x5f\x14" + bytes(16)),
    binary(b"\x5f\x08"),
    binary(b"\x5f\x00\x01xx"),
    binary(b"\x4f\x12\x00\x00\x07\xd0" + b"\x09" * 2000, top=2),
    binary(b"\x51\xff"),
    binary(b"\x61\xd8\x00"),
    binary(listing(9)),
    binary(b"\xd1\x00\x01\x00\x01", b"\x08"),
    binary(b"\xd2\x00\x01\x00\x01\x00\x02\x00\x02", b"\x51a", b"\x08"),
]


async def test_damaged_binary_document_is_a_syntax_error(parse):
    accepted = []
    for document in DAMAGED:
        with suppress(PlistSyntax):
            await parse(document)
            accepted.append(document)
    assert accepted == []


async def test_object_that_contains_itself_is_rejected(parse):
    with pytest.raises(PlistRefused, match="contains itself"):
        await parse(binary(listing(0)))


async def test_cycle_of_objects_is_rejected(parse):
    with pytest.raises(PlistRefused, match="contains itself"):
        await parse(binary(listing(1), b"\xd1\x00\x02\x00\x00", b"\x51a"))


async def test_shared_object_is_not_a_cycle(parse):
    assert await parse(binary(listing(1, 1), listing(2), b"\x09")) == [[True], [True]]


async def test_shared_lists_count_for_each_reference(parse):
    lists = [listing(*[n + 1] * 10) for n in range(20)]
    with pytest.raises(PlistTooLarge, match="values"):
        await parse(binary(*lists, b"\x09"))


async def test_shared_text_counts_for_each_reference(parse):
    with pytest.raises(PlistTooLarge, match="bytes"):
        await parse(binary(listing(*[1] * 100), text(1024 * 1024)))


async def test_objects_at_the_same_offset_are_counted_separately(parse):
    document = binary(
        listing(*range(1, 101)), text(1024 * 1024), offsets=[8] + [8 + len(listing(*range(1, 101)))] * 100
    )
    with pytest.raises(PlistTooLarge, match="bytes"):
        await parse(document)


@pytest.mark.parametrize("form", ["xml", "binary"])
async def test_deep_nesting_is_rejected(parse, form):
    if form == "xml":
        document = b"<plist>" + b"<array>" * 50_000 + b"</array>" * 50_000 + b"</plist>"
    else:
        document = binary(*(listing(n + 1) for n in range(2_000)), b"\x09")
    with pytest.raises(PlistTooLarge, match="nested") as caught:
        await parse(document)
    assert caught.value.code == "plist.too_large"


async def test_maximum_depth_is_accepted(parse, dump):
    value = []
    for _ in range(47):
        value = [value]
    assert await parse(await dump(value)) == value
    assert await parse(await dump(value, form="binary")) == value
    with pytest.raises(PlistTooLarge):
        await dump([value])


async def test_too_many_values_are_rejected(parse):
    with pytest.raises(PlistTooLarge, match="values"):
        await parse(b"<plist><array>" + b"<true/>" * 100_000 + b"</array></plist>")


class TestSmallLimits:
    @pytest.fixture
    def settings(self):
        return {"max_bytes": 1024, "max_values": 10}

    async def test_long_document_is_rejected_before_parsing(self, parse):
        with pytest.raises(PlistTooLarge, match="1,025"):
            await parse(b"x" * 1025)

    async def test_long_list_is_rejected_by_its_length(self, parse):
        with pytest.raises(PlistTooLarge, match="values"):
            await parse(binary(listing(*[9] * 11)))

    async def test_document_is_rejected_by_its_number_of_objects(self, parse):
        with pytest.raises(PlistTooLarge, match="values"):
            await parse(binary(b"\x08", *[b"\x09"] * 10))

    async def test_long_document_is_not_written(self, dump):
        with pytest.raises(PlistTooLarge, match="document"):
            await dump("<" * 1000)
        with pytest.raises(PlistTooLarge, match="texts"):
            await dump(b"0" * 1025)


UNSUPPORTED_XML = [
    "<plist><real>nan</real></plist>",
    "<plist><real>-infinity</real></plist>",
    "<plist><real>1e999</real></plist>",
    "<plist><integer>18446744073709551616</integer></plist>",
    "<plist><integer>-9223372036854775809</integer></plist>",
]


async def test_xml_number_that_json_does_not_support_is_an_error(parse):
    for document in UNSUPPORTED_XML:
        with pytest.raises(PlistValue) as caught:
            await parse(document)
        assert (caught.value.code, bool(caught.value.hint)) == ("plist.value", True)


UNSUPPORTED_BINARY = [
    b"\x00",
    b"\x23" + struct.pack(">d", float("inf")),
    b"\x22" + struct.pack(">f", float("nan")),
    b"\x14" + b"\x7f" + bytes(15),
    b"\x33" + struct.pack(">d", 1e300),
    b"\x33" + struct.pack(">d", float("nan")),
    b"\x33" + struct.pack(">d", -1e12),
]


async def test_binary_value_that_json_does_not_support_is_an_error(parse):
    accepted = []
    for encoded in UNSUPPORTED_BINARY:
        with suppress(PlistValue):
            await parse(binary(encoded))
            accepted.append(encoded)
    assert accepted == []


@pytest.mark.parametrize("form", [plistlib.FMT_XML, plistlib.FMT_BINARY])
async def test_object_that_would_be_decoded_as_bytes_is_rejected(parse, form):
    with pytest.raises(PlistSyntax, match="represents bytes"):
        await parse(plistlib.dumps({"a": {"__bytes__": "no base64"}}, fmt=form))


UNSUPPORTED_VALUES = [
    None,
    [None],
    {"a": None},
    1 << 64,
    -(1 << 63) - 1,
    "a\x00b",
    "\x1b[2J",
    "\ufffe",
    {"a\x01": 1},
    {"__date__": "yesterday"},
    {"__date__": "2001-01-01T00:00:00"},
    {"__date__": 7},
    {"CF$UID": -1},
    {"CF$UID": 1 << 64},
    {"CF$UID": True},
    {"CF$UID": "1"},
]


async def test_unsupported_value_is_not_written(dump):
    written = []
    for value in UNSUPPORTED_VALUES:
        try:
            await dump(value)
        except PlistValue as error:
            assert error.hint  # noqa: PT017
        else:
            written.append(value)
    assert written == []


async def test_binary_format_supports_characters_that_xml_does_not(parse, dump):
    value = {"a\x01": "b\x00\uffff"}
    assert await parse(await dump(value, form="binary")) == value


async def test_markup_in_text_is_escaped(parse, dump):
    value = {"</key><key>": "]]></string><true/>", "&lt;": "<!DOCTYPE>"}
    assert await parse(await dump(value)) == value


async def test_dates_and_references_round_trip(parse, dump):
    value = {"at": {"__date__": "2001-02-03T04:05:06Z"}, "to": {"CF$UID": 7}}
    assert await parse(await dump(value, form="binary"), typed=True) == value
    later = {"__date__": "2001-02-03T05:05:06+01:00"}
    assert await parse(await dump(later), typed=True) == {"__date__": "2001-02-03T04:05:06Z"}


async def test_parse_requires_the_capability(host):
    with pytest.raises(OpDenied):
        await host.op("plist.parse", {"data": "<plist><true/></plist>"}, grants=[])
    assert await host.op("plist.parse", {"data": "<plist><true/></plist>"}, grants=["plist"]) is True


class TestLargeDocument:
    @pytest.fixture
    def settings(self):
        return {"max_values": 200_000, "max_bytes": 64 * 1024 * 1024}

    @pytest.fixture(params=["asyncio", "trio"])
    def anyio_backend(self, request):
        return request.param

    async def test_timeout_stops_the_parser(self, host):
        rows = "".join(f"<dict><key>k{n}</key><integer>{n}</integer></dict>" for n in range(90_000))
        document = f"<plist><array>{rows}</array></plist>"
        with pytest.raises(OpTimeout):
            await host.op("plist.parse", {"data": document}, deadline=0.02)
        with anyio.fail_after(30):
            assert await host.op("plist.parse", {"data": "<plist><true/></plist>"}) is True


def read(document):
    reader = read_binary if document.startswith(b"bplist00") else read_xml
    return reader(document, Config(), lambda: None, typed=False)


def peak(work, *errors):
    """Return the peak memory of the work."""
    tracemalloc.start()
    try:
        work()
    except errors:
        pass
    finally:
        peak_bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak_bytes


class TestPlistlib:
    """The README's claims about `plistlib`: it accepts these documents, or fails in another way."""

    def test_plistlib_copies_shared_bytes(self):
        numbers = range(1, 501)
        first = listing(*numbers)
        document = binary(first, text(100_000), offsets=[8] + [8 + len(first)] * len(numbers))
        assert len(document) < 110_000
        assert peak(lambda: plistlib.loads(document)) > 50_000_000
        assert peak(lambda: read(document), PlistTooLarge) < 10_000_000

    def test_plistlib_has_no_depth_limit(self):
        document = binary(*(listing(n + 1) for n in range(2_000)), b"\x09")
        with pytest.raises(RecursionError):
            plistlib.loads(document)
        with pytest.raises(PlistTooLarge, match="nested"):
            read(document)

    @pytest.mark.parametrize(
        ("document", "found"),
        [
            (b"<plist><integer>1_0</integer></plist>", 10),
            (b"<plist><data>!</data></plist>", b""),
            (b"<plist><true>no</true></plist>", True),
            (b"<plist><true/><false/></plist>", False),
            (b"<plist><array><sting>a</sting></array></plist>", []),
            (b"<plist><dict><key>a</key><true/><key>a</key><false/></dict></plist>", {"a": False}),
            (binary(b"\x08", offsets=[0]), "\u706c\u6973"),
            (binary(b"\xd1\x00\x01\x00\x01", b"\x08"), {False: False}),
            (binary(b"\xd2\x00\x01\x00\x01\x00\x02\x00\x03", b"\x51a", b"\x08", b"\x09"), {"a": True}),
        ],
    )
    def test_plistlib_accepts_invalid_documents(self, document, found):
        assert plistlib.loads(document) == found
        with pytest.raises(PlistSyntax):
            read(document)

    def test_long_tag_takes_linear_time(self):
        document = b"<plist><true" + b" " * 8_000_000 + b"/></plist>"
        started = time.monotonic()
        assert read(document) is True
        # the library takes 11 seconds with the parser of Python 3.11.7
        assert time.monotonic() - started < 2
