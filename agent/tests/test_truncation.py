import json
import re
from time import perf_counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sideband_agent._tools._truncation import cut

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=60), inner, max_size=20),
    max_leaves=60,
)


def long_rows(count=1_000):
    return [{"id": number, "name": f"row {number}", "text": "x" * 60} for number in range(count)]


def test_a_short_text_stays_as_it_is():
    assert cut("hello" * 4, 5).text == "hello" * 4
    assert cut("hello" * 4, 5).omitted == 0


def test_head_and_tail_remain_and_the_note_says_what_is_missing():
    text = "\n".join(f"line {number}" for number in range(10_000))
    part = cut(text, 200, handle="abc123")
    assert part.text.startswith("line 0\nline 1\n")
    assert part.text.endswith("line 9998\nline 9999")
    assert f"{part.omitted:,} of {len(text):,} characters" in part.text
    assert "`abc123`" in part.text
    assert len(part.text) <= 800


def test_what_is_shown_and_what_is_missing_are_the_whole():
    text = "abcdefghij" * 1_000
    part = cut(text, 100)
    head, tail = part.text.split("\n")[0], part.text.split("\n")[2]
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + len(tail) + part.omitted == len(text)


def test_lines_are_kept_whole_where_they_are_short():
    text = "\n".join(f"<{number:04}>" for number in range(5_000))
    lines = [line for line in cut(text, 150).text.splitlines() if not line.startswith("[…")]
    assert all(re.fullmatch(r"<\d{4}>|", line) for line in lines)


@given(text=st.text(max_size=3_000), tokens=st.integers(30, 500))
def test_a_cut_text_is_never_longer_than_asked(text, tokens):
    assert len(cut(text, tokens, handle="0123456789abcdef").text) <= tokens * 4


@pytest.mark.parametrize("cluster", ["👩‍👩‍👧‍👦", "e\u0301", "👍🏽", "🇩🇪", "\r\n"])
@pytest.mark.parametrize("shift", range(8))
def test_what_people_see_as_one_character_is_not_split(cluster, shift):
    text = "x" * shift + cluster * 2_000 + "y"
    head, tail = re.split(r"\n?\[… .* …\]\n", cut(text, 100).text)
    assert (head.removesuffix("\n") if cluster != "\r\n" else head).replace(cluster, "").strip("x") == ""
    assert tail.replace(cluster, "") == "y"


def test_marks_without_end_are_split_in_the_end():
    assert len(cut("e" + "\u0301" * 10_000, 100).text) <= 400


@given(value=st.lists(JSON, min_size=1) | st.dictionaries(st.text(), JSON, min_size=1), tokens=st.integers(0, 300))
@example(value=[[[["x" * 5_000]]]], tokens=60)
@example(value={"x" * 5_000: 1}, tokens=60)
@example(value={"a": "\ud800" * 400, "…": 1, "… left out": 2}, tokens=60)
@example(value=[10**3_000], tokens=60)
def test_json_remains_json_and_is_not_longer_than_asked(value, tokens):
    text = json.dumps(value)
    part = cut(text, tokens, handle="abc")
    json.loads(part.text)
    part.text.encode()
    assert len(part.text) <= max(tokens * 4, 100)


def test_a_long_list_keeps_its_head_and_its_tail():
    part = cut(json.dumps(long_rows()), 1_000, handle="abc123")
    kept = json.loads(part.text)
    assert kept[0] == long_rows()[0]
    assert kept[-2] == long_rows()[-1]
    assert "`abc123`" in kept[-1]
    missing = next(one for one in kept if isinstance(one, str))
    assert f"{1_000 - (len(kept) - 2)} items" in missing
    assert len(part.text) > 3_000


def test_an_object_keeps_all_of_its_names_and_its_short_values():
    value = {"id": 7, "log": "x" * 9_000, "rows": long_rows(), "ok": True, "other": "y" * 9_000}
    kept = json.loads(cut(json.dumps(value), 1_000).text)
    assert kept.keys() == {*value, "…"}
    assert (kept["id"], kept["ok"]) == (7, True)
    assert kept["log"].startswith("xxx")
    assert "characters" in kept["log"]


def test_numbers_remain_as_they_were_written():
    text = '{"a": 1.10, "b": 1e400, "c": 123456789012345678901234567890, "d": "' + "x" * 2_000 + '"}'
    part = cut(text, 200).text
    assert all(one in part for one in ("1.10,", "1e400,", "123456789012345678901234567890,"))


def test_json_that_is_long_for_its_white_space_only_loses_nothing():
    value = {"rows": list(range(100))}
    part = cut(json.dumps(value, indent=20), 200)
    assert json.loads(part.text) == value
    assert part.omitted == 0


@pytest.mark.parametrize("text", ["{" * 5_000, "[" * 200_000, '{"a": NaN, "b": "' + "x" * 3_000 + '"}', "[1, 2" * 999])
def test_what_only_looks_like_json_is_cut_like_text(text):
    part = cut(text, 100)
    assert "characters are left out here" in part.text
    assert len(part.text) <= 400


@pytest.mark.parametrize(
    "text", ["x" * 8_000_000, json.dumps(["y" * 50] * 100_000), json.dumps({"a": "\x00" * 900_000})]
)
def test_a_huge_text_is_cut_in_a_bounded_time(text):
    began = perf_counter()
    cut(text, 12_000)
    assert perf_counter() - began < 5
