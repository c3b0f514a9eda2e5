"""Control characters from models, tools, skills and files are not sent to the terminal."""

import json

import pytest

ESCAPES = "\x1b]0;pwned\x07\x1b[2J\x1b[31m\x9b5n\u202e\x08\x7f"
HOSTILE = [one for one in dict.fromkeys(ESCAPES) if not one.isprintable()]


@pytest.fixture
def script(tmp_path):
    def write(*turns):
        file = tmp_path / "script.json"
        file.write_text(json.dumps({"models": {"test": {"turns": list(turns)}}}))
        return ["--model", "scripted:test", "--set", f"plugins.scripted.script={file}"]

    return write


def assert_harmless(done):
    for stream in (done.stdout, done.stderr):
        assert [one for one in HOSTILE if one in stream.replace("\n", "")] == []


def test_output_of_a_model_is_escaped(sideband, script, make_skill):
    code = "from sideband.skill import tool\n@tool\nasync def say(text: str) -> str:\n    return text\n"
    folder = make_skill("parrot", code)
    calls = [
        {"name": "parrot__say", "arguments": {"text": ESCAPES}, "id": f"a{ESCAPES}"},
        {"name": f"par{ESCAPES}rot", "arguments": {ESCAPES: ESCAPES}},
        {"name": "parrot__say", "arguments": {"other": ESCAPES}},
    ]
    turn = {"text": f"see {ESCAPES}", "thinking": f"hm {ESCAPES}", "tool_calls": calls}
    done = sideband("run", "hi", "--skill-dir", folder, "--thinking", *script(turn, f"done {ESCAPES}"))
    assert done.returncode == 0, done.stderr
    assert "done" in done.stdout
    assert_harmless(done)


def test_error_of_a_server_is_escaped(sideband, script):
    failure = {"message": f"no {ESCAPES}", "status": 401, "body": ESCAPES, "headers": {"request-id": ESCAPES}}
    done = sideband("run", "hi", *script({"failures": [failure], "text": "x"}))
    assert done.returncode == 4
    assert_harmless(done)


def test_content_of_an_imported_file_is_escaped(sideband, tmp_path):
    entries = [
        {"type": "session", "version": 1, "id": "0123456789abcdef", "channel": ESCAPES, "folder": f"/{ESCAPES}"},
        {"id": "a", "type": "message", "message": {"role": "user", "content": f"hi {ESCAPES}", "source": ESCAPES}},
        {"id": "b", "parent": "a", "type": "name", "name": f"my {ESCAPES} name"},
        {"id": "c", "parent": "b", "type": "label", "target": "a", "label": f"mark {ESCAPES}"},
        {"id": "d", "parent": "c", "type": "model", "model": f"x:{ESCAPES}"},
        {"id": "e", "parent": "d", "type": f"odd{ESCAPES}"},
        {"id": f"f{ESCAPES}", "parent": "d", "type": "name", "name": "x"},
    ]
    file = tmp_path / "session.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in entries))
    done = sideband("sessions", "import", file)
    assert done.returncode == 0, done.stderr
    assert_harmless(done)
    for words in (["list"], ["show", "0123456789abcdef"], ["tree", "0123456789abcdef"]):
        shown = sideband("sessions", *words)
        assert shown.returncode == 0, shown.stderr
        assert_harmless(shown)
