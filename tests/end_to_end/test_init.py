"""``sideband init`` and ``auth``: from a fresh home to the first answer, with questions that each have a default."""

import json
import tomllib

import pytest

from .model_server import ModelServer

CANARY = "canary-7f3a9c51"
ONLY_CONFIGURED = {"SIDEBAND_PLUGINS__OPENAI__LOCAL": "false", "SIDEBAND_PLUGINS__SECRETS__BACKEND": '"encrypted"'}


@pytest.fixture
def server():
    """A server with two models for text, at the place of Ollama."""
    running = ModelServer(["nomic-embed-text", "llama3.2:latest", "qwen3:latest"])
    yield running
    running.close()


@pytest.fixture
def local(server):
    services = f'{{ollama = {{base_url = "{server.address}"}}}}'
    return {**ONLY_CONFIGURED, "SIDEBAND_PLUGINS__OPENAI__SERVICES": services}


@pytest.fixture
def written(tmp_path):
    """Return the settings that were written, or ``None``."""

    def read():
        file = tmp_path / "home" / "sideband.toml"
        return tomllib.loads(file.read_text()) if file.exists() else None

    return read


def answer(run, question, text=""):
    run.wait_for(question)
    run.type(f"{text}\n")


def test_first_answer_of_a_local_model_takes_one_command_and_defaults(terminal, local, written, server):
    run = terminal("run", "hello", **local)
    answer(run, "Set one up now? [Y/n]")
    answer(run, "Where does the model run? [1]")
    assert "1. on this machine, with Ollama (2 models)" in run.text
    answer(run, "Which model? [1]")
    answer(run, "More folders of skills")
    assert run.wait() == 0
    assert "Hello from here." in run.text.splitlines()
    assert server.used == ["llama3.2:latest"]
    assert written() == {"agent": {"model": "openai-ollama:llama3.2:latest"}}


def test_chat_without_a_model_sets_one_up(terminal, local, written):
    chat = terminal("chat", **local)
    answer(chat, "Set one up now?")
    answer(chat, "Where does the model run?")
    answer(chat, "Which model?", "2")
    answer(chat, "More folders of skills")
    chat.wait_for("mode assist")
    chat.say("hello")
    chat.wait_for("Hello from here.")
    chat.type("\x04")
    assert chat.wait() == 0
    assert written() == {"agent": {"model": "openai-ollama:qwen3:latest"}}


def test_declined_setup_ends_with_the_error_that_explains_it(terminal, local, written):
    run = terminal("run", "hello", **local)
    answer(run, "Set one up now?", "n")
    assert run.wait() == 5
    assert "[agent.model]" in run.text
    assert written() is None


def test_interrupt_at_a_question_changes_nothing(terminal, local, written):
    for question in ("Where does the model run?", "More folders of skills"):
        run = terminal("init", **local)
        if question != "Where does the model run?":
            answer(run, "Where does the model run?")
            answer(run, "Which model?")
        run.wait_for(question)
        run.type("\x03")
        assert run.wait() == 130
        assert run.is_restored()
        assert written() is None


def test_settings_are_kept_and_folders_added(terminal, local, written, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "skills").mkdir()
    file = tmp_path / "home" / "sideband.toml"
    file.write_text("# mine\n[agent]\nmodel = 'openai-ollama:qwen3:latest'  # the best\n[skills]\nfolders = ['/srv']\n")
    run = terminal("init", **local)
    answer(run, "Where does the model run? [1]")
    answer(run, "Which model? [1]")
    answer(run, "More folders of skills", "missing")
    run.wait_for("there is no folder")
    run.answer("[none]:", "skills\n")
    assert run.wait() == 0
    assert written()["agent"] == {"model": "openai-ollama:qwen3:latest"}
    assert written()["skills"] == {"folders": ["/srv", str(tmp_path / "skills")]}
    assert file.read_text().startswith("# mine\n[agent]\nmodel =")
    assert "# the best" in file.read_text()


def test_key_of_another_service_is_asked_without_echo_and_stored_as_a_secret(terminal, sideband, written, server):
    server.key = CANARY
    run = terminal("init", **ONLY_CONFIGURED)
    answer(run, "Where does the model run?", "3")
    answer(run, "Address of its API", server.address)
    answer(run, "A name for it [local]", "mine")
    run.wait_for("Key of mine, which is not shown")
    run.type("wrong\n")
    run.wait_for("mine refused the key", "Try again.")
    run.answer("(Enter for none):", f"{CANARY}\n")
    answer(run, "Which model? [1]")
    answer(run, "More folders of skills")
    assert run.wait() == 0
    assert CANARY not in run.text
    services = {"mine": {"base_url": server.address}}
    assert written() == {
        "agent": {"model": "openai-mine:llama3.2:latest"},
        "plugins": {"openai": {"services": services}},
    }
    (stored,) = json.loads(sideband("secrets", "list", "--json", **ONLY_CONFIGURED).stdout)["items"]
    assert (stored["name"], stored["origins"]) == ("openai-mine", [server.address.removesuffix("/v1")])
    assert sideband("run", "hello", **ONLY_CONFIGURED).stdout == "Hello from here.\n"


def test_without_any_model_the_default_is_to_have_no_model_yet(terminal, written):
    run = terminal("init", **ONLY_CONFIGURED)
    run.wait_for("none yet", "Where does the model run? [4]")
    run.type("\n")
    answer(run, "More folders of skills")
    assert run.wait() == 0
    assert "ollama pull" in run.text
    assert written() is None


def test_without_a_terminal_the_error_names_the_settings_to_write(sideband, local, written):
    done = sideband("init", "--json", **local)
    error = json.loads(done.stdout)["error"]
    assert (done.returncode, error["code"]) == (2, "init.terminal")
    assert 'model = "openai-ollama:llama3.2:latest"' in error["hint"]
    assert written() is None
    assert json.loads(sideband("init", "--yes", "--json", **local).stdout)["model"] == "openai-ollama:llama3.2:latest"
    assert written() == {"agent": {"model": "openai-ollama:llama3.2:latest"}}
    assert sideband("init", "--yes", **ONLY_CONFIGURED).returncode == 5


@pytest.fixture
def hosted(server):
    """The environment of a configured service whose server expects a key."""
    server.key = CANARY
    return {**ONLY_CONFIGURED, "SIDEBAND_PLUGINS__OPENAI__SERVICES": f'{{one = {{base_url = "{server.address}"}}}}'}


def test_key_is_stored_from_standard_input_tried_listed_and_deleted(sideband, hosted):
    def auth(*words, code=0, **options):
        done = sideband("auth", *words, "--json", **hosted, **options)
        assert done.returncode == code, done.stdout + done.stderr
        assert CANARY not in done.stdout + done.stderr
        return json.loads(done.stdout)

    def state():
        return next(one for one in auth("list") if one["provider"] == "openai-one")

    assert auth("login", "openai-one", stdin="wrong\n", code=3)["error"]["code"] == "auth.refused"
    assert state()["key"] == "not needed"
    assert auth("login", "openai-one", stdin=f"{CANARY}\n")["models"] == 2
    assert (state()["key"], state()["models"]) == ("the secret `openai-one`", 2)
    # A key that is refused does not replace one that works.
    assert auth("login", "openai-one", stdin="wrong\n", code=3)["error"]["code"] == "auth.refused"
    assert state()["models"] == 2
    assert auth("logout", "openai-one")["deleted"]
    assert not auth("logout", "openai-one")["deleted"]
    assert state()["models"] == 0
    assert auth("login", "openai-one", code=2)["error"]["message"] == "the key is empty"
    assert "did you mean `anthropic`" in auth("login", "antropic", code=2)["error"]["message"]
    assert "gets no key" in auth("login", "openai-ollama", code=2)["error"]["message"]


def test_key_is_read_at_a_terminal_without_echo(terminal, hosted):
    run = terminal("auth", "login", "openai-one", **hosted)
    run.wait_for("which is not shown")
    run.type(f"{CANARY}\n")
    assert run.wait() == 0
    assert "it works: 2 models" in run.text
    assert CANARY not in run.text
    assert run.is_restored()
