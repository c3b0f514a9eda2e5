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
        assert "▌ error: interrupted [interrupted]" in run.text.splitlines()
        assert written() is None


def test_interrupt_at_the_question_for_a_key_ends_its_line(terminal, hosted):
    run = terminal("auth", "login", "openai-one", **hosted)
    run.wait_for("which is not shown")
    run.type("\x03")
    assert run.wait() == 130
    assert run.is_restored()
    assert "▌ error: interrupted [interrupted]" in run.text.splitlines()


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("http://[::1", "that is not an address"),
        ("ftp://models.example", "that is not an address"),
        ("http://127.0.0.1:99999/v1", "that is not an address"),
        ("http://ada:secret@127.0.0.1/v1", "no user name"),
    ],
)
def test_unusable_address_is_explained_and_asked_again(terminal, written, address, problem):
    run = terminal("init", **ONLY_CONFIGURED)
    answer(run, "Where does the model run?", "3")
    answer(run, "Address of its API", address)
    run.wait_for(problem)
    run.answer("run? [4]:", "\n")
    answer(run, "More folders of skills")
    assert run.wait() == 0
    assert written() is None


def test_server_that_does_not_answer_is_named_and_gets_no_key(terminal, sideband, server):
    server.close()
    run = terminal("init", **ONLY_CONFIGURED)
    answer(run, "Where does the model run?", "3")
    answer(run, "Address of its API", server.address)
    answer(run, "A name for it")
    run.wait_for("local has no models", "no response")
    run.answer("Where does the model run? [4]:", "\x03")
    assert run.wait() == 130
    assert "which is not shown" not in run.text
    assert json.loads(sideband("secrets", "list", "--json", **ONLY_CONFIGURED).stdout)["items"] == []


def test_key_of_a_service_that_is_not_set_up_is_not_kept(terminal, sideband, server):
    server.key, server.models = CANARY, ["only-embeds"]
    run = terminal("init", **ONLY_CONFIGURED)
    answer(run, "Where does the model run?", "3")
    answer(run, "Address of its API", server.address)
    answer(run, "A name for it")
    answer(run, "(Enter for none):", CANARY)
    run.wait_for("local has no models: its list is empty")
    run.answer("Where does the model run? [4]:", "\x03")
    assert run.wait() == 130
    assert json.loads(sideband("secrets", "list", "--json", **ONLY_CONFIGURED).stdout)["items"] == []


def test_name_of_another_service_is_not_taken(terminal, written, server, tmp_path):
    (tmp_path / "home").mkdir()
    table = "[plugins.openai.services.local]\nbase_url = 'http://127.0.0.1:9/v1'\n"
    (tmp_path / "home" / "sideband.toml").write_text(table)
    run = terminal("init", **ONLY_CONFIGURED)
    answer(run, "Where does the model run?", "3")
    answer(run, "Address of its API", server.address)
    answer(run, "A name for it [local-2]", "local")
    answer(run, "local is at http://127.0.0.1:9 now. Replace it? [y/N]")
    run.answer("run? [4]:", "\x03")
    assert run.wait() == 130
    assert (tmp_path / "home" / "sideband.toml").read_text() == table


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


def test_key_for_another_address_is_kept(sideband, hosted):
    old = "https://old.example"
    assert sideband("secrets", "set", "openai-one", "--origin", old, stdin="old", **hosted).returncode == 0
    error = json.loads(sideband("auth", "login", "openai-one", "--json", stdin=CANARY, **hosted).stdout)["error"]
    assert "is a key for https://old.example" in error["message"]
    (stored,) = json.loads(sideband("secrets", "list", "--json", **hosted).stdout)["items"]
    assert stored["origins"] == [old]


def test_key_that_no_header_can_have_is_refused(sideband, hosted):
    for key in ("ключ", "two words", "a\x1bb"):
        error = json.loads(sideband("auth", "login", "openai-one", "--json", stdin=key, **hosted).stdout)["error"]
        assert error["code"] == "auth.refused"


def test_invalid_address_in_the_settings_does_not_end_the_list(sideband):
    services = '{one = {base_url = "http://[::1"}}'
    done = sideband("auth", "list", "--json", **{**ONLY_CONFIGURED, "SIDEBAND_PLUGINS__OPENAI__SERVICES": services})
    assert done.returncode == 0, done.stdout
    assert {one["provider"] for one in json.loads(done.stdout)} >= {"anthropic"}


def test_key_is_read_at_a_terminal_without_echo(terminal, hosted):
    run = terminal("auth", "login", "openai-one", **hosted)
    run.wait_for("which is not shown")
    run.type(f"{CANARY}\n")
    assert run.wait() == 0
    assert "it works: 2 models" in run.text
    assert CANARY not in run.text
    assert run.is_restored()
