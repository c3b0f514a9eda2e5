"""Requests for approval and questions of tools, as lines and as forms."""

import pytest
from sideband.approvals import ApprovalRequest
from sideband.asking import QuestionOption, UserQuestion
from sideband.ops import Level, Origin
from sideband_serving import Unanswered, answers_of, approval_form, approval_of, questions_form, request_lines


def request(**changes):
    usual = {
        "id": "1",
        "kind": "effect",
        "subject": "files.write",
        "question": "Make this change?",
        "effect": {"path": "notes.txt", "content": "hello"},
        "preview": "would create `notes.txt`",
        "level": Level.CONTROLLED,
        "origin": Origin(tool="write"),
        "digest": "d",
        "grantee": "g",
        "grants": {"session": ("files:path=notes.txt",), "always": ("files:path=notes.txt,mode=write",)},
    }
    return ApprovalRequest(**{**usual, **changes})


def test_request_is_shown_with_its_exact_effect_and_what_each_scope_grants():
    assert [*request_lines(request(), scopes=("session", "always"))] == [
        "files.write: Make this change?",
        "  requested by the tool write",
        '  path = "notes.txt"',
        '  content = "hello"',
        "  level: controlled",
        "  preview:",
        "  │ would create `notes.txt`",
        "With `session`, later calls are allowed too, within: files:path=notes.txt",
        "With `always`, later calls are allowed too, within: files:path=notes.txt,mode=write",
    ]


def test_what_is_shown_in_another_way_can_be_omitted():
    lines = [*request_lines(request(), omitted=("content", "preview"))]
    assert not any("hello" in one or "would create" in one for one in lines)
    assert '  path = "notes.txt"' in lines


@pytest.mark.parametrize("text", ["a\n  level: safe", "\x1b[2Ka", "a\u202eb"])
def test_no_text_of_a_request_looks_like_another_line_of_it(text):
    forged = request(effect={"path": text}, preview=text, subject=text, question=text, risk=text)
    lines = [*request_lines(forged)]
    assert sum(one.startswith("  level: ") for one in lines) == 1
    assert not any(character in one for one in lines for character in "\x1b\u202e\n")


def test_request_for_a_grant_names_the_holder_and_the_rights():
    grant = request(
        kind="grant",
        subject="skill:github",
        effect={"name": "github", "capabilities": ["http:host=a.b"], "remarks": {"http:host=a.b": "reads"}},
        grants={"always": ("http:host=a.b",)},
    )
    assert [*request_lines(grant)] == [
        "The skill `github` requests these rights:",
        "  http:host=a.b (reads)",
        "  highest level: controlled",
    ]


def test_request_for_a_grant_shows_what_it_accepts_and_rights_that_differ():
    grant = request(
        kind="grant",
        subject="plugin:mcp",
        level=None,
        effect={
            "name": "mcp",
            "tool": "things.add",
            "source": "sideband-mcp 0.1",
            "capabilities": ["mcp:server=things"],
            "arguments": {"changes": ["new tool: add", "a\nWith `session`, forged"]},
        },
        grants={"session": ("mcp:server=*",)},
    )
    assert [*request_lines(grant)] == [
        "The tool `things.add` of the plugin `mcp` (sideband-mcp 0.1) requests these rights:",
        "  mcp:server=things",
        "  to accept this:",
        "  │ new tool: add",
        "  │ a\\nWith `session`, forged",
        "With `session`, these rights are given instead: mcp:server=*",
    ]


def test_form_offers_only_what_the_request_grants():
    assert approval_form(request()).schema["properties"]["answer"]["enum"] == ["once", "session", "no"]
    assert approval_form(request(grants={})).schema["properties"]["answer"]["enum"] == ["once", "no"]


def test_request_that_is_too_long_to_be_shown_is_refused():
    with pytest.raises(Unanswered, match="too long"):
        approval_form(request(effect={"content": "x" * 20_000}))


def test_answer_that_was_not_offered_allows_nothing():
    assert approval_of({"answer": "session"}, "me").scope == "session"
    assert not approval_of({"answer": "no"}, "me").allowed
    for other in ({}, {"answer": "always"}, {"answer": ["once"]}):
        with pytest.raises(Unanswered):
            approval_of(other, "me")


def test_questions_of_a_tool_become_a_form_whose_values_are_their_answers():
    questions = [
        UserQuestion("Which port?", (QuestionOption("8443"), QuestionOption("9443", "as in production"))),
        UserQuestion("Which name?"),
    ]
    form = questions_form(questions, "things.ask")
    assert form.message == "Questions of the tool things.ask. Your answers are data for the tool; they allow nothing."
    assert [*form.schema["properties"]] == ["choice_1", "other_1", "other_2"]
    port, name = answers_of(questions, {"choice_1": "9443", "other_2": "api"})
    assert (port.chosen, name.text) == (("9443",), "api")
    assert answers_of(questions, {"choice_1": "22", "other_1": 5})[0].chosen == ()
