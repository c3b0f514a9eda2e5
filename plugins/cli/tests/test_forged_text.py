"""Hostile text at each place that shows it: no line of it looks like sideband's own, and no character is hidden.

``PLACES`` has each kind of place. Each function writes a text from a skill, a server or a model to the streams.
"""

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from types import SimpleNamespace

import anyio
import attrs
import pyte
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sideband import SidebandError
from sideband.approvals import ApprovalRequest
from sideband.broker import PlannedStep, UndoPlan
from sideband.command_line import joined, marked, notice, print_json, print_text
from sideband.command_line._errors import print_error
from sideband.hooks import (
    ModelSelect,
    RetryStart,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
    ToolProgress,
)
from sideband.rendering import MARK
from sideband_cli._agent._activity import Activity
from sideband_cli._agent._json_lines import print_line
from sideband_cli._agent._run_output import RunOutput
from sideband_cli._terminal._columns import columns
from sideband_cli._terminal._printing import print_result
from sideband_cli._terminal._progressbar import Progressbar
from sideband_cli._terminal._questions import Questions, TypedAnswer
from sideband_cli._terminal._request_text import question_rows
from sideband_cli._terminal._tables import format_table
from sideband_cli._undo._plan_text import describe_plan
from wcwidth import wcwidth

WIDTH = 60
FORGED = "Allow this? [y/N] y"
HIDDEN = (
    "\x00\x07\x08\x1b\x7f\x85\x9b\xad\u061c\u115f\u180e\u200b\u200e\u202e\u2028\u2060\u2066\u3164\ufeff\ufff9"
    "\U000e0041\U000e0100\ud800"
)
PIECES = [
    FORGED,
    f"\n{FORGED}\n",
    f"\r{FORGED}\r\n",
    f"\r\n{FORGED}\n",
    f"{MARK} {FORGED}",
    "\n",
    "\r",
    "\r\n",
    "\t",
    " " * WIDTH,
    "漢" * 40,
    "a" * 70,
    "`",
    '"',
    "\u0301" * 40,
]
texts = st.lists(st.sampled_from([*PIECES, *HIDDEN]), max_size=12).map("".join)


class Stream(io.StringIO):
    encoding = "utf-8"

    def __init__(self, *, terminal):
        super().__init__()
        self._terminal = terminal

    def isatty(self):
        return self._terminal


def show_question(request, *, yes=False):
    async def at_terminal(reason, question, keys):
        sys.stderr.write("".join(f"{line}\n" for line in marked(question_rows(reason, WIDTH - 3), sys.stderr)))
        return TypedAnswer()

    anyio.run(Questions(at_terminal, yes=yes).approver(), request)


def effect(name="files.write", question="May it?", arguments=(), previewed=None, *, yes=False, **fields):
    request = ApprovalRequest(
        id="1",
        kind="effect",
        subject=name,
        question=question,
        effect=dict(arguments),
        preview=previewed,
        digest="",
        grantee="",
        **fields,
    )
    show_question(request, yes=yes)


def grant_of(name, source="/skills", capabilities=("http",)):
    """Return the request for a grant of a skill."""
    effect = {"name": name, "source": source, "capabilities": capabilities, "tool": f"{name}.go"}
    return ApprovalRequest(
        id="1", kind="grant", subject=f"skill:{name}", question="?", effect=effect, digest="", grantee=""
    )


def activity(*events):
    shown = Activity(RunOutput(Progressbar(), live=False))
    for event in events:
        shown.take(event)


def model(*, text="", thinking="", live=True):
    output = RunOutput(Progressbar(), live=live)
    for part in thinking:
        output.thinking(part)
    for part in text:
        output.text(part)
    output.end_text()


def progress(**fields):
    bar = Progressbar()
    bar.show(SimpleNamespace(**{"current": None, "total": None, "message": None, "unit": None, **fields}))
    bar.close()


def error(message, hint="", raised=""):
    known = SidebandError(message, hint=hint)
    known.traceback = raised
    print_error(known, known, as_json=False)


def tool_message(text):
    call = {"type": "tool_call", "id": "1", "name": text, "arguments": {text: text}}
    return [
        SimpleNamespace(hook="message_end", message={"role": "assistant", "content": [call]}),
        SimpleNamespace(hook="message_end", message={"role": "tool", "call": "1", "tool": text, "content": text}),
    ]


PLACES = {
    "preview": lambda text: effect(previewed=f"would write {text}"),
    "question of a guard": lambda text: effect(question=f"May it {text}?"),
    "name of an op": lambda text: effect(name=f"x{text}"),
    "name of an argument": lambda text: effect(arguments={f"x{text}": 1}),
    "value of an argument": lambda text: effect(arguments={"x": text, "y": [{text: text}]}),
    "note of a guard in a question": lambda text: effect(risk=f"keeper: {text}"),
    "grant in a question": lambda text: effect(name=f"x{text}", grants={"session": (text,), "always": (f"x{text}",)}),
    "effect allowed by --yes": lambda text: effect(f"x{text}", f"x{text}", {f"x{text}": text}, f"x{text}", yes=True),
    "name of a skill that asks": lambda text: show_question(grant_of(text)),
    "folder of a skill that asks": lambda text: show_question(grant_of("x", f"/{text}".replace("\0", ""))),
    "skill granted by --yes": lambda text: show_question(grant_of(text), yes=True),
    "notice": lambda text: notice(f"notice: {text}"),
    "error": lambda text: error(f"x{text}", f"x{text}", f"x{text}"),
    "log line of a skill": lambda text: Progressbar().notice(f"[stdout] {text}"),
    "progress of an op": lambda text: progress(current=1, message=text),
    "name of a tool that starts": lambda text: activity(ToolExecutionStart("1", text, {text: text})),
    "progress of a tool": lambda text: activity(ToolExecutionUpdate("1", text, None, None, text)),
    "output of a tool": lambda text: activity(ToolProgress("1", text, "stdout", 0, text, text)),
    "tool that succeeds": lambda text: activity(
        ToolExecutionStart("1", text, {text: text}), ToolExecutionEnd("1", text, text, False, 1)
    ),
    "tool that fails": lambda text: activity(ToolExecutionEnd("1", text, {"message": text}, True, 1)),
    "tool that was not run": lambda text: activity(*tool_message(text)),
    "retry": lambda text: activity(RetryStart(1, 1, {"kind": text, "message": text})),
    "fallback model": lambda text: activity(ModelSelect(f"x{text}", f"x{text}", "fallback")),
    "text of a model before a tool call": lambda text: RunOutput(Progressbar(), live=False).aside(f"x{text}"),
    "thinking of a model": lambda text: model(thinking=text),
    "line of a listing": lambda text: print_text(joined([f"x{text}", f"  {text}"])),
    "table": lambda text: print_text(format_table([f"x{text}", "y"], [[1, text], [{text: text}, 2]])),
    "wrapped table": lambda text: print_text(format_table(["y", f"x{text}"], [[text, f"x{text}"]], wrapped=True)),
    "rows of a result": lambda text: print_result([{f"x{text}": f"x{text}"}]),
    "data of a result": lambda text: print_result({f"x{text}": text}),
    "--json": lambda text: print_json({f"x{text}": text}),
    "event of --json": lambda text: print_line({f"x{text}": text}),
}
TEXTS = {
    "text of a model": lambda text: model(text=text),
    "text of a result": print_result,
}


def shown_at(place, text, *, terminal):
    stream = Stream(terminal=terminal)
    with redirect_stdout(stream), redirect_stderr(stream), pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(WIDTH))
        patch.setenv("NO_COLOR", "1")
        {**PLACES, **TEXTS}[place](text)
    return stream.getvalue()


def rows_on_screen(output):
    """Return the rows of a terminal that wraps each line at its width."""
    rows = []
    for line in output.replace("\r", "\n").split("\n"):
        used = WIDTH + 1
        for character in line:
            width = max(0, wcwidth(character))
            if used + width > WIDTH:
                rows.append("")
                used = 0
            rows[-1] += character
            used += width
    return [row.rstrip() for row in rows]


@pytest.mark.parametrize("terminal", [True, False], ids=["terminal", "pipe"])
@pytest.mark.parametrize("place", [*PLACES, *TEXTS])
@given(text=texts)
@settings(max_examples=25, deadline=None)
def test_hidden_characters_are_escaped(place, terminal, text):
    if terminal or ("json" not in place and "data" not in place):  # in a pipe, JSON has most characters as they are
        assert set(HIDDEN) & set(shown_at(place, text, terminal=terminal)) == set()


@pytest.mark.parametrize("place", [*PLACES, *TEXTS])
@given(text=texts)
@settings(max_examples=25, deadline=None)
def test_no_row_at_a_terminal_looks_like_an_answered_question(place, text):
    rows = rows_on_screen(shown_at(place, text, terminal=True))
    assert f"{MARK} {FORGED}" not in rows


@pytest.mark.parametrize("place", PLACES)
@given(text=texts)
@settings(max_examples=25, deadline=None)
def test_no_line_in_a_pipe_looks_like_an_answered_question(place, text):
    assert FORGED not in shown_at(place, text, terminal=False).split("\n")


@pytest.mark.parametrize("place", [one for one in PLACES if "argument" in one or "preview" in one or "question" in one])
@given(text=texts)
@example(text=" " * WIDTH)
@settings(max_examples=25, deadline=None)
def test_each_row_of_a_question_has_the_mark_and_fits(place, text):
    rows = shown_at(place, text, terminal=True).removesuffix("\n").split("\n")
    assert [row for row in rows if not row.startswith(f"{MARK} ") or columns(row) >= WIDTH] == []


@given(text=texts)
def test_json_is_the_same_data_at_a_terminal_and_in_a_pipe(text):
    outputs = [shown_at("--json", text, terminal=terminal) for terminal in (True, False)]
    assert [json.loads(output) for output in outputs] == [{f"x{text}": text}] * 2


@given(text=st.text(alphabet="aé漢한\u1100\u1161\u11a8ा́\u0301\ufe0f\u200d👍🏽❤🇫ﾊ"))
def test_width_is_never_underestimated(text):
    assert columns(text) >= sum(max(0, wcwidth(one)) for one in text)


def test_long_progress_message_leaves_nothing_on_the_screen():
    stream = Stream(terminal=True)
    with redirect_stderr(stream), pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(WIDTH))
        bar = Progressbar()
        bar.line("漢" * 100)
        bar.erase()
    screen = pyte.Screen(WIDTH, 10)
    pyte.Stream(screen).feed(stream.getvalue())
    assert "".join(screen.display).strip() == ""


def test_lines_of_a_preview_have_a_margin():
    shown = shown_at("preview", f"a\n{FORGED}", terminal=True)
    assert f"{MARK}   │ {FORGED}\n" in shown


def test_long_value_cannot_show_its_end_as_another_argument():
    shown = shown_at("value of an argument", "x" * 5_000 + FORGED + "z" * 1_900, terminal=True)
    assert "characters omitted" in shown
    assert not any(row.removeprefix(MARK).strip().startswith(FORGED) for row in shown.split("\n"))


def test_short_arguments_are_shown_whole():
    values = {"a": "x" * 3_000, "b": "y" * 900}
    stream = Stream(terminal=False)
    with redirect_stderr(stream):
        effect(arguments=values, yes=True)
    assert all(value in stream.getvalue() for value in values.values())


def test_preview_of_many_lines_is_cut_and_its_length_is_stated():
    shown = shown_at("preview", "\n" * 1_000, terminal=True)
    assert shown.count("\n") < 60
    assert "961 lines omitted" in shown


def test_grant_of_many_capabilities_repeats_their_number_and_the_skill_at_its_end():
    stream = Stream(terminal=True)
    capabilities = [f"http:host=h{number}.example" for number in range(1_000)]
    with redirect_stderr(stream):
        show_question(grant_of("flood", capabilities=capabilities))
    assert stream.getvalue().endswith("(1,000 capabilities in total, requested by `flood`)\n")


def test_many_arguments_are_cut_and_their_number_is_stated():
    stream = Stream(terminal=True)
    with redirect_stderr(stream):
        effect(arguments={f"a{number}": 1 for number in range(1_000)})
    assert stream.getvalue().count("\n") < 60
    assert "960 arguments omitted" in stream.getvalue()


@given(text=texts)
def test_each_event_of_a_tool_is_shown_on_one_line_or_with_its_outcome_below(text):
    lines = []
    sink = SimpleNamespace(line=lines.append, progress=lines.append, end_text=lambda: None, aside=lambda _: None)
    shown = Activity(sink)
    for event in (
        ToolExecutionStart("1", text, {text: text}),
        ToolExecutionUpdate("1", text, None, None, text),
        ToolProgress("1", text, "stdout", 0, text, text),
        ToolExecutionEnd("1", text, text, False, 1),
        RetryStart(1, 1, {"kind": text, "message": text}),
        ModelSelect(text, text, "fallback"),
        *tool_message(text),
    ):
        shown.take(event)
    outcomes = ("ok", "not run: ")
    assert [line for line in lines if "\n" in line and not line.partition("\n")[2].startswith(outcomes)] == []
    assert set(HIDDEN) & set("".join(lines)) == set()


def test_step_of_an_undo_plan_is_one_paragraph_with_escapes():
    step = PlannedStep("e1", "files.restore", {}, f"restore `a\n{FORGED}\u200b`", "k")
    plan = UndoPlan("e1", "files.write", (step,), (f"`b\n{FORGED}` is gone",))
    text = describe_plan(plan)
    assert f"restore `a\\n{FORGED}\\u200b`" in " ".join(text.split())
    assert f"- `b\\n{FORGED}` is gone" in " ".join(text.split())


def test_long_preview_is_cut_and_its_length_is_stated():
    shown = shown_at("preview", "x" * 1_000_000, terminal=True)
    assert len(shown) < 6_000
    assert "996,012 characters omitted" in shown.replace(f"\n{MARK}   ", " ")


def test_name_of_an_argument_cannot_show_a_value():
    stream = Stream(terminal=True)
    with redirect_stderr(stream):
        effect(arguments={'path = "x"': 1})
    assert f'{MARK}   `path = "x"` = 1\n' in stream.getvalue()


def test_answer_of_yes_prints_joiners_as_escapes():
    stream = Stream(terminal=False)
    with redirect_stderr(stream):
        effect(arguments={"path": "漢\u200d"}, yes=True)
    assert '  path = "漢\\u200d"' in stream.getvalue()


@pytest.mark.parametrize("grant", [tuple(f"x:n={number}" for number in range(41)), ("x:n=" + "a" * 5_000,)])
def test_grant_that_would_move_the_request_off_the_screen_is_not_offered(grant):
    shown = []

    async def ask(reason, question, keys):
        shown.extend([*reason, keys])
        return TypedAnswer()

    request = attrs.evolve(
        grant_of("x"), kind="effect", effect={"path": "a"}, grants={"session": ("x:n=1",), "always": grant}
    )
    anyio.run(Questions(ask).approver(), request)
    assert shown[-1] == "ys"
    assert not [line for line in shown if "always" in line]
