import json
import os
from binascii import crc32
from pathlib import Path

import pytest
from sideband.command_line import run
from sideband.plugins import PluginPolicy
from sideband.plugins._cache import cache_file
from sideband.settings import load_settings, trust_project
from sideband.settings._plugin_policy import known_plugin_policy, remember_plugin_policy

DENIED = '[policy.deny]\n"op.sql" = "not here"\n[plugins.http]\ntoken = "very-secret"\n'


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Return a home and the folder of a project, in which all changes seem to be old."""
    for name in ("home", "project"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr("sideband.plugins._cache._SETTLED", -1)
    return tmp_path / "home", tmp_path / "project"


def read(home, project, **variables):
    """Read the configuration and remember its policy, as each command does."""
    policy = load_settings(home, project=project, environment=variables).plugin_policy()
    remember_plugin_policy(home, project, variables, policy)
    return policy


def known(home, project, **variables):
    return known_plugin_policy(home, project, variables)


def test_policy_is_known_without_any_configuration(places):
    assert known(*places) == PluginPolicy()


def test_policy_of_configuration_that_was_never_read_is_unknown(places):
    (places[0] / "sideband.toml").write_text(DENIED)
    assert known(*places) is None


def test_policy_of_configuration_that_cannot_be_examined_is_unknown(places):
    (places[0] / "sideband.toml").symlink_to("sideband.toml")
    assert known(*places) is None


def test_remembered_policy_equals_that_of_the_configuration(places):
    text = '[policy]\nonly = ["op.*", "store.*"]\n[policy.conflicts]\n"op.http" = "mine"\n'
    text += '[grants]\n"plugin:geo" = ["http", "sql"]\nskill = ["http"]\n[policy.files]\n"hook.one" = "one.py"\n'
    (places[0] / "sideband.toml").write_text(text + DENIED)
    policy = read(*places)
    found = known(*places)
    assert found.rights == {"plugin:geo": ("http", "sql")}
    assert found.files == {"hook.one": str(places[0] / "one.py")}
    for name in ("deny", "only", "conflicts", "rights", "files"):
        assert getattr(found, name) == getattr(policy, name)
    assert found.config.keys() == policy.config.keys()
    assert found.config_source["http"] == policy.config_source["http"]


def test_values_of_the_configuration_of_plugins_are_not_remembered(places):
    (places[0] / "sideband.toml").write_text(DENIED)
    read(*places)
    assert known(*places).config == {"http": {}}
    assert not [path for path in (places[0] / "cache").iterdir() if b"very-secret" in path.read_bytes()]


@pytest.mark.parametrize("name", ["SIDEBAND_POLICY__DENY", "SIDEBAND_SECTION__KEY", "SIDEBAND_POLICY_DENY"])
def test_policy_is_unknown_if_variables_have_settings(places, name):
    assert known(*places, SIDEBAND_HOME="/tmp", SIDEBAND_SECRETS_PASSPHRASE="x") == PluginPolicy()
    assert known(*places, **{name: '{"op.sql" = "not here"}'}) is None


def change(file):
    """Change a policy without size and mtime, as a program that hides it would."""
    before = file.stat()
    file.write_text(file.read_text().replace("op.sql", "op.llm"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


CHANGES = {
    "changed content": lambda home, project: change(home / "sideband.toml"),
    "longer content": lambda home, project: (home / "sideband.toml").write_text(DENIED + "\n"),
    "replaced file": lambda home, project: (
        (home / "new").write_text(DENIED),
        (home / "new").rename(home / "sideband.toml"),
    ),
    "project file": lambda home, project: (project / "sideband.toml").write_text(""),
    "file in a parent folder": lambda home, project: (project.parent / "sideband.toml").write_text(""),
    "trusted project": trust_project,
}


@pytest.mark.parametrize("how", CHANGES)
def test_changed_configuration_is_noticed_at_once(places, how):
    (places[0] / "sideband.toml").write_text(DENIED)
    read(*places)
    assert known(*places) is not None
    CHANGES[how](*places)
    assert known(*places) is None


def test_removed_configuration_is_noticed_at_once(places):
    (places[0] / "sideband.toml").write_text(DENIED)
    read(*places)
    (places[0] / "sideband.toml").unlink()
    assert known(*places) == PluginPolicy()


@pytest.mark.parametrize("place", [0, 1])
def test_configuration_with_something_to_report_is_read_by_each_command(places, monkeypatch, place):
    home, project = places
    monkeypatch.setenv("SIDEBAND_HOME", str(home))
    monkeypatch.chdir(project)
    (places[place] / "sideband.toml").write_text("[polcy]\ntimeout = 5\n")  # invalid in the home, else not trusted
    assert run(["--version", "--json"]) == 0
    assert known(*places) is None
    (places[place] / "sideband.toml").unlink()
    (home / "sideband.toml").write_text(DENIED)
    assert run(["--version", "--json"]) == 0
    assert known(*places).deny == {"op.sql": "not here"}


def test_recent_change_of_the_configuration_is_not_remembered(places, monkeypatch):
    monkeypatch.undo()
    (places[0] / "sideband.toml").write_text(DENIED)
    os.utime(places[0] / "sideband.toml", (1_000_000_000, 1_000_000_000))  # the time of its last change remains recent
    read(*places)
    assert known(*places) is None


@pytest.mark.parametrize(
    "content",
    [
        {},
        [],
        {"deny": [], "only": None, "conflicts": {}, "plugins": {}},
        {"deny": {}, "only": 3, "conflicts": {}, "plugins": {}},
    ],
)
def test_damaged_policy_is_ignored(places, content):
    (places[0] / "sideband.toml").write_text(DENIED)
    read(*places)
    file = Path(cache_file(places[0], "plugin-policy"))
    data = json.loads(file.read_bytes().partition(b"\n")[2])
    body = json.dumps({**data, "content": content}).encode()
    file.write_bytes(b"%08x\n%s" % (crc32(body), body))
    assert known(*places) is None
