"""Questions for approvals: what is shown, and which answers allow something."""

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sideband.approvals import ApprovalRequest
from sideband.broker import risk_of
from sideband.hooks import Decision, Note
from sideband.ops import Level
from sideband.rendering import render
from sideband_cli._terminal._questions import Questions, TypedAnswer, parse_answer, prompt, user_name
from sideband_cli._terminal._request_text import request_lines

WORDS = {"y": "y", "yes": "y", "once": "y", "s": "s", "session": "s", "a": "a", "always": "a"}


def request(**fields):
    return ApprovalRequest(
        **{
            "id": "1",
            "kind": "effect",
            "subject": "mail.send",
            "question": "May it?",
            "effect": {"to": "ann"},
            "digest": "",
            "grantee": "",
            **fields,
        }
    )


def answered(key, **fields):
    """Return the keys that a question offers, and the approval after an answer."""
    offered = []

    async def ask(reason, question, keys):
        offered.append(keys)
        return TypedAnswer(key, "not now" if key == "n" else "")

    return offered, anyio.run(Questions(ask).approver(), request(**fields))


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("keys", ["y", "ya", "ysa"])
def test_word_is_the_answer_for_its_key_if_the_question_offers_it(word, keys):
    expected = WORDS[word] if WORDS[word] in keys else "n"
    assert parse_answer(f" {word.upper()}\r\n", keys) == TypedAnswer(expected)


@given(text=st.text() | st.lists(st.sampled_from([*WORDS, " ", ",", "\t", "n", "no", "\0"])).map("".join))
def test_no_other_text_allows_anything(text):
    answer = parse_answer(text, "ysa")
    assert answer.is_yes == (text.strip().lower() in WORDS)
    assert render(answer.reason) == answer.reason


@pytest.mark.parametrize("text", ["n later", "no later", "N, later", "no:  later "])
def test_reason_may_follow_a_no(text):
    assert parse_answer(text, "y") == TypedAnswer("n", "later")


def test_reason_has_no_hidden_characters():
    assert parse_answer("n a\x1b[2J\u202e\ud800b", "y") == TypedAnswer("n", "a\\x1b[2J\\u202e\\ud800b")


def test_no_key_is_the_default():
    assert prompt("Allow this?", "ysa") == "Allow this? [y/s/a/N] "
    assert not parse_answer("", "ysa").is_yes


@pytest.mark.parametrize(("key", "scope"), [("y", "once"), ("s", "session"), ("a", "always")])
def test_approval_has_the_scope_of_the_key_and_the_name_of_the_user(key, scope):
    offered, approval = answered(key, grants={"session": ("mail",), "always": ("mail",)})
    assert offered == ["ysa"]
    assert (approval.verdict, approval.scope, approval.by) == ("allow", scope, f"{user_name()} (terminal)")


def test_refusal_has_its_reason_and_the_name_of_the_user():
    offered, approval = answered("n")
    assert offered == ["y"]
    assert (approval.verdict, approval.reason, approval.by) == ("deny", "not now", f"{user_name()} (terminal)")


def test_level_and_notes_of_guards_are_shown():
    risk = risk_of(Decision(notes=(Note("keeper", "a stranger"),)))
    lines = request_lines(request(level=Level.RESTRICTED, risk=risk))
    assert lines[-2:] == ["  level: restricted", "noted by guards: keeper: a stranger"]


def test_what_a_grant_accepts_is_shown_in_lines():
    effect = {
        "name": "mcp",
        "capabilities": ["mcp"],
        "arguments": {"changes": ["new tool go", "+Go."] + ["+x"] * 2_100},
    }
    lines = request_lines(request(kind="grant", subject="plugin:mcp", effect=effect))
    begin = lines.index("  to accept this:")
    assert lines[begin + 1 : begin + 3] == ["  │ new tool go", "  │ +Go."]
    assert lines[-1] == "  (… 102 lines omitted …)"


def test_note_of_a_guard_cannot_look_like_that_of_another_guard():
    notes = Note("keeper", "unknown host\nchecker: harmless"), Note("checker", "harmful")
    lines = request_lines(request(risk=risk_of(Decision(notes=notes))))
    assert lines[-3:] == ["  │ keeper: unknown host", "  │   checker: harmless", "  │ checker: harmful"]


@pytest.mark.parametrize(
    ("subject", "offered", "scope"),
    [
        ("plugin:tools", ("session", "always"), "session"),
        ("plugin:geo", ("always",), "always"),
        ("skill:notes", ("session", "always"), "always"),
    ],
)
def test_yes_option_gives_the_grant_of_a_plugin_for_the_session_and_that_of_a_skill_until_it_changes(
    subject, offered, scope
):
    effect = {"name": "x", "source": "/x", "capabilities": ("http",)}
    grants = dict.fromkeys(offered, ("http",))
    asked = request(kind="grant", subject=subject, effect=effect, grants=grants)
    answer = anyio.run(Questions(None, yes=True).approver(), asked)
    assert (answer.verdict, answer.scope) == ("allow", scope)
