import plistlib
from contextlib import suppress
from datetime import datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sideband_plist import Config, PlistError, PlistMissing
from sideband_plist._binary import read_binary
from sideband_plist._writing import write
from sideband_plist._xml import read_xml

pytestmark = pytest.mark.anyio

FORMS = [plistlib.FMT_XML, plistlib.FMT_BINARY]
ALL = {
    "text": "grüß \U0001f600 <&>",
    "empty": "",
    "data": b"\x00\xff",
    "yes": True,
    "no": False,
    "small": -7,
    "large": (1 << 64) - 1,
    "least": -(1 << 63),
    "real": 0.5,
    "list": [1, [2, []], {}],
    "object": {"a": {"b": "c"}},
}


@pytest.mark.parametrize("form", FORMS)
async def test_values_of_each_type_are_read(parse, form):
    assert await parse(plistlib.dumps(ALL, fmt=form)) == ALL


@pytest.mark.parametrize("form", FORMS)
async def test_date_is_text_or_typed(parse, form):
    document = plistlib.dumps([datetime(2001, 2, 3, 4, 5, 6)], fmt=form)  # noqa: DTZ001  the library takes it as UTC
    assert await parse(document) == ["2001-02-03T04:05:06Z"]
    assert await parse(document, typed=True) == [{"__date__": "2001-02-03T04:05:06Z"}]


async def test_archive_reference_is_an_object_with_a_uid(parse):
    document = plistlib.dumps({"root": plistlib.UID(70_000)}, fmt=plistlib.FMT_BINARY)
    assert await parse(document) == {"root": {"CF$UID": 70_000}}


async def test_xml_text_ignores_the_declared_encoding(parse):
    assert await parse('<?xml version="1.0" encoding="latin-1"?><plist><string>grüß</string></plist>') == "grüß"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1"])
async def test_xml_bytes_use_the_declared_encoding(parse, encoding):
    text = f'<?xml version="1.0" encoding="{encoding}"?><plist><string>grüß</string></plist>'
    assert await parse(text.encode(encoding)) == "grüß"


async def test_number_formats_of_common_tools_are_read(parse):
    numbers = "<integer>0x10</integer><integer>+7</integer><integer> -3 </integer><real>1e3</real>"
    assert await parse(f"<plist><array>{numbers}</array></plist>") == [16, 7, -3, 1000.0]


async def test_extract_returns_values_by_path(parse):
    document = plistlib.dumps({"Accounts": [{"Name": "ann"}], "n": 1})
    found = await parse(document, extract={"user": ["Accounts", 0, "Name"], "n": ["n"], "all": []})
    assert found == {"user": "ann", "n": 1, "all": {"Accounts": [{"Name": "ann"}], "n": 1}}


async def test_extract_by_index_selects_an_object_of_an_archive(parse):
    archive = {
        "$archiver": "NSKeyedArchiver",
        "$objects": ["$null", "key", b"\x01\x02"],
        "$top": {"root": plistlib.UID(1)},
    }
    document = plistlib.dumps(archive, fmt=plistlib.FMT_BINARY)
    assert await parse(document, extract={"salt": 2}) == {"salt": b"\x01\x02"}


async def test_extract_by_index_selects_an_item_of_a_list(parse):
    assert await parse(plistlib.dumps(["a", "b"]), extract={"second": 1}) == {"second": "b"}


@pytest.mark.parametrize("path", [7, ["x"], [0, "x"], [0, 0], ["0"], [1, 9]])
async def test_missing_path_is_an_error_that_names_it(parse, path):
    with pytest.raises(PlistMissing, match="`wanted`") as caught:
        await parse(plistlib.dumps(["text", []]), extract={"wanted": path})
    assert caught.value.code == "plist.missing"
    assert caught.value.hint


VALUES = st.recursive(
    st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"), max_size=20)
    | st.binary(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["a", "b", "Ключ", "CF$UID "]), inner, max_size=4)
    ),
    max_leaves=20,
)


def never_stop():
    pass


class Cancelled(Exception):
    pass


@pytest.mark.parametrize("form", ["xml", "binary"])
def test_pulse_stops_reading_and_writing(form):
    def pulse():
        raise Cancelled

    value = [1] * 5_000
    document = write(value, form, Config(), never_stop)
    read = {"xml": read_xml, "binary": read_binary}[form]
    with pytest.raises(Cancelled):
        read(document, Config(), pulse, typed=False)
    with pytest.raises(Cancelled):
        write(value, form, Config(), pulse)


@given(VALUES)
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_written_document_is_read_back(value):
    for form, read in (("xml", read_xml), ("binary", read_binary)):
        assert read(write(value, form, Config(), never_stop), Config(), never_stop, typed=True) == value


@given(VALUES)
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_plistlib_reads_written_documents(value):
    for form in ("xml", "binary"):
        assert plistlib.loads(write(value, form, Config(), never_stop)) == value


@given(st.binary(max_size=300))
@settings(max_examples=100, deadline=None)
def test_arbitrary_binary_document_is_read_or_rejected(data):
    for document in (b"bplist00" + data, b"bplist00" + data + bytes([0] * 6 + [1, 1] + [0] * 7 + [4] + [0] * 16)):
        with suppress(PlistError):
            read_binary(document, Config(), never_stop, typed=False)


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_damaged_document_is_read_or_rejected(data):
    form = data.draw(st.sampled_from(["xml", "binary"]))
    document = bytearray(write(ALL, form, Config(), never_stop))
    for _ in range(data.draw(st.integers(1, 6))):
        document[data.draw(st.integers(8, len(document) - 1))] = data.draw(st.integers(0, 255))
    read = {"xml": read_xml, "binary": read_binary}[form]
    with suppress(PlistError):
        read(bytes(document), Config(), never_stop, typed=False)
