"""Redaction of streamed text: the output equals the redacted text, for any split into pieces."""

import sys

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sideband.broker import Redaction
from sideband.broker._streams import PartRedaction, TextRedaction

pytestmark = pytest.mark.usefixtures("each_search")

# A small alphabet, so that complete, partial and overlapping values are frequent.
LETTERS = st.sampled_from("abcd/ \\é")
VALUES = st.lists(st.text(LETTERS, min_size=4, max_size=9), min_size=1, max_size=3)
TEXTS = st.lists(st.text(LETTERS, max_size=6) | st.integers(0, 2), max_size=12)


def redactor_for(values):
    redactor = Redaction()
    for number, value in enumerate(values):
        redactor.protect(value, f"N{number}")
    return redactor


def pieces_of(data, text):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


@settings(max_examples=200)
@given(values=VALUES, texts=TEXTS, data=st.data())
def test_output_of_a_stream_equals_the_redacted_text(values, texts, data):
    redactor = redactor_for(values)
    text = "".join(values[one % len(values)] if isinstance(one, int) else one for one in texts)
    stream = TextRedaction(redactor)
    given_out = [stream.feed(piece) for piece in pieces_of(data, text)]
    assert "".join([*given_out, stream.end()]) == redactor.text(text)


BROKEN = st.sampled_from(["", "\n", "\r\n", "\n  ", "\\n", "\\\\n", "\\r\\n  ", "\\", " ", "n"])


@settings(max_examples=100)
@given(
    value=st.text(st.sampled_from("anr\\ \né"), min_size=10, max_size=16),
    breaks=st.lists(BROKEN, min_size=17, max_size=17),
    around=st.lists(st.text(st.sampled_from("an\\ \n"), max_size=3), min_size=2, max_size=2),
    data=st.data(),
)
def test_output_of_a_stream_equals_the_redacted_text_if_values_are_broken_into_lines(value, breaks, around, data):
    redactor = redactor_for([value])
    broken = "".join(letter + between for letter, between in zip(value, breaks, strict=False))
    text = around[0] + broken + around[1] + value
    stream = TextRedaction(redactor)
    given_out = [stream.feed(piece) for piece in pieces_of(data, text)]
    assert "".join([*given_out, stream.end()]) == redactor.text(text)


@settings(max_examples=100)
@given(value=st.text(min_size=8, max_size=20), form=st.integers(0, 40), before=st.text(max_size=5), data=st.data())
def test_every_form_of_a_value_is_redacted_in_a_stream(value, form, before, data):
    from sideband.broker._forms import encoded_forms

    redactor = redactor_for([value])
    forms = sorted({one for one in encoded_forms(value.encode("utf-8", "replace")) if len(one) >= 8})
    text = f"{before}{forms[form % len(forms)]} after"
    stream = TextRedaction(redactor)
    given_out = [stream.feed(piece) for piece in pieces_of(data, text)]
    assert "".join([*given_out, stream.end()]) == redactor.text(text)


@pytest.mark.parametrize("split", range(1, 13))
def test_value_split_across_two_pieces_is_redacted(split):
    stream = TextRedaction(redactor_for(["s3cr3t-value"]))
    text = "s3cr3t-value"
    given_out = [stream.feed(text[:split]), stream.feed(text[split:]), stream.end()]
    assert "".join(given_out) == "[redacted:N0]"


def test_only_a_possible_beginning_of_a_value_is_held_back():
    stream = TextRedaction(redactor_for(["s3cr3t-value"]))
    assert stream.feed("Hello, world.") == "Hello, world."
    assert stream.feed("a s3cr") == "a "
    assert stream.feed("eam") == "s3cream"


@pytest.mark.parametrize("between", ["", "\n", " \t\r\n" * 2_000, "\\\\n" * 3_000])
@pytest.mark.parametrize("split", [1, 4, 12, 22])
def test_beginning_of_a_value_is_held_back_after_a_long_text(split, between):
    value = "s3cr3t-value-in-2-lines"
    stream = TextRedaction(redactor_for([value]))
    beginning = "word " * 2_000 + value[:split] + between
    assert stream.feed(beginning) + stream.feed(value[split:] + ".") + stream.end() == (
        "word " * 2_000 + "[redacted:N0]."
    )


def test_value_that_was_first_known_as_bytes_is_held_back():
    redactor = redactor_for([b"\xc3\n\xa9-s3cr3t-value", "é-s3cr3t-value"])
    stream = TextRedaction(redactor)
    assert stream.feed("é-s3cr3t") + stream.feed("-value") + stream.end() == "[redacted:N0]"


def test_value_protected_while_its_beginning_is_held_back_is_redacted():
    redactor = redactor_for(["s3cr3t-other"])
    stream = TextRedaction(redactor)
    shown = stream.feed("s3cr3t-")
    redactor.protect("s3cr3t-value", "late")
    assert shown + stream.feed("value.") + stream.end() == "[redacted:late]."


def test_endless_overlapping_values_are_redacted_in_bounded_memory():
    stream = TextRedaction(redactor_for(["aaaa"]))
    given_out = [stream.feed("a" * 1_000) for _ in range(200)]
    held = len(stream._text)
    whole = "".join([*given_out, stream.end()])
    assert held < 70_000
    assert "aaaa" not in whole


def test_endless_backslashes_are_searched_once():
    """Each piece would otherwise be searched together with all backslashes before it."""
    redactor = redactor_for(["s3cr3t-value-1"])
    stream = TextRedaction(redactor)
    pieces = ["\\"] * 1_000
    given_out = [stream.feed(piece) for piece in pieces]
    assert max(len(front._rest) for front in stream._fronts) == 1
    end = ["ns3cr3t-", "\\", "\\", "nvalue-1."]
    given_out += [*map(stream.feed, end), stream.end()]
    assert "".join(given_out) == redactor.text("".join(pieces + end))
    assert "".join(given_out).endswith("n[redacted:N0].")


@example(size=1)
@given(size=st.integers(1, 400))
@settings(max_examples=20)
def test_match_of_a_pattern_is_redacted_for_any_piece_size(size):
    redactor = Redaction()
    redactor.add_pattern(r"Bearer [a-z]{8,200}", "token")
    text = f"{'word ' * 100}Bearer {'x' * 100} and {'more ' * 100}"
    stream = TextRedaction(redactor)
    given_out = [stream.feed(text[start : start + size]) for start in range(0, len(text), size)]
    assert "".join([*given_out, stream.end()]) == redactor.text(text)


def test_work_is_linear_in_the_length_of_the_text():
    redactor = redactor_for([f"s3cr3t-value-{number}" for number in range(50)])

    def work(length):
        """Return the number of characters in all texts that functions are called with."""
        stream, text, characters = TextRedaction(redactor), "s3cr3t-valu " * (length // 12), 0

        def profile(frame, event, _argument):
            nonlocal characters
            if event == "call":
                characters += sum(len(one) for one in frame.f_locals.values() if isinstance(one, str))

        sys.setprofile(profile)
        try:
            for start in range(0, len(text), 4):
                stream.feed(text[start : start + 4])
        finally:
            sys.setprofile(None)
        return characters

    work(1_200)
    assert work(12_000) < 4.2 * work(3_000), "search what was searched before only as far as a value may begin there"


def parts_of(redactor, *parts):
    stream = PartRedaction(redactor)
    return [shown for part in parts for shown in stream.feed(part)] + list(stream.end())


def test_texts_of_consecutive_parts_are_one_text():
    shown = parts_of(
        redactor_for(["s3cr3t-value"]), {"type": "text", "text": "a s3cr3t"}, {"type": "text", "text": "-value."}
    )
    assert shown == [{"type": "text", "text": "a "}, {"type": "text", "text": "[redacted:N0]."}]


def test_held_back_text_is_emitted_before_a_part_of_another_type():
    shown = parts_of(
        redactor_for(["s3cr3t-value"]), {"type": "thinking", "text": "s3cr3t"}, {"type": "text", "text": "hi"}
    )
    assert shown == [{"type": "thinking", "text": "s3cr3t"}, {"type": "text", "text": "hi"}]


def test_interleaved_arguments_of_two_calls_are_separate_texts():
    def piece(index, text, name=""):
        return {"type": "tool_call", "index": index, "name": name, "arguments": text}

    shown = parts_of(
        redactor_for(["s3cr3t-value"]), piece(0, "", "echo"), piece(0, '"s3cr'), piece(1, "s3cr"), piece(0, '3t-value"')
    )
    assert shown == [piece(0, "", "echo"), piece(0, '"'), piece(0, '[redacted:N0]"'), piece(1, "s3cr")]


def test_other_strings_of_a_part_are_redacted_individually():
    shown = parts_of(redactor_for(["s3cr3t-value"]), {"type": "image", "note": "s3cr3t-value", "text": 3})
    assert shown == [{"type": "image", "note": "[redacted:N0]", "text": 3}]
