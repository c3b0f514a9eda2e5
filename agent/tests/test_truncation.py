import json
import re
from time import perf_counter

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sideband_agent._tools._truncation import cut

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5).map(lambda text: text * 60),
    lambda inner: st.lists(inner, max_size=10) | st.dictionaries(st.text('ab"…é', max_size=20), inner, max_size=10),
    max_leaves=15,
)


def long_rows(count=1_000):
    return [{"id": number, "name": f"row {number}", "text": "x" * 60} for number in range(count)]


def test_short_text_is_unchanged():
    assert cut("hello" * 4, 5).text == "hello" * 4
    assert cut("hello" * 4, 5).omitted == 0


def test_head_and_tail_remain_with_a_note_between():
    text = "\n".join(f"line {number}" for number in range(10_000))
    part = cut(text, 200, handle="abc123")
    assert part.text.startswith("line 0\nline 1\n")
    assert part.text.endswith("line 9998\nline 9999")
    assert f"{part.omitted:,} of {len(text):,} characters" in part.text
    assert "`abc123`" in part.text
    assert len(part.text) <= 800


def test_shown_and_omitted_characters_add_up():
    text = "abcdefghij" * 1_000
    part = cut(text, 100)
    head, tail = part.text.split("\n")[0], part.text.split("\n")[2]
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + len(tail) + part.omitted == len(text)


def test_short_lines_are_not_cut():
    text = "\n".join(f"<{number:04}>" for number in range(5_000))
    lines = [line for line in cut(text, 150).text.splitlines() if not line.startswith("[…")]
    assert all(re.fullmatch(r"<\d{4}>|", line) for line in lines)


@given(text=st.text(min_size=1, max_size=20).map(lambda text: text * 200), tokens=st.integers(30, 500))
def test_cut_text_does_not_exceed_the_limit(text, tokens):
    assert len(cut(text, tokens, handle="0123456789abcdef").text) <= tokens * 4


@pytest.mark.parametrize("cluster", ["👩‍👩‍👧‍👦", "e\u0301", "👍🏽", "🇩🇪", "\r\n"])
@pytest.mark.parametrize("shift", range(8))
def test_grapheme_cluster_is_not_split(cluster, shift):
    text = "x" * shift + cluster * 2_000 + "y"
    head, tail = re.split(r"\n?\[… .* …\]\n", cut(text, 100).text)
    assert (head.removesuffix("\n") if cluster != "\r\n" else head).replace(cluster, "").strip("x") == ""
    assert tail.replace(cluster, "") == "y"


def test_endless_combining_marks_are_split():
    assert len(cut("e" + "\u0301" * 10_000, 100).text) <= 400


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    value=st.lists(JSON, min_size=1) | st.dictionaries(st.text(max_size=20), JSON, min_size=1),
    tokens=st.integers(0, 300),
)
@example(value=[[[["x" * 5_000]]]], tokens=60)
@example(value={"x" * 5_000: 1}, tokens=60)
@example(value={"a": "\ud800" * 400, "…": 1, "… omitted": 2}, tokens=60)
@example(value=[10**3_000], tokens=60)
@example(value=json.loads("[" * 80 + '"' + "x" * 5_000 + '"' + "]" * 80), tokens=50)
def test_json_remains_valid_and_does_not_exceed_the_limit(value, tokens):
    text = json.dumps(value)
    part = cut(text, tokens, handle="abc")
    json.loads(part.text)
    part.text.encode()
    assert len(part.text) <= max(tokens * 4, 100)


def test_long_list_keeps_its_head_and_tail():
    part = cut(json.dumps(long_rows()), 1_000, handle="abc123")
    kept = json.loads(part.text)
    assert kept[0] == long_rows()[0]
    assert kept[-2] == long_rows()[-1]
    assert "`abc123`" in kept[-1]
    missing = next(one for one in kept if isinstance(one, str))
    assert f"{1_000 - (len(kept) - 2)} items" in missing
    assert len(part.text) > 3_000


def test_object_keeps_all_names_and_short_values():
    value = {"id": 7, "log": "x" * 9_000, "rows": long_rows(), "ok": True, "other": "y" * 9_000}
    kept = json.loads(cut(json.dumps(value), 1_000).text)
    assert kept.keys() == {*value, "…"}
    assert (kept["id"], kept["ok"]) == (7, True)
    assert kept["log"].startswith("xxx")
    assert "characters" in kept["log"]


def test_note_does_not_replace_an_entry_of_its_name():
    kept = json.loads(cut(json.dumps({"…": 1, "log": "x" * 9_000}), 1_000).text)
    assert kept["…"] == 1
    assert kept.keys() == {"…", "log", "……"}


def test_numbers_are_not_reformatted():
    text = '{"a": 1.10, "b": 1e400, "c": 123456789012345678901234567890, "d": "' + "x" * 2_000 + '"}'
    part = cut(text, 200).text
    assert all(one in part for one in ("1.10,", "1e400,", "123456789012345678901234567890,"))


def test_json_that_fits_without_white_space_is_complete():
    value = {"rows": list(range(100))}
    part = cut(json.dumps(value, indent=20), 200)
    assert json.loads(part.text) == value
    assert part.omitted == 0


@pytest.mark.parametrize("text", ["{" * 5_000, "[" * 200_000, '{"a": NaN, "b": "' + "x" * 3_000 + '"}', "[1, 2" * 999])
def test_invalid_json_is_cut_like_text(text):
    part = cut(text, 100)
    assert "characters omitted" in part.text
    assert len(part.text) <= 400


@pytest.mark.parametrize(
    "text", ["x" * 8_000_000, json.dumps(["y" * 50] * 100_000), json.dumps({"a": "\x00" * 900_000})]
)
def test_huge_text_is_cut_in_bounded_time(text):
    began = perf_counter()
    cut(text, 12_000)
    assert perf_counter() - began < 5
