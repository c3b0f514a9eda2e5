import pytest
from hypothesis import given
from hypothesis import strategies as st
from sideband_model_client import TextPieces, whole_characters


def test_surrogates_are_joined_across_pieces():
    text = TextPieces()
    assert [text.add(piece) for piece in ("a\ud83d", "\ude00b", "")] == ["a", "😀b", ""]
    assert (text.text, text.last) == ("a😀b", "b")


def test_unpaired_surrogate_is_replaced():
    text = TextPieces()
    assert text.add("a\ud83d") == "a"
    assert text.text == "a\N{REPLACEMENT CHARACTER}"
    assert text.add("b") == "\N{REPLACEMENT CHARACTER}b"


def test_text_without_pieces_is_empty():
    assert (TextPieces().text, TextPieces().last) == ("", "")


def test_count_function_may_reject_a_piece():
    def count(piece):
        if len(piece) > 2:
            raise ValueError("too long")

    text = TextPieces(count)
    text.add("ab")
    with pytest.raises(ValueError, match="too long"):
        text.add("abc")
    assert text.text == "ab"


@given(st.lists(st.text(st.sampled_from("a\ud83d\ude00é"), max_size=3)))
def test_pieces_add_up_to_the_text_except_for_a_trailing_surrogate(pieces):
    text = TextPieces()
    shown = "".join(text.add(piece) for piece in pieces)
    assert text.text.encode().decode() == text.text
    assert text.text in (shown, f"{shown}\N{REPLACEMENT CHARACTER}")
    assert text.text == whole_characters("".join(pieces))
