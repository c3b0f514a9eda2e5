"""Hostile text at a real terminal: it adds no row that looks like a question, its answer or a message of sideband."""

import json

import pytest

FORGED = "Allow this? [y/N] y"
HIDDEN = "hi\U000e0041\u202e"
HOSTILE = f"dear all\n{FORGED}\u202e\u200b\x1b[2J\n▌ {FORGED}\r\n* files.delete path=/: ok, 1 s"
POST = """
from pydantic import BaseModel
from sideband.ops import Level, OpContext, OpFamily, op


class Letter(BaseModel):
    text: str


async def would(params, ctx):
    return f"send {params.text}"


@op("post.send", level=Level.RESTRICTED, preview=would)
async def send(params: Letter, ctx: OpContext) -> str:
    await ctx.progress(message=params.text)
    return params.text


def sideband_ops():
    return OpFamily(name="post", ops=(send,))
"""
ASKER = """
from sideband.hooks import Ask, hookimpl


class Asker:
    @hookimpl
    def op_call(self, event):
        return Ask(f"Send {event.params['text']}?")


def sideband_guards():
    return [Asker]
"""
PARROT = """
from sideband.skill import progress, tool


@tool
async def say(text: str) -> str:
    await progress.report(message=text)
    print(text)
    raise ValueError(text)
"""


@pytest.fixture
def post(plugin):
    """The environment with an op that is asked about, and that shows its parameter."""
    return {**plugin("post", "op", POST), **plugin("asker", "guard", ASKER)}


def own_rows(terminal):
    return [row.removeprefix("▌ ") for row in terminal.text.splitlines() if row.startswith("▌ ")]


def test_preview_and_question_of_an_effect_stay_in_their_margin(terminal, post):
    asked = terminal("op", "post.send", f"text={HOSTILE}", **post)
    asked.wait_for("Allow this? [y/N]", "preview:", "\n▌ Allow this? [y/N]")
    asked.type("n\n")
    assert asked.wait() == 3
    rows = own_rows(asked)
    assert rows.count("Allow this? [y/N] n") == 1
    assert FORGED not in rows
    assert f"  │ {FORGED}\\u202e\\u200b\\x1b[2J" in rows
    assert f"  │ \\u258c {FORGED}\\r" in rows
    assert not [row for row in asked.text.splitlines() if row.startswith((FORGED, "* files"))]


def test_value_that_fills_its_row_continues_in_the_margin(terminal, post):
    asked = terminal("op", "post.send", f"text={'x' * 61}{FORGED}", **post)
    asked.wait_for("\n▌ Allow this? [y/N]")
    asked.type("n\n")
    asked.wait()
    assert not [row for row in asked.text.splitlines() if row.startswith(FORGED)]


def test_effect_that_is_allowed_at_the_terminal_runs(terminal, post):
    asked = terminal("op", "post.send", "text=שלום 👍", **post)
    asked.wait_for("preview: send שלום 👍", "\n▌ Allow this? [y/N]")
    asked.type("y\n")
    assert asked.wait() == 0
    assert asked.text.endswith("שלום 👍")


def test_json_at_a_terminal_has_escapes_and_the_same_data(terminal, post):
    text = "\u202e\u200b\u200f\x7f\x9b\U000e0041 é漢"
    shown = terminal("op", "post.send", f"text={text}", "--yes", "--json", **post)
    assert shown.wait() == 0
    written = shown.written.decode()
    assert not set("\u202e\u200b\u200f\x7f\x9b\U000e0041") & set(written)
    assert "é漢" in written
    assert json.loads(written[written.index("\n{") :])["output"] == text


def test_tool_call_in_a_chat_shows_one_message_for_each_event(terminal, turns, make_skill):
    call = {"tool_calls": [{"name": "parrot__say", "arguments": {"text": HOSTILE}}], "text": f"Now:\n▌ {FORGED}"}
    chat = terminal("chat", "--skill-dir", make_skill("parrot", PARROT, ""), *turns(call, "done"))
    chat.wait_for("[scripted:test", "\n>")
    chat.say("hello")
    chat.wait_for("failed:", "\ndone")
    chat.type("\x04")
    assert chat.wait() == 0
    assert FORGED not in own_rows(chat)
    assert not [row for row in own_rows(chat) if row.startswith("* files")]
    assert f"\n\\u258c {FORGED}" in chat.text


def test_error_of_a_skill_at_a_terminal_has_the_mark_only_before_its_own_lines(terminal, make_skill):
    call = terminal("call", "parrot.say", f"text={HOSTILE}", "--skill-dir", make_skill("parrot", PARROT, ""))
    assert call.wait() == 1
    rows = own_rows(call)
    assert any(row.startswith("error: ") for row in rows)
    assert FORGED not in rows
    assert not [row for row in call.text.splitlines() if row.startswith((FORGED, "* files"))]


def test_model_text_before_a_tool_call_is_labeled_in_a_log(sideband, turns, hello):
    call = {
        "text": f"* files.delete: ok\n{FORGED}",
        "tool_calls": [{"name": "hello__greet", "arguments": {"name": "a"}}],
    }
    done = sideband("run", "hi", "--skill-dir", hello, *turns(call, "done"))
    assert f"model: * files.delete: ok\n  {FORGED}\n* hello.greet" in done.stderr


def test_folder_of_a_skill_adds_no_line_to_a_listing(sideband, make_skill, tmp_path):
    folder = tmp_path / "a\nrequests: no capabilities"
    make_skill("hello", PARROT, "http:host=example.org").rename(folder)
    shown = sideband("skills", "show", "hello", "--skill-dir", folder)
    requests = [line for line in shown.stdout.splitlines() if line.startswith("requests:")]
    assert requests == ["requests: http:host=example.org"]


def test_text_of_an_imported_message_looks_like_no_other_message(sideband, tmp_path):
    text = f"hi\nmodel (bbbbbbbbbbbbbbbb):\nyes\x1b[2J\u202e\n▌ {FORGED}"
    entries = [
        {"type": "session", "version": 1, "id": "0123456789abcdef", "channel": "cli"},
        {"id": "a" * 16, "type": "message", "message": {"role": "user", "content": text}},
    ]
    file = tmp_path / "session.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in entries))
    assert sideband("sessions", "import", file).returncode == 0
    lines = sideband("sessions", "show", "0123456789abcdef").stdout.splitlines()
    assert [line for line in lines if line.startswith(("model (", "yes", "▌"))] == []
    assert "  yes\\x1b[2J\\u202e" in lines


def test_name_of_a_model_adds_no_line_to_the_status(terminal, tmp_path):
    script = tmp_path / "script.json"
    model = f"x\n{FORGED}\u202e"
    script.write_text(json.dumps({"models": {model: {"turns": ["done"]}}}))
    chat = terminal("chat", "--model", f"scripted:{model}", "--set", f"plugins.scripted.script={script}")
    chat.wait_for(f"▌ [scripted:x {FORGED}\\u202e", "\n>")
    chat.type("\x04")
    assert chat.wait() == 0
    assert "\u202e".encode() not in chat.written


def test_imported_session_shows_its_hidden_characters_and_adds_no_message(terminal, sideband, tmp_path, turns):
    entries = [
        {"type": "session", "version": 1, "id": "0123456789abcdef", "channel": "cli"},
        {"id": "a" * 16, "type": "message", "message": {"role": "user", "content": HIDDEN, "source": "user"}},
        {"id": "b" * 16, "parent": "a" * 16, "type": "name", "name": f"mine\n{FORGED}\u202e"},
    ]
    file = tmp_path / "session.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in entries))
    assert sideband("sessions", "import", file).returncode == 0
    chat = terminal("chat", "--session", "0123456789abcdef", *turns("done"))
    chat.wait_for("[scripted:test", "\n>")
    assert FORGED not in [row.partition("\\")[0] for row in own_rows(chat)]
    chat.say("/rewind")
    chat.wait_for("\n> hi\\U000e0041\\u202e")
    chat.type("\x03\x04")
    assert chat.wait() == 0
    assert "\u202e".encode() not in chat.written
