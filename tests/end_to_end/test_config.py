"""``sideband config``: values with their sources, and changes that are checked before they are written."""

import json
from pathlib import Path

import pytest

WRITTEN = "# mine\n[agent]\nmodel = 'a:b'  # cheap\n"


@pytest.fixture
def config(sideband):
    """Return a function that runs the command, and returns its data, or its error if that is expected."""

    def run(*words, code=0, **environment):
        done = sideband("config", *words, "--json", **environment)
        assert done.returncode == code, done.stdout + done.stderr
        data = json.loads(done.stdout)
        return data["error"] if code else data

    return run


@pytest.fixture
def file(tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "sideband.toml").write_text(WRITTEN)
    return tmp_path / "home" / "sideband.toml"


def test_value_is_shown_with_its_source(config, file):
    assert config("get", "agent.model") == {"key": "agent.model", "value": "a:b", "source": str(file)}
    assert config("get", "agent.turns") == {"key": "agent.turns", "value": 200, "source": "default"}
    of_variable = config("get", "agent.model", SIDEBAND_AGENT__MODEL="c:d")
    assert (of_variable["value"], of_variable["source"]) == ("c:d", "SIDEBAND_AGENT__MODEL")
    assert {one["key"] for one in config("get", "agent.budget")} >= {"agent.budget.money", "agent.budget.calls"}
    assert config("get", "plugins.openai.local")["source"] == "default"
    assert "did you mean `agent.model`" in config("get", "agent.modle", code=2)["message"]


def test_set_changes_one_value_and_keeps_comments(config, file):
    assert config("set", "agent.model", "c:d")["value"] == "c:d"
    config("set", "policy.timeout", "5")
    config("set", 'plugins.llm.prices."openai:gpt-5.1"', "{input = 1, output = 2}")
    text = file.read_text()
    assert text.startswith('# mine\n[agent]\nmodel = "c:d"  # cheap\n')
    prices = config("get", "plugins.llm.prices")["value"]
    assert prices["openai:gpt-5.1"]["output"] == 2
    config("unset", "policy.timeout")
    assert config("get", "policy.timeout")["source"] == "default"
    assert config("unset", "policy.timeout", code=2)["code"] == "usage"


@pytest.mark.parametrize(
    ("words", "code", "problem"),
    [
        (["agent.modle", "x"], 5, "did you mean `agent.model`"),
        (["policy.timeout", "no"], 5, "expected a number"),
        (["plugins.openai.local", "5"], 5, "`plugins.openai.local`"),
        (["plugins.openai.services.x.api", "chat"], 5, "missing `base_url`"),
        (["plugins.opnai.local", "true"], 2, "did you mean `openai`"),
        (["agent", "x"], 2, "is not a setting"),
        (["plugins.openai", "x"], 2, "is a table"),
    ],
)
def test_invalid_value_is_refused_and_nothing_is_written(config, file, words, code, problem):
    assert problem in config("set", *words, code=code)["message"]
    assert file.read_text() == WRITTEN


def test_hidden_change_is_reported(sideband, file):
    done = sideband("config", "set", "agent.model", "c:d", SIDEBAND_AGENT__MODEL="e:f")
    assert "SIDEBAND_AGENT__MODEL sets `agent.model` too" in done.stderr


def test_secrets_of_plugins_are_hidden(config, plugin, file):
    code = (
        "from pydantic import BaseModel, Field\nfrom sideband.ops import OpFamily\n"
        "class Config(BaseModel):\n    token: str = Field(default='', repr=False)\n"
        "def sideband_ops():\n    return OpFamily([])\n"
    )
    found = plugin("vault-like", "op", code)
    config("set", "plugins.vault-like.token", "canary-1", **found)
    assert config("get", "plugins.vault-like.token", **found)["value"] == "[hidden]"
    assert "canary-1" not in json.dumps(config("get", **found))


def test_edited_file_is_checked_before_it_replaces_the_settings(config, file):
    assert config("edit", EDITOR="sed -i s/a:b/c:d/")["changed"]
    assert "'c:d'  # cheap" in file.read_text()
    before = file.read_text()
    assert "unknown key" in config("edit", EDITOR="sed -i s/model/modle/", code=5)["message"]
    assert "invalid TOML" in config("edit", EDITOR="sed -i s/agent./agent/", code=5)["message"]
    assert "failed" in config("edit", EDITOR="false", code=2)["message"]
    assert not config("edit", EDITOR="true")["changed"]
    assert file.read_text() == before
    assert [one.name for one in file.parent.iterdir() if "edited" in one.name] == []


@pytest.mark.parametrize(
    ("editor", "problem"),
    [
        ("vi '", "the variable EDITOR is not a command"),
        ("rm", "left no file"),
        ("/nowhere/vi", "cannot run the editor"),
    ],
)
def test_unusable_editor_changes_nothing(config, file, editor, problem):
    error = config("edit", EDITOR=editor, code=2)
    assert error["code"] == "usage"
    assert problem in error["message"]
    assert file.read_text() == WRITTEN


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a folder in which no file can be created")
def test_file_to_edit_that_cannot_be_written_is_reported(config):
    assert config("edit", EDITOR="true", SIDEBAND_HOME="/proc/self", code=1)["code"] == "state.unwritable"


def test_invalid_file_can_be_mended_in_the_editor(config, file):
    file.write_text("[agent\nmodel = 'a:b'\n")
    assert config("edit", EDITOR="sed -i s/.agent/[agent]/")["changed"]
    assert config("get", "agent.model")["value"] == "a:b"


def test_invalid_text_can_be_edited_again_at_a_terminal(terminal, file, tmp_path):
    editor = tmp_path / "editor"
    editor.write_text(
        "#!/bin/sh\nif grep -q wrong $1; then sed -i s/wrong/model/ $1; else sed -i s/model/wrong/ $1; fi\n"
    )
    editor.chmod(0o700)
    run = terminal("config", "edit", EDITOR=str(editor))
    run.wait_for("Edit it again?")
    run.type("\n")
    run.wait_for("nothing was changed")
    assert run.wait() == 0
    assert file.read_text() == WRITTEN


def test_path_is_shown_before_the_file_exists(config, tmp_path):
    path = str(tmp_path / "home" / "sideband.toml")
    assert config("path") == {"path": path, "exists": False, "project": None}
