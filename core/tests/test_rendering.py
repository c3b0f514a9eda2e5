"""Rendered text: no character of it can hide, move, reorder or forge anything."""

import itertools
import json
from unicodedata import category, normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sideband.rendering import MARK, Renderer, indented, quoted, render

INVISIBLE = [
    *map(
        chr, [*range(32), *range(127, 160), 0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180E, 0x2800, 0x3164]
    ),
    *map(chr, [*range(0x200B, 0x2010), *range(0x2028, 0x202F), *range(0x2060, 0x2070), *range(0xFE00, 0xFE10)]),
    *map(chr, [0xFEFF, 0xFFA0, *range(0xFFF9, 0xFFFC), 0xFFFE, 0xE000, 0xD800, 0xDFFF, 0x1D173]),
    *map(chr, [*range(0xE0000, 0xE0080), *range(0xE0100, 0xE01F0)]),
]
READABLE = {
    "Arabic": "مرحبا بِسْمِ ٱللَّٰهِ",
    "Chinese": "汉字 漢字",
    "Devanagari": "हिन्दी क्षत्रिय",
    "Greek": "Ελληνικά",
    "Hebrew": "שָׁלוֹם בְּרֵאשִׁ֖ית",
    "Japanese": "日本語 カタカナ",
    "Korean": "한국어",
    "decomposed Korean": normalize("NFD", "한국어"),
    "Burmese": "ကျွှေါင်း ကြွေး",
    "Thai": "สวัสดีครับ ที่นี่ น้ำ",
    "Tibetan": "བོད་སྐད",
    "Vietnamese": "Tiếng Việt",
    "decomposed Vietnamese": normalize("NFD", "Tiếng Việt"),
    "emoji": "🎉 🇫🇷 👍🏽",
}
JOINED = {
    "a family": "👨‍👩‍👧‍👦",
    "a flag with a selector": "🏳️‍🌈",
    "a heart with a selector": "❤️",
    "a keycap": "1️⃣ #️⃣",
    "Persian": "می‌خواهم",
    "Sinhala": "ක්‍ෂ",
    "French spaces": "10\u202f000\u00a0€ !",
    "an ideographic space": "漢\u3000字",
    "lines and tabs": "a\tb\nc",
}
VISIBLE = [*'ab `"\\1漢א🎉', MARK, "\n", "\u0301", "\u0e49", "\u11a8", "\ud7cb", "\u20e3"]
hostile = st.lists(st.sampled_from(VISIBLE) | st.sampled_from(INVISIBLE), max_size=30).map("".join)


@pytest.mark.parametrize("prose", [False, True])
def test_each_invisible_character_is_escaped(prose):
    kept = "\n\t" if prose else ""
    assert [one for one in INVISIBLE if one in render(f"a{one}{one}b", prose=prose) and one not in kept] == []


@given(hostile)
def test_rendered_text_is_one_line_of_visible_characters(text):
    shown = render(text)
    assert [one for one in shown if not one.isprintable() or one in INVISIBLE or one == MARK] == []


@given(hostile)
def test_rendered_prose_has_no_control_and_no_mark(text):
    shown = render(text, prose=True)
    assert [one for one in shown if category(one) in ("Cc", "Cs", "Zl", "Zp") and one not in "\n\t"] == []
    assert MARK not in shown


@given(hostile, st.booleans())
def test_rendering_twice_changes_nothing(text, prose):
    once = render(text, prose=prose)
    assert render(once, prose=prose) == once


@given(hostile, st.lists(st.integers(0, 60)), st.booleans())
def test_streamed_text_does_not_depend_on_where_it_is_split(text, cuts, prose):
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    renderer = Renderer(prose=prose)
    pieces = [renderer.feed(text[begin:end]) for begin, end in itertools.pairwise(places)]
    assert "".join(pieces) == Renderer(prose=prose).feed(text)


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126)))
def test_plain_text_is_unchanged(text):
    assert render(text) == text


@pytest.mark.parametrize("language", READABLE)
def test_text_of_a_language_is_unchanged_in_a_question(language):
    assert render(READABLE[language]) == READABLE[language]


@pytest.mark.parametrize("case", JOINED)
def test_joined_text_is_unchanged_in_prose_and_escaped_in_a_question(case):
    assert render(JOINED[case], prose=True) == JOINED[case]
    assert render(JOINED[case]) != JOINED[case]


def test_joiner_between_latin_letters_is_escaped():
    assert render("pay\u200dpal \u200c", prose=True) == "pay\\u200dpal \\u200c"


def test_repeated_joiners_and_selectors_are_escaped():
    assert render("❤\ufe0f\ufe0f\ufe0e", prose=True) == "❤\ufe0f\\ufe0f\\ufe0e"
    assert render("👨\u200d\u200d👩", prose=True) == "👨\u200d\\u200d👩"


@pytest.mark.parametrize("stacked", ["\u0301", "\u093e", "\u20dd", "\u11a8", "\ud7cb"])
def test_at_most_eight_marks_stack_on_a_character(stacked):
    assert render(f"a{stacked * 12}", prose=True).count(stacked) == 8


def test_mark_does_not_combine_with_the_text_before_the_value():
    assert render("\u0338a", prose=True) == "\\u0338a"
    assert render('"\u0338') == '"\\u0338'


def test_emoji_newer_than_the_tables_of_python_is_kept_in_prose():
    assert render("\U0001fae9", prose=True) == "\U0001fae9"


@given(st.text(max_size=60) | hostile, st.text(max_size=60) | hostile)
def test_quoted_values_differ_and_are_one_line(one, other):
    assert "\n" not in quoted(one)
    assert (quoted(one) == quoted(other)) == (one == other)


@given(hostile)
def test_value_cannot_end_its_quotation(text):
    shown = quoted(text)
    body = shown[1:-1]
    assert shown[0] == shown[-1]
    assert "`" not in body if shown[0] == "`" else '"' not in body.replace("\\\\", "").replace('\\"', "")


@given(hostile)
def test_lines_of_a_message_after_the_first_are_indented(text):
    assert all(line.startswith("  ") for line in indented(text)[1:])


@given(hostile)
def test_other_escape_is_used_for_the_same_characters(text):
    shown = render(
        json.dumps(text, ensure_ascii=False), escape=lambda one: f"\\u{ord(one):04x}" if ord(one) < 0x10000 else "?"
    )
    assert json.loads(shown) == "".join(one if one in shown or ord(one) < 0x10000 else "?" for one in text)


def test_line_ends_of_other_systems_are_line_feeds_in_prose():
    assert render("a\r\nb\rc", prose=True) == "a\nb\\rc"


def test_escape_in_a_quoted_value_differs_from_the_character():
    assert quoted("`\\n") == '"`\\\\n"'
    assert quoted("`\n") == '"`\\n"'
