"""``sideband run``: what goes to which stream, how runs end and go on, and what the agent is given."""

import json
import re

import pytest

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000a49444154789c6360000000020001e221bc330000000049454e44ae426082"
)
GREETS = {"text": "Let me see.", "tool_calls": [{"name": "hello__greet", "arguments": {"name": "Ada"}}]}


def events_of(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


def said(done):
    """What the user's message was, as the model saw it."""
    ends = [one["message"] for one in events_of(done) if one.get("event") == "message_end"]
    return next(message["content"] for message in ends if message["role"] == "user")


def session_of(done):
    return re.search(r"· session (\w+)", done.stderr)[1]


def test_standard_output_holds_the_answer_alone_and_standard_error_what_was_done(sideband, turns, hello):
    done = sideband("run", "greet Ada", "--skill-dir", hello, *turns(GREETS, "It said hello."))
    assert (done.returncode, done.stdout) == (0, "It said hello.\n")
    assert "Let me see." in done.stderr
    assert re.search(r"^\* hello\.greet name=Ada: ok, [\d.]+ s$", done.stderr, re.MULTILINE)
    assert re.search(r"^scripted:test · .*tokens in, .* out, \$0 · session \w{16}$", done.stderr, re.MULTILINE)


def test_words_of_a_prompt_need_no_quotes(sideband, turns):
    assert said(sideband("run", "two", "words", *turns("yes"), "--json")) == [{"type": "text", "text": "two words"}]


@pytest.mark.parametrize("words", [[], ["-"]])
def test_a_prompt_can_be_piped_in(sideband, turns, words):
    done = sideband("run", *words, *turns("yes"), "--json", stdin="from a pipe\n")
    assert said(done)[0]["text"] == "from a pipe\n"


def test_what_is_piped_in_beside_a_prompt_stands_below_it(sideband, turns):
    done = sideband("run", "count them", *turns("yes"), "--json", stdin="a\nb\n")
    assert said(done)[0]["text"] == "count them\n\n<input>\na\nb\n</input>"


def test_files_are_given_as_texts_with_their_names_and_as_images(sideband, turns, tmp_path):
    (tmp_path / "notes.md").write_text("be brief\n")
    (tmp_path / "pixel.dat").write_bytes(PIXEL)
    words = ["--file", tmp_path / "notes.md", "--file", tmp_path / "pixel.dat"]
    text, image = said(sideband("run", "look", *words, *turns("yes", images=True), "--json"))
    assert text["text"] == 'look\n\n<file name="notes.md">\nbe brief\n</file>'
    assert image["media_type"] == "image/png"


@pytest.mark.parametrize(("name", "content"), [("binary", b"\x00\x01"), ("latin", b"caf\xe9"), ("missing", None)])
def test_a_file_that_is_neither_text_nor_image_is_refused(sideband, turns, tmp_path, name, content):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    done = sideband("run", "look", "--file", tmp_path / name, *turns("yes"))
    assert done.returncode == 2
    assert name in done.stderr


def test_no_prompt_at_all_is_a_usage_error(sideband, turns):
    assert sideband("run", *turns("yes")).returncode == 2


def test_without_a_model_the_quickest_ways_to_one_are_shown(sideband):
    done = sideband("run", "hello")
    assert (done.returncode, done.stdout) == (5, "")
    for part in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "Ollama", "scripted:", "sideband call"):
        assert part in done.stderr
    assert max(map(len, done.stderr.splitlines())) <= 100


def test_events_are_one_json_document_a_line_and_the_result_comes_last(sideband, turns, hello):
    done = sideband("run", "greet Ada", "--skill-dir", hello, *turns(GREETS, "It said hello."), "--json")
    events = events_of(done)
    names = [one["event"] for one in events]
    for name in (
        "agent_start",
        "message_update",
        "tool_execution_start",
        "tool_execution_end",
        "turn_end",
        "agent_end",
    ):
        assert name in names
    result = events[-1]
    assert (result["event"], result["status"], result["text"]) == ("result", "completed", "It said hello.")
    assert result["model"] == "scripted:test"
    assert done.stderr == ""


def test_an_error_before_the_run_is_data_too(sideband):
    done = sideband("run", "hello", "--json")
    assert done.returncode == 5
    assert events_of(done)[-1]["error"]["code"] == "agent.model"


@pytest.mark.parametrize(
    ("failure", "exit_code", "status"),
    [
        ({"status": 401, "message": "invalid api key"}, 4, "failed"),
        ({"status": 429, "message": "slow down", "headers": {"retry-after": "86400"}}, 4, "parked"),
    ],
)
def test_a_failure_of_the_provider_ends_with_4_and_says_how_to_go_on(sideband, turns, failure, exit_code, status):
    words = ["run", "hello", *turns({"text": "never", "failures": [failure]})]
    done = sideband(*words)
    assert (done.returncode, done.stdout) == (exit_code, "")
    assert f"sideband run --resume --session {session_of(done)}" in done.stderr
    result = events_of(sideband(*words, "--json"))[-1]
    assert (result["status"], bool(result["resume_at"])) == (status, status == "parked")


def test_a_failed_run_goes_on_where_it_stands_with_the_model_that_it_had(sideband, turns, hello):
    failing = {"text": "never", "failures": [{"status": 401}]}
    options = turns(GREETS, failing)
    failed = sideband("run", "greet Ada", "--skill-dir", hello, *options)
    assert failed.returncode == 4
    turns(GREETS, "It said hello.")
    done = sideband("run", "--resume", "--session", session_of(failed), *options[2:])
    assert (done.returncode, done.stdout) == (0, "It said hello.\n")
    assert "hello.greet" not in done.stderr  # it had run, and does not again


@pytest.mark.parametrize("model", ["nobody:test", "nothing"])
def test_a_run_whose_model_does_not_exist_can_go_on_with_another(sideband, turns, model):
    done = sideband("run", "hello", *turns("yes"), "--model", model)
    assert done.returncode in (4, 5)
    assert f"--session {session_of(done)} --model PROVIDER:MODEL\n" in done.stderr
    done = sideband("run", "--resume", "--session", session_of(done), *turns("yes"))
    assert (done.returncode, done.stdout) == (0, "yes\n")


def test_skills_that_can_not_be_used_are_named(sideband, turns, make_skill):
    bad = make_skill("torn", "async def (:\n")
    done = sideband("run", "hello", "--skill-dir", "nowhere", "--skill-dir", bad, *turns("yes"))
    assert (done.returncode, done.stdout) == (0, "yes\n")
    assert "notice: nowhere: the folder `nowhere` does not exist" in done.stderr
    assert "`tools.py` is no valid Python" in done.stderr
    folders = [word for number in range(7) for word in ("--skill-dir", f"nowhere{number}")]
    done = sideband("run", "hello", *folders, *turns("yes"))
    assert "2 more problems with skills; `sideband skills list` shows them" in done.stderr


def test_another_model_is_told_with_the_one_before(sideband, turns):
    options = turns("one", "two", "three")
    events = []
    for model in (["--model", "scripted:test"], ["--model", "scripted:test"], ["--model", "scripted:other"]):
        session = ["--session", "last"] if events else ["--new"]
        lines = sideband("run", "hello", *options, *session, *model, "--json").stdout.splitlines()
        events.append([event for event in map(json.loads, lines) if event["event"] == "model_select"])
    named = [[(event["previous"], event["model"]) for event in told] for told in events]
    assert named == [[(None, "scripted:test")], [], [("scripted:test", "scripted:other")]]


def test_there_is_nothing_to_resume_after_a_run_that_ended(sideband, turns):
    sideband("run", "hello", *turns("yes"))
    done = sideband("run", "--resume", *turns("yes"))
    assert done.returncode == 2
    assert "nothing to resume" in done.stderr
    assert "sideband run --session " in done.stderr


def test_resume_takes_no_prompt(sideband):
    assert sideband("run", "--resume", "hello").returncode == 2


@pytest.mark.parametrize("which", ["last", "id", "beginning"])
def test_a_session_goes_on_with_its_model(sideband, turns, which):
    options = turns("one", "two")
    first = sideband("run", "hello", *options)
    session = {"last": "last", "id": session_of(first), "beginning": session_of(first)[:8]}[which]
    assert sideband("run", "and", "--session", session, *options[2:]).stdout == "two\n"
    assert sideband("run", "anew", *options).stdout == "one\n"


def test_there_is_no_last_session_at_first(sideband, turns):
    assert sideband("run", "hello", "--session", "last", *turns("yes")).returncode == 2


def test_a_session_and_a_new_one_exclude_each_other(sideband, turns):
    assert sideband("run", "hello", "--session", "last", "--new", *turns("yes")).returncode == 2


def test_an_overload_is_told_with_when_it_is_tried_again(sideband, turns):
    overloaded = {"status": 529, "message": "overloaded", "headers": {"retry-after": "0.05"}}
    done = sideband("run", "hello", *turns({"text": "yes", "failures": [overloaded]}))
    assert (done.returncode, done.stdout) == (0, "yes\n")
    assert re.search(r"^! overloaded, again in [\d.]+ s \(try 2\): ", done.stderr, re.MULTILINE)


def test_half_an_answer_that_broke_off_is_not_in_a_pipe(sideband, turns):
    broken = {"text": "one two three four", "broken_after": 2}
    done = sideband("run", "hello", *turns(broken), "--set", "plugins.retry.attempts=0")
    assert (done.returncode, done.stdout) == (4, "")


def test_a_tool_outside_of_those_that_were_named_is_rejected(sideband, turns, hello):
    done = sideband("run", "greet Ada", "--skill-dir", hello, "--tools", "other.*,more", *turns(GREETS, "I may not."))
    assert done.stdout == "I may not.\n"
    assert re.search(r"^\* hello\.greet name=Ada: rejected: ", done.stderr.replace("\n  ", " "), re.MULTILINE)


def test_a_session_that_has_cost_too_much_parks(sideband, turns, hello):
    costly = {**GREETS, "usage": {"input": 10, "output": 10, "cost": 0.6}}
    done = sideband("run", "greet Ada", "--skill-dir", hello, "--max-cost", "0.5", *turns(costly, "never"))
    assert done.returncode != 0
    assert done.stdout == ""
    assert "parked" in done.stderr
    assert "--max-cost" in done.stderr


@pytest.mark.parametrize("words", [["--max-cost", "-1"], ["--max-cost", "nan"], ["--max-tokens-total", "0"]])
def test_an_impossible_limit_is_a_usage_error(sideband, turns, words):
    assert sideband("run", "hello", *words, *turns("yes")).returncode == 2


def test_rights_that_nobody_can_be_asked_for_are_denied_with_a_hint(sideband, turns, make_skill):
    code = "from sideband.skill import sql, tool\n@tool\nasync def look() -> int:\n    return 1\n"
    skill = make_skill("modest", code, "sql:path=notes.db")
    call = {"tool_calls": [{"name": "modest__look"}]}
    done = sideband("run", "look", "--skill-dir", skill, *turns(call, "I may not."))
    assert "modest.look" in done.stderr
    assert "failed" in done.stderr
    told = " ".join(done.stderr.split())
    assert "with --yes; for one `sideband call`, --grant 'sql:path=notes.db'; for good" in told
    done = sideband("run", "look", "--yes", "--skill-dir", skill, *turns(call, "I did."))
    assert re.search(r"^\* modest\.look: ok", done.stderr, re.MULTILINE)


def test_what_a_model_says_moves_no_cursor_and_turns_no_line(sideband, turns):
    done = sideband("run", "hello", *turns("\x1b[31mred\u202eder\x07\r\nnext"))
    assert not {"\x1b", "\u202e", "\x07"} & set(done.stdout)
    assert done.stdout.splitlines()[-1] == "next"


def test_thoughts_are_shown_on_demand_and_never_in_the_answer(sideband, turns):
    options = turns({"thinking": "it is easy", "text": "yes"})
    assert "it is easy" not in sideband("run", "hello", *options).stderr
    done = sideband("run", "hello", "--thinking", *options)
    assert "it is easy" in done.stderr
    assert done.stdout == "yes\n"


def test_nothing_is_coloured_in_a_pipe(sideband, turns, hello):
    done = sideband("run", "greet", "--thinking", "--skill-dir", hello, *turns(GREETS, "done"))
    assert "\x1b" not in done.stdout + done.stderr


def test_warnings_move_no_cursor_either(sideband, turns):
    done = sideband("run", "hello", "--tools", "\x1b[31mred", *turns("yes"))
    assert "there is no tool" in done.stderr
    assert "\x1b" not in done.stderr


def test_a_plugin_can_answer_in_place_of_a_model(sideband, turns, plugin):
    code = "from sideband.hooks import Handled, hookimpl\n@hookimpl\ndef input(event):\n    return Handled('no need')\n"
    done = sideband("run", "hello", *turns("never"), **plugin("handler", "hook", code))
    assert (done.returncode, done.stdout) == (0, "no need\n")


def test_a_guard_that_ends_the_run_ends_it_with_3(sideband, turns, hello, plugin):
    code = (
        "from sideband.hooks import Deny, hookimpl\nclass Strict:\n    @hookimpl\n"
        "    def tool_call(self, event):\n        return Deny('not here', halt=True)\n"
        "def sideband_guards():\n    return [Strict]\n"
    )
    done = sideband("run", "greet", "--skill-dir", hello, *turns(GREETS, "x"), **plugin("strict", "guard", code))
    assert (done.returncode, done.stdout) == (3, "")
    assert "denied: " in done.stderr.replace("\n  ", " ")
    assert "not here" in done.stderr
