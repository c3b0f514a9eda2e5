"""``sideband run``: input, output streams, exit codes and resumed runs."""

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


def prompt_of(done):
    """Return the content of the user's message as sent to the model."""
    ends = [one["message"] for one in events_of(done) if one.get("event") == "message_end"]
    return next(message["content"] for message in ends if message["role"] == "user")


def session_of(done):
    return re.search(r"· session (\w+)", done.stderr)[1]


def test_answer_goes_to_stdout_and_activity_to_stderr(sideband, turns, hello):
    done = sideband("run", "greet Ada", "--skill-dir", hello, *turns(GREETS, "It said hello."))
    assert (done.returncode, done.stdout) == (0, "It said hello.\n")
    assert "Let me see." in done.stderr
    assert re.search(r"^\* hello\.greet name=Ada: ok, [\d.]+ s$", done.stderr, re.MULTILINE)
    assert re.search(r"^scripted:test · .*tokens in, .* out, \$0 · session \w{16}$", done.stderr, re.MULTILINE)


def test_prompt_of_several_words_needs_no_quotes(sideband, turns):
    assert prompt_of(sideband("run", "two", "words", *turns("yes"), "--json")) == [
        {"type": "text", "text": "two words"}
    ]


@pytest.mark.parametrize("words", [[], ["-"]])
def test_prompt_is_read_from_standard_input(sideband, turns, words):
    done = sideband("run", *words, *turns("yes"), "--json", stdin="from a pipe\n")
    assert prompt_of(done)[0]["text"] == "from a pipe\n"


def test_piped_input_is_appended_to_the_prompt(sideband, turns):
    done = sideband("run", "count them", *turns("yes"), "--json", stdin="a\nb\n")
    assert prompt_of(done)[0]["text"] == "count them\n\n<input>\na\nb\n</input>"


def test_files_of_every_kind_and_addresses_of_images_are_attached(sideband, turns, tmp_path):
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.7 \x80")
    (tmp_path / "b.mp3").write_bytes(b"ID3\x04 \x80")
    (tmp_path / "c.xlsx").write_bytes(b"PK\x03\x04 \x80")
    files = ["a.pdf", "b.mp3", "c.xlsx"]
    words = [word for name in files for word in ("--file", tmp_path / name)]
    words += ["--file", "https://images.example/a.png?b=c"]
    _, pdf, audio, sheet, link = prompt_of(sideband("run", "look", *words, *turns("yes"), "--json"))
    assert (pdf["type"], pdf["media_type"], pdf["name"]) == ("file", "application/pdf", "a.pdf")
    assert (audio["type"], audio["media_type"]) == ("audio", "audio/mpeg")
    assert (sheet["type"], sheet["name"]) == ("file", "c.xlsx")
    assert link == {"type": "image_url", "url": "https://images.example/a.png?b=c"}


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.bin", b"\0\x80", "unknown type of file"),
        ("a.txt", b"a" * ((1 << 20) + 1), "1 MiB for text"),
        ("a.gif", b"GIF89a".ljust((10 << 20) + 1), "10 MiB"),
        ("a.pdf", b"%PDF-".ljust((32 << 20) + 1), "32 MiB"),
    ],
    ids=["unknown", "text", "image", "file"],
)
def test_unsuitable_file_is_a_usage_error(sideband, turns, tmp_path, *, name, content, problem):
    (tmp_path / name).write_bytes(content)
    done = sideband("run", "look", "--file", tmp_path / name, *turns("yes"))
    assert done.returncode == 2
    assert problem in done.stderr.replace("\n", " ")


def test_files_are_limited_together(sideband, turns, tmp_path):
    (tmp_path / "a.pdf").write_bytes(b"%PDF-".ljust(20 << 20))
    done = sideband("run", "look", *["--file", tmp_path / "a.pdf"] * 2, *turns("yes"))
    assert done.returncode == 2
    assert "32 MiB for all files" in done.stderr.replace("\n", " ")


@pytest.mark.parametrize("address", ["https://ada:pw@images.example/a.png", "http://", "https://images.example/a b"])
def test_invalid_address_of_an_image_is_a_usage_error_that_does_not_repeat_it(sideband, turns, address):
    done = sideband("run", "look", "--file", address, *turns("yes"))
    assert done.returncode == 2
    assert "pw" not in done.stderr


def test_files_are_attached_as_named_texts_and_as_images(sideband, turns, tmp_path):
    (tmp_path / "notes.md").write_text("be brief\n")
    (tmp_path / "pixel.dat").write_bytes(PIXEL)
    words = ["--file", tmp_path / "notes.md", "--file", tmp_path / "pixel.dat"]
    text, image = prompt_of(sideband("run", "look", *words, *turns("yes", images=True), "--json"))
    assert text["text"] == 'look\n\n<file name="notes.md">\nbe brief\n</file>'
    assert image["media_type"] == "image/png"


@pytest.mark.parametrize(("name", "content"), [("binary", b"\x00\x01"), ("latin", b"caf\xe9"), ("missing", None)])
def test_file_that_is_neither_text_nor_image_is_refused(sideband, turns, tmp_path, name, content):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    done = sideband("run", "look", "--file", tmp_path / name, *turns("yes"))
    assert done.returncode == 2
    assert name in done.stderr


def test_missing_prompt_is_a_usage_error(sideband, turns):
    assert sideband("run", *turns("yes")).returncode == 2


def test_missing_model_error_explains_how_to_configure_one(sideband):
    done = sideband("run", "hello")
    assert (done.returncode, done.stdout) == (5, "")
    for part in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "Ollama", "scripted:", "sideband call"):
        assert part in done.stderr
    assert max(map(len, done.stderr.splitlines())) <= 100


def test_json_output_is_one_event_per_line_with_the_result_last(sideband, turns, hello):
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


def test_progress_of_tools_is_written_to_a_file_whatever_is_printed(sideband, turns, tmp_path):
    folder = tmp_path / "skills" / "counter"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: counter\ndescription: Counts.\n---\n")
    (folder / "tools.py").write_text(
        "from sideband.skill import progress, tool\n\n\n@tool\nasync def go() -> str:\n"
        '    """Count."""\n    await progress.report(current=1, total=2)\n    return "done"\n'
    )
    calls = {"text": "", "tool_calls": [{"name": "counter__go", "arguments": {}}]}
    file = tmp_path / "progress.ndjson"
    done = sideband("run", "count", "--skill-dir", folder, "-q", "--progress", file, *turns(calls, "ok"))
    assert (done.returncode, done.stdout) == (0, "ok\n")
    first, last = [json.loads(line) for line in file.read_text().splitlines()]
    assert (first["text"], first["closed"], last["text"], last["closed"]) == ("1/2", False, "", True)
    assert first["tool_call_id"] == last["tool_call_id"]


def test_progress_of_several_commands_at_once_is_complete_or_has_gaps_with_their_sizes(sideband, turns, tmp_path):
    last = 200_000
    commands = [f"seq -f {name}%.0f 1 {last}" for name in "abc"]
    calls = {"text": "", "tool_calls": [{"name": "command", "arguments": {"command": one}} for one in commands]}
    file = tmp_path / "progress.ndjson"
    (tmp_path / "work").mkdir()
    options = ["--yes", "-q", "--progress", file, *turns(calls, "ok")]
    done = sideband("run", "count", *options, folder=tmp_path / "work")
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr
    printed = {name: "".join([f"{name}{number}\n" for number in range(1, last + 1)]) for name in "abc"}
    received = dict.fromkeys(printed, 0)
    names, closed = {}, set()
    lines = map(json.loads, file.read_text().splitlines())
    for line in [one for one in lines if one["stream"] == "stdout"]:
        name = names.setdefault(line["tool_call_id"], line["text"][:1])
        at = received[name]
        assert printed[name].startswith(line["text"], at)
        received[name] = at + len(line["text"]) + line.get("gap", 0)
        if line["closed"]:
            closed.add(name)
    assert received == {name: len(text) for name, text in printed.items()}
    assert closed == set(printed)


def test_error_before_the_run_is_printed_as_json(sideband):
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
def test_provider_failure_exits_with_4_and_shows_how_to_resume(sideband, turns, failure, exit_code, status):
    words = ["run", "hello", *turns({"text": "never", "failures": [failure]})]
    done = sideband(*words)
    assert (done.returncode, done.stdout) == (exit_code, "")
    assert f"sideband run --resume --session {session_of(done)}" in done.stderr
    result = events_of(sideband(*words, "--json"))[-1]
    assert (result["status"], bool(result["resume_at"])) == (status, status == "parked")


def test_failed_run_resumes_from_its_last_step_with_its_model(sideband, turns, hello):
    failing = {"text": "never", "failures": [{"status": 401}]}
    options = turns(GREETS, failing)
    failed = sideband("run", "greet Ada", "--skill-dir", hello, *options)
    assert failed.returncode == 4
    turns(GREETS, "It said hello.")
    done = sideband("run", "--resume", "--session", session_of(failed), *options[2:])
    assert (done.returncode, done.stdout) == (0, "It said hello.\n")
    assert "hello.greet" not in done.stderr  # it is not run again


@pytest.mark.parametrize(
    ("model", "problem"),
    [
        ("unknown:test", "unknown provider `unknown`"),
        ("invalid", "unknown model `invalid`"),
        ("scripted:tset", "unknown model `scripted:tset` (did you mean `scripted:test`?)"),
    ],
)
def test_unknown_model_is_refused_before_it_is_stored_in_the_session(sideband, turns, model, problem):
    options = turns("one", "two")
    sideband("run", "hello", *options)
    done = sideband("run", "and", "-c", "-m", model, *options[2:])
    assert (done.returncode, done.stdout) == (5, "")
    assert problem in done.stderr
    assert sideband("run", "and", "-c", *options[2:]).stdout == "two\n"


@pytest.mark.parametrize("model", ["unknown:test", "invalid"])
def test_run_with_an_unknown_configured_model_can_resume_with_another(sideband, turns, model):
    done = sideband("run", "hello", *turns("yes")[2:], "--set", f"agent.model={model}")
    assert done.returncode in (4, 5)
    assert f"--session {session_of(done)} --model PROVIDER:MODEL\n" in done.stderr
    done = sideband("run", "--resume", "--session", session_of(done), *turns("yes"))
    assert (done.returncode, done.stdout) == (0, "yes\n")


def test_relative_script_of_the_user_file_is_found_from_any_folder(sideband, turns, tmp_path):
    turns("yes")
    (tmp_path / "home").mkdir()
    (tmp_path / "turns.toml").rename(tmp_path / "home" / "turns.toml")
    (tmp_path / "home" / "sideband.toml").write_text('[plugins.scripted]\nscript = "turns.toml"\n')
    (tmp_path / "elsewhere").mkdir()
    assert sideband("run", "hello", "-m", "scripted:test", folder=tmp_path / "elsewhere").stdout == "yes\n"


def test_problems_with_skills_are_reported(sideband, turns, make_skill):
    bad = make_skill("torn", "from sideband.skill import tool\nasync def (:\n")
    done = sideband("run", "hello", "--skill-dir", "nowhere", "--skill-dir", bad, *turns("yes"))
    assert (done.returncode, done.stdout) == (0, "yes\n")
    assert "notice: nowhere: " in done.stderr
    assert "`tools.py`" in done.stderr
    folders = [word for number in range(7) for word in ("--skill-dir", f"nowhere{number}")]
    done = sideband("run", "hello", *folders, *turns("yes"))
    assert "2 more problems with skills" in done.stderr


def test_model_select_event_names_the_previous_model(sideband, turns):
    options = [*turns("one", "two", "three"), "--set", "plugins.llm.aliases.other=scripted:other"]
    events = []
    for model in (["--model", "scripted:test"], ["--model", "scripted:test"], ["--model", "scripted:other"]):
        session = ["--session", "last"] if events else ["--new"]
        lines = sideband("run", "hello", *options, *session, *model, "--json").stdout.splitlines()
        events.append([event for event in map(json.loads, lines) if event["event"] == "model_select"])
    changes = [[(event["previous"], event["model"]) for event in selected] for selected in events]
    assert changes == [[(None, "scripted:test")], [], [("scripted:test", "scripted:other")]]


def test_resume_after_a_completed_run_is_a_usage_error(sideband, turns):
    sideband("run", "hello", *turns("yes"))
    done = sideband("run", "--resume", *turns("yes"))
    assert done.returncode == 2
    assert "nothing to resume" in done.stderr
    assert "sideband run --session " in done.stderr


def test_resume_with_a_prompt_is_a_usage_error(sideband):
    assert sideband("run", "--resume", "hello").returncode == 2


@pytest.mark.parametrize("which", ["last", "id", "prefix"])
def test_continued_session_keeps_its_model(sideband, turns, which):
    options = turns("one", "two")
    first = sideband("run", "hello", *options)
    session = {"last": "last", "id": session_of(first), "prefix": session_of(first)[:8]}[which]
    assert sideband("run", "and", "--session", session, *options[2:]).stdout == "two\n"
    assert sideband("run", "again", *options).stdout == "one\n"


def test_short_options_continue_the_last_session_or_a_named_one_with_a_model(sideband, turns):
    model, script = turns("one", "two", "three")[1], turns("one", "two", "three")[2:]
    first = sideband("run", "hello", "-m", model, *script)
    assert first.stdout == "one\n"
    assert sideband("run", "-c", "and", *script).stdout == "two\n"
    assert sideband("run", "and", "-s", session_of(first), *script).stdout == "three\n"


@pytest.mark.parametrize("words", [["--session", "last"], ["-c"], ["--continue"]])
def test_last_session_without_any_session_is_a_usage_error(sideband, turns, words):
    assert sideband("run", "hello", *words, *turns("yes")).returncode == 2


@pytest.mark.parametrize("words", [["--session", "last", "--new"], ["-c", "--new"], ["-c", "-s", "last"], ["-q", "-v"]])
def test_contradicting_options_are_a_usage_error(sideband, turns, words):
    assert sideband("run", "hello", *words, *turns("yes")).returncode == 2


def test_quiet_run_prints_only_the_answer(sideband, turns, hello):
    done = sideband("run", "greet Ada", "-q", "--skill-dir", hello, *turns(GREETS, "It said hello."))
    assert (done.returncode, done.stdout, done.stderr) == (0, "It said hello.\n", "")


def test_quiet_run_with_json_prints_only_the_result(sideband, turns):
    (result,) = events_of(sideband("run", "hello", "-q", "--json", *turns("yes")))
    assert (result["event"], result["text"]) == ("result", "yes")


def test_quiet_run_reports_its_failure(sideband, turns):
    done = sideband("run", "hello", "-q", *turns({"text": "never", "failures": [{"status": 401}]}))
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr.startswith("error: ")
    assert "sideband run --resume --session " in done.stderr


def test_verbose_run_shows_thinking_arguments_results_and_effects(sideband, turns, hello):
    long = "a" * 90 + " z\nerror: forged"
    call = {"thinking": "Hm.", "tool_calls": [{"name": "hello__greet", "arguments": {"name": long}}]}
    done = sideband("run", "greet", "-v", "--skill-dir", hello, *turns(call, "It said hello."))
    assert done.stdout == "It said hello.\n"
    lines = done.stderr.splitlines()
    assert "  Hm." in lines
    assert f'  name = "{"a" * 90} z\\nerror: forged"' in lines
    assert lines[lines.index("  result:") :][1:3] == [f"    hello {'a' * 90} z", "    error: forged"]
    effect = re.search(r"^  effect (\S+): tool\.call done, ", done.stderr, re.MULTILINE)[1]
    assert sideband("audit", "why", effect).returncode == 0


def test_retry_after_an_overload_is_reported(sideband, turns):
    overloaded = {"status": 529, "message": "overloaded", "headers": {"retry-after": "0.05"}}
    done = sideband("run", "hello", *turns({"text": "yes", "failures": [overloaded]}))
    assert (done.returncode, done.stdout) == (0, "yes\n")
    assert re.search(r"^! overloaded, retrying in [\d.]+ s \(attempt 2\): ", done.stderr, re.MULTILINE)


def test_incomplete_answer_is_not_written_to_a_pipe(sideband, turns):
    broken = {"text": "one two three four", "broken_after": 2}
    done = sideband("run", "hello", *turns(broken), "--set", "plugins.retry.attempts=0")
    assert (done.returncode, done.stdout) == (4, "")


def test_tool_outside_the_tools_option_is_rejected(sideband, turns, hello):
    done = sideband("run", "greet Ada", "--skill-dir", hello, "--tools", "other.*,more", *turns(GREETS, "I may not."))
    assert done.stdout == "I may not.\n"
    assert re.search(r"^\* hello\.greet name=Ada: rejected: ", done.stderr.replace("\n  ", " "), re.MULTILINE)


def test_run_above_the_cost_limit_is_parked(sideband, turns, hello):
    costly = {**GREETS, "usage": {"input": 10, "output": 10, "cost": 0.6}}
    done = sideband("run", "greet Ada", "--skill-dir", hello, "--max-cost", "0.5", *turns(costly, "never"))
    assert done.returncode != 0
    assert done.stdout == ""
    lines = done.stderr.replace("\n  ", " ").splitlines()
    assert "parked" in done.stderr
    assert any("or --max-cost if that set it" in line and "--max-tokens" not in line for line in lines)
    assert f"to resume this run: sideband run --resume --session {session_of(done)}" in lines


def test_call_above_the_cost_limit_is_reported(sideband, turns):
    costly = {"text": "dear", "usage": {"input": 10, "output": 10, "cost": 0.0013}}
    done = sideband("run", "hello", "--max-cost", "0.0001", *turns(costly))
    assert (done.returncode, done.stdout) == (0, "dear\n")
    assert "over budget: $0.0013 of $0.0001 used" in done.stderr.replace("\n  ", " ")
    assert "--max-cost" in done.stderr
    as_data = sideband("run", "hello", "--max-cost", "0.0001", *turns(costly), "--json")
    assert events_of(as_data)[-1]["over_budget"] == {"money": {"limit": 0.0001, "used": 0.0013}}
    again = sideband("run", "hello", "--session", "last", "--max-cost", "0.0001", *turns("never"))
    assert (again.returncode, again.stdout) == (1, "")
    assert "budget.spent" in again.stderr


@pytest.mark.parametrize(("words", "shown"), [(["--max-cost", "1"], True), (["--max-tokens-total", "900"], False)])
def test_cost_limit_that_cannot_be_checked_is_reported(sideband, plugin, words, shown):
    code = (
        "from sideband_scripted import Scripted, Turn\nfrom sideband.messages import Usage\n"
        "def sideband_providers():\n"
        "    return [Scripted([Turn('hi', usage=Usage(input=1))], name='acme', prices=None)]\n"
    )
    done = sideband("run", "hello", "-m", "acme:test", *words, **plugin("acme", "provider", code))
    assert (done.returncode, done.stdout) == (0, "hi\n")
    assert ("the limit of the cost was not checked" in done.stderr) is shown


@pytest.mark.parametrize("words", [["--max-cost", "-1"], ["--max-cost", "nan"], ["--max-tokens-total", "0"]])
def test_invalid_limit_is_a_usage_error(sideband, turns, words):
    assert sideband("run", "hello", *words, *turns("yes")).returncode == 2


def test_grant_without_a_terminal_is_denied_with_a_hint(sideband, turns, make_skill):
    code = "from sideband.skill import sql, tool\n@tool\nasync def look() -> int:\n    return 1\n"
    skill = make_skill("modest", code, "sql:path=notes.db")
    call = {"tool_calls": [{"name": "modest__look"}]}
    done = sideband("run", "look", "--skill-dir", skill, *turns(call, "I may not."))
    assert "modest.look" in done.stderr
    assert "failed" in done.stderr
    shown = " ".join(done.stderr.split())
    assert "--yes" in shown
    assert "--grant 'modest=sql:path=notes.db'" in shown
    done = sideband("run", "look", "--yes", "--skill-dir", skill, *turns(call, "I did."))
    assert re.search(r"^\* modest\.look: ok", done.stderr, re.MULTILINE)


def test_quiet_run_shows_only_why_it_parked_and_how_to_continue(sideband, turns, make_skill):
    code = "from sideband.skill import sql, tool\n@tool\nasync def look() -> int:\n    return 1\n"
    skill = make_skill("modest", code, "sql:path=notes.db")
    call = {"text": "I look.", "tool_calls": [{"name": "modest__look"}]}
    done = sideband("run", "look", "-q", "--skill-dir", skill, *turns(call, "I may not."))
    outcome, hint, resume = done.stderr.splitlines()
    assert outcome.startswith("parked: the run waits for approval of skill:modest")
    assert "--grant 'modest=sql:path=notes.db'" in hint
    assert "sideband run --resume --session" in resume
    assert (done.stdout, done.returncode) == ("", 3)


@pytest.mark.parametrize("model", ["openai-mine:m", "openai:m"])
def test_model_of_a_misconfigured_plugin_is_a_configuration_error(sideband, model):
    done = sideband("run", "hello", "-m", model, "--set", "plugins.openai.services.mine.base_url=mine")
    assert done.returncode == 5
    assert "`plugins.openai.services.mine.base_url`" in done.stderr


def test_control_and_bidirectional_characters_of_a_model_are_removed(sideband, turns):
    done = sideband("run", "hello", *turns("\x1b[31mred\u202eder\x07\r\nnext"))
    assert not {"\x1b", "\u202e", "\x07"} & set(done.stdout)
    assert done.stdout.splitlines()[-1] == "next"


def test_thinking_is_shown_on_request_and_never_in_the_answer(sideband, turns):
    options = turns({"thinking": "it is easy", "text": "yes"})
    assert "it is easy" not in sideband("run", "hello", *options).stderr
    done = sideband("run", "hello", "--thinking", *options)
    assert "it is easy" in done.stderr
    assert done.stdout == "yes\n"


def test_piped_output_has_no_colors(sideband, turns, hello):
    done = sideband("run", "greet", "--thinking", "--skill-dir", hello, *turns(GREETS, "done"))
    assert "\x1b" not in done.stdout + done.stderr


def test_control_characters_in_warnings_are_removed(sideband, turns):
    done = sideband("run", "hello", "--tools", "\x1b[31mred", *turns("yes"))
    assert "[31mred" in done.stderr
    assert "\x1b" not in done.stderr


def test_plugin_can_answer_instead_of_the_model(sideband, turns, plugin):
    code = "from sideband.hooks import Handled, hookimpl\n@hookimpl\ndef input(event):\n    return Handled('no need')\n"
    done = sideband("run", "hello", *turns("never"), **plugin("handler", "hook", code))
    assert (done.returncode, done.stdout) == (0, "no need\n")


def test_run_halted_by_a_guard_exits_with_3(sideband, turns, hello, plugin):
    code = (
        "from sideband.hooks import Deny, hookimpl\nclass Strict:\n    @hookimpl\n"
        "    def tool_call(self, event):\n        return Deny('not here', halt=True)\n"
        "def sideband_guards():\n    return [Strict]\n"
    )
    done = sideband("run", "greet", "--skill-dir", hello, *turns(GREETS, "x"), **plugin("strict", "guard", code))
    assert (done.returncode, done.stdout) == (3, "")
    assert "denied: " in done.stderr.replace("\n  ", " ")
    assert "not here" in done.stderr
