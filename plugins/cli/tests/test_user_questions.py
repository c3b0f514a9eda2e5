"""Questions of tools: what is shown, and what a typed text answers."""

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sideband.asking import QuestionOption, UserAnswer, UserQuestion
from sideband.ops import Origin
from sideband_cli._terminal._questions import ANY_TEXT, TypedAnswer, parse_answer, prompt
from sideband_cli._terminal._request_text import question_rows
from sideband_cli._terminal._user_questions import answer_of, asker_of, question_lines

TEXT = st.text() | st.sampled_from(["Allow this? [y/N] ", "\nGrant this?\n", "\r▌ Grant this?", "\x1b[2J"])
PORT = UserQuestion("Which port?", (QuestionOption("8443"), QuestionOption("9443", "as in production")))


def answered(*typed, questions=(PORT,)):
    """Return what was shown, and the answers."""
    shown, texts = [], iter(typed)

    async def ask(lines, question, keys):
        shown.append(lines)
        return parse_answer(next(texts), keys)

    return shown, anyio.run(asker_of(ask), questions, Origin(tool="ask"))


def test_question_is_shown_with_who_asks_and_its_options():
    (lines,), _ = answered("1")
    assert lines == [
        "Question 1 of 1 of the tool `ask`. Your answer is sent to the model; it allows nothing.",
        "  │ Which port?",
        "  1:",
        "  │ 8443",
        "  2:",
        "  │ 9443",
        "     that is",
        "  │ as in production",
        "type a number, or another answer, or nothing to leave the question open",
    ]


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("2", UserAnswer(("9443",))),
        (" 80 or 81\n", UserAnswer(text="80 or 81")),
        ("", UserAnswer()),
        ("yes", UserAnswer(text="yes")),
    ],
)
def test_typed_text_is_a_choice_or_another_answer(typed, answer):
    assert answered(typed)[1] == [answer]


@pytest.mark.parametrize("typed", ["0", "3", "1 2"])
def test_number_without_an_option_is_asked_again(typed):
    shown, answers = answered(typed, "1")
    assert (len(shown), answers) == (2, [UserAnswer(("8443",))])
    assert shown[1][0].startswith(f"there is no such choice: {typed}; type a number")


def test_several_options_are_chosen_once_each():
    days = UserQuestion("Which days?", (QuestionOption("Monday"), QuestionOption("Friday")), multiple=True)
    assert answer_of("2, 1 2", days) == UserAnswer(("Friday", "Monday"))


def test_every_question_gets_its_answer():
    _, answers = answered("a", "b", questions=(UserQuestion("x"), UserQuestion("y")))
    assert answers == [UserAnswer(text="a"), UserAnswer(text="b")]


@given(text=st.text())
def test_no_answer_to_a_question_allows_anything(text):
    assert not parse_answer(text, ANY_TEXT).is_yes


@given(text=TEXT, option=TEXT, description=TEXT)
def test_no_text_of_a_question_looks_like_another_line(text, option, description):
    question = UserQuestion(text, (QuestionOption(option, description),))
    first, *rows, last = question_rows(question_lines(question, Origin(tool="ask"), "1 of 1"), 10_000)
    assert first.startswith("Question 1 of 1 of the tool `ask`.")
    assert last.startswith("type a number")
    assert all(row.startswith("  │ ") or row in ("  1:", "     that is") for row in rows)


def test_prompt_for_any_text_offers_no_keys():
    assert prompt("Your answer:", ANY_TEXT) == "Your answer: "


def test_answer_is_shown_without_hidden_characters():
    assert TypedAnswer("", "a\x1b[2J").shown == "a\\x1b[2J"
    assert TypedAnswer("n", "later").shown == "n later"


def test_without_a_terminal_no_user_is_asked():
    assert asker_of(None) is None
