"""Chat commands, tested with piped lines: each is answered before the next one is read."""

import re

import pytest


@pytest.fixture
def chat(sideband, turns):
    """Return a function that sends lines to a chat with a scripted model."""

    def say(*lines, scripted=("one", "two", "three"), words=(), **environment):
        return sideband("chat", *words, *turns(*scripted), stdin="".join(f"{line}\n" for line in lines), **environment)

    return say


def test_help_lists_every_command_and_fits_a_terminal(chat):
    done = chat("/help", COLUMNS="80")
    names = (
        "help mode model models thinking goal tools session sessions new fork rewind tree label name compact cost "
        "status export retry quit"
    )
    for name in names.split():
        assert re.search(rf"^/{name}\b", done.stdout, re.MULTILINE), name
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_unknown_command_suggests_the_closest_one_and_how_to_send_the_text(chat):
    done = chat("/sesion", " /usr/bin is full")
    assert "did you mean `/session`?" in done.stderr
    assert "put a space before the slash" in done.stderr
    assert done.stdout == "one\n"


def test_quit_ignores_the_lines_after_it(chat):
    assert chat("/quit", "hello").stdout == ""


def test_quiet_chat_shows_no_activity(chat, hello):
    greets = {"tool_calls": [{"name": "hello__greet", "arguments": {"name": "Ada"}}]}
    words = ("--skill-dir", hello)
    assert "hello.greet" in chat("greet", scripted=[greets, "done"], words=words).stderr
    done = chat("greet", scripted=[greets, "done"], words=(*words, "-q"))
    assert (done.stdout, "hello.greet" in done.stderr) == ("done\n", False)


OTHER = ("--set", "plugins.llm.aliases.other=scripted:other")  # a model that its provider does not list


def test_model_command_shows_and_changes_the_model(chat):
    done = chat("/model", "/model scripted:other", "/model", "/model test", words=OTHER)
    assert done.stdout.splitlines() == [
        "scripted:test",
        "the model is scripted:other",
        "scripted:other",
        "the model is scripted:test",
    ]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("nope", "unknown model `nope` [model.unknown]"),
        ("tset", "unknown model `tset` (did you mean `scripted:test`?)"),
        ("scripted:tset", "unknown model `scripted:tset` (did you mean `scripted:test`?)"),
        ("scriptd:test", "unknown provider `scriptd` (did you mean `scripted`?)"),
    ],
)
def test_unknown_model_is_refused_and_the_old_one_is_kept(chat, name, problem):
    done = chat(f"/model {name}", "/model", "hello")
    assert problem in done.stderr
    assert done.stdout.splitlines() == ["scripted:test", "one"]


def test_refusal_of_a_model_names_the_available_models(chat):
    assert "hint: use one of scripted:test; models of anthropic, openai " in chat("/model nope").stderr


def test_ambiguous_model_is_refused(chat, plugin):
    provider = (
        "from sideband_scripted import Scripted\n"
        "def sideband_providers():\n    return [Scripted(['hi'], name='twin', model='test')]\n"
    )
    done = chat("/model test", "/model", **plugin("twin", "provider", provider))
    assert "ambiguous model `test`: it is one of scripted:test, twin:test" in done.stderr
    assert done.stdout == "scripted:test\n"


def test_model_of_a_provider_without_a_list_is_accepted(chat, plugin):
    provider = (
        "class Closed:\n"
        "    name = 'closed'\n"
        "    async def models(self, ctx):\n        raise OSError('no list')\n"
        "    async def stream(self, request, ctx):\n        raise OSError('no answer')\n        yield\n"
        "def sideband_providers():\n    return [Closed()]\n"
    )
    assert chat("/model closed:any", **plugin("closed", "provider", provider)).stdout == "the model is closed:any\n"


def test_models_command_lists_available_models(chat):
    assert "scripted:test" in chat("/models scripted").stdout


def test_tools_command_lists_tools_with_their_source(chat, hello):
    done = chat("/tools", words=["--skill-dir", hello])
    assert re.search(r"^hello\.greet .* skill hello$", done.stdout, re.MULTILINE)


def test_named_session_is_listed_and_can_be_switched_to(chat):
    done = chat("hello", "/name stars", "/new", "/sessions", "/session stars")
    assert "named the session `stars`" in done.stdout
    assert re.search(r"^\w{16} .* stars$", done.stdout, re.MULTILINE)
    assert re.search(r"^name +stars$", done.stdout, re.MULTILINE)


def test_rewind_removes_the_last_message_and_keeps_it_as_a_branch(chat):
    done = chat("hello", "wrong", "/rewind", "right", "/tree", scripted=("one", "two"))
    assert done.stdout.splitlines()[:2] == ["one", "two"]
    shown = [(line[0], line.partition(": ")[2]) for line in done.stdout.splitlines()[2:] if ": " in line]
    assert shown == [("*", "hello"), ("*", "one"), (" ", "wrong"), (" ", "two"), ("*", "right"), ("*", "two")]


def test_rewind_beyond_the_first_message_is_an_error(chat):
    assert "expected a number from 1 to 1" in chat("hello", "/rewind 2").stderr


def test_rewind_accepts_a_label(chat):
    done = chat("hello", "/label start", "more", "/rewind start", "/tree")
    assert re.search(r"^\* \w{8} \[start\] .*model: one$", done.stdout, re.MULTILINE)
    assert re.search(r"^  +\w{8} user: more$", done.stdout, re.MULTILINE)


def test_fork_starts_a_new_session(chat):
    done = chat("hello", "/fork", "more", "/session")
    assert done.stdout.splitlines()[0] == "one"
    assert re.search(r"^session \w{16}, a copy of \w{16}$", done.stdout, re.MULTILINE)
    assert "forked from" in done.stdout


def test_cost_and_status_show_the_usage(chat):
    usage = {"input": 90_000, "output": 10_000, "cost": 0.0123}
    done = chat("hello", "/cost", "/status", scripted=({"text": "yes", "usage": usage},))
    assert "90k tokens in, 10k out, $0.0123" in done.stdout
    assert re.search(r"^context +50 % of 200k$", done.stdout, re.MULTILINE)


def test_thinking_command_shows_and_changes_the_level(chat):
    done = chat("/thinking", "/thinking high", "/status", "/thinking deep")
    assert done.stdout.splitlines()[:2] == [
        "the level of thinking is that of the provider",
        "the level of thinking is high",
    ]
    assert re.search(r"^thinking +high$", done.stdout, re.MULTILINE)
    assert "unknown level of thinking: `deep`" in done.stderr


def test_goal_command_shows_sets_and_ends_the_goal(chat):
    done = chat("/goal", "/goal tests pass", "/goal", "/status", "/goal reached", "/goal dropped")
    assert [line for line in done.stdout.splitlines() if "goal" in line] == [
        "the session has no goal",
        "the goal is: tests pass",
        "the goal is: tests pass",
        "goal     tests pass",
        "the goal was reached",
        "the session has no goal",
    ]


def test_chat_shows_the_goal_of_a_resumed_session(chat):
    chat("/goal tests pass", "hello")
    assert "goal: tests pass" in chat("hello", words=["-c"]).stderr


@pytest.fixture
def programs(tmp_path):
    """The options of a chat that runs programs, in a folder that does not contain the state of the host."""
    folder = tmp_path / "work"
    folder.mkdir()
    return {"words": ["--set", "policy.isolation=none"], "folder": folder}


def test_program_after_an_exclamation_mark_runs_and_is_shown_to_the_model(chat, programs):
    done = chat("!echo 'a  b'", "hello", "/tree", **programs)
    assert done.stdout.splitlines()[:2] == ["a  b", "one"]
    assert "program: The user ran" in done.stdout


def test_program_after_two_exclamation_marks_is_hidden_from_the_model(chat, programs):
    done = chat("!!echo yes", "hello", "/tree", **programs)
    assert done.stdout.splitlines()[0] == "yes"
    assert "The user ran" not in done.stdout


def test_program_that_fails_shows_its_exit_code(chat, programs):
    assert "exit code 1: false" in chat("!false", **programs).stderr


def test_command_that_needs_a_shell_is_refused_with_a_hint(chat):
    done = chat("!echo a | cat", "!", "hello")
    assert "'|' needs a shell" in done.stderr
    assert "!sh -c 'echo a | cat'" in done.stderr
    assert "the command is empty" in done.stderr
    assert done.stdout == "one\n"


def test_short_conversation_is_not_compacted(chat):
    assert "nothing to compact" in chat("hello", "/compact").stdout


def test_retry_after_a_completed_run_has_nothing_to_resume(chat):
    assert "nothing to resume" in chat("hello", "/retry").stderr


def test_export_to_a_missing_folder_names_its_remedy(chat):
    done = chat("hello", "/export missing/out.jsonl")
    assert "[state.unwritable]" in done.stderr
    assert "hint: check that its folder exists" in done.stderr
    assert "SIDEBAND_HOME" not in done.stderr


def test_export_does_not_overwrite_a_file(chat, tmp_path):
    done = chat("hello", "/export out.jsonl", "/export out.jsonl")
    assert "out.jsonl" in done.stdout
    assert "hello" in (tmp_path / "out.jsonl").read_text()
    assert "error:" in done.stderr
    assert "--force" not in done.stderr


def test_command_of_a_plugin_gets_the_agents_context(chat, plugin):
    environment = plugin("todo", "hook", COMMAND.format(name="todo"))
    done = chat("/todo buy milk", "/help", **environment)
    assert "todo: buy milk in scripted:test" in done.stdout
    assert "keep a list (todo)" in done.stdout


def test_failing_command_of_a_plugin_does_not_end_the_chat(chat, plugin):
    code = COMMAND.format(name="todo").replace("return f", "raise ValueError('no list')\n    return f")
    done = chat("/todo", "hello", **plugin("todo", "hook", code))
    assert "no list" in done.stderr
    assert done.stdout == "one\n"


def test_conflicting_commands_are_ignored_with_a_notice(chat, plugin):
    plugin("first", "hook", COMMAND.format(name="todo"))
    plugin("third", "hook", COMMAND.format(name="quit"))
    done = chat("/todo", "/quit", "hello", **plugin("second", "hook", COMMAND.format(name="todo")))
    assert "`/todo`: defined by `first` and `second`" in done.stderr
    assert "`/quit` of `third`: the name is built in" in done.stderr
    assert "unknown command `/todo`" in done.stderr
    assert "[chat.command]" in done.stderr
    assert done.stdout == ""


COMMAND = """
from sideband.hooks import ChatCommand, hookimpl

async def todo(text, ctx):
    return f"todo: {{text}} in {{ctx.model}}"

@hookimpl
def chat_commands(event):
    return [ChatCommand("{name}", "keep a list", todo)]
"""


def test_reload_replaces_a_plugin_and_names_its_version(chat):
    done = chat("/reload progress", "/reload sqlite", "/reload")
    assert re.search(r"^reloaded op\.progress \(sideband-progress \S+\)$", done.stdout, re.MULTILINE)
    assert "its store is in use" in done.stderr
    assert "skills, prompts and tools were loaded again" in done.stdout
