"""Changes of the settings file of the user."""

import os
import stat
import tomllib

import pytest
from sideband import ConfigurationError
from sideband.errors import place_of
from sideband.state import FileLock
from sideband_settings_file import SettingsFile, changed_settings

WRITTEN = """\
# mine
[agent]   # the agent
model = "openai:one"  # cheap
turns = 5

# about plugins
[plugins.http]
timeout = 5
"""


def change(text, tmp_path, *path, value):
    file = SettingsFile(tmp_path / "sideband.toml", text)
    file.set(path, value)
    return file.text


@pytest.mark.parametrize(
    ("written", "path", "value"),
    [
        ("", ("agent", "model"), "a:b"),
        ("", ("plugins", "openai", "services", "one", "base_url"), "http://127.0.0.1/v1"),
        ("", ("plugins", "openai", "services", "one"), {"base_url": "x", "headers": {"a": "b"}}),
        ("agent.model = 'x'\n", ("agent", "model"), "a:b"),
        ("agent.turns = 3\n", ("agent", "model"), "a:b"),
        ("agent = {turns = 3}\n", ("agent", "model"), "a:b"),
        ("[agent.budget]\nmoney = 1\n", ("agent", "model"), "a:b"),
        ("[plugins]\n[policy]\ntimeout = 5\n", ("plugins", "http", "timeout"), 3.5),
        ("[skills]\nfolders = ['a']\n", ("skills", "folders"), ["a", "b"]),
    ],
)
def test_value_is_set_however_the_tables_are_written(tmp_path, written, path, value):
    wanted = tomllib.loads(written)
    inside = wanted
    for key in path[:-1]:
        inside = inside.setdefault(key, {})
    inside[path[-1]] = value
    assert tomllib.loads(change(written, tmp_path, *path, value=value)) == {**tomllib.loads(written), **wanted}


def test_comments_and_formatting_are_kept(tmp_path):
    text = change(WRITTEN, tmp_path, "agent", "model", value="a:b")
    assert text == WRITTEN.replace("openai:one", "a:b")


def test_removed_value_leaves_the_rest(tmp_path):
    file = SettingsFile(tmp_path / "sideband.toml", WRITTEN)
    file.remove(("agent", "turns"))
    file.remove(("agent", "nothing"))
    assert file.text == WRITTEN.replace("turns = 5\n", "")


def test_value_is_not_replaced_by_a_table(tmp_path):
    with pytest.raises(ConfigurationError, match=r"`agent\.model` is not a table"):
        change(WRITTEN, tmp_path, "agent", "model", "name", value="x")


def test_failed_block_changes_nothing(tmp_path):
    (tmp_path / "sideband.toml").write_text(WRITTEN)

    def fail():
        with changed_settings(tmp_path) as file:
            file.set(("agent", "model"), "a:b")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert (tmp_path / "sideband.toml").read_text() == WRITTEN


def test_new_file_is_for_its_owner_only(tmp_path):
    with changed_settings(tmp_path / "home") as file:
        file.set(("agent", "model"), "a:b")
    written = tmp_path / "home" / "sideband.toml"
    assert written.read_text() == '[agent]\nmodel = "a:b"\n'
    assert stat.S_IMODE(written.stat().st_mode) == 0o600


def test_invalid_file_is_reported_and_kept(tmp_path):
    for content in (b"[agent", b"a = '\xff'\n"):
        (tmp_path / "sideband.toml").write_bytes(content)
        with pytest.raises(ConfigurationError, match="invalid TOML"), changed_settings(tmp_path):
            pass
        assert (tmp_path / "sideband.toml").read_bytes() == content


def test_other_commands_wait_until_the_change_is_written(tmp_path):
    with changed_settings(tmp_path), FileLock(tmp_path / "settings.lock") as other:
        assert not other.try_acquire()


def test_link_to_the_settings_stays_a_link(tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "sideband.toml").symlink_to("../settings.toml")
    set_value(tmp_path / "home")
    assert (tmp_path / "home" / "sideband.toml").is_symlink()
    assert (tmp_path / "settings.toml").read_text() == "[policy]\ntimeout = 5\n"


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to(path)])
def test_file_that_is_not_regular_is_reported_and_kept(tmp_path, make):
    make(tmp_path / "sideband.toml")
    before = os.lstat(tmp_path / "sideband.toml")
    with pytest.raises(ConfigurationError, match="not a regular file"):
        set_value(tmp_path)
    assert os.lstat(tmp_path / "sideband.toml").st_ino == before.st_ino


def test_line_ends_of_the_file_are_kept(tmp_path):
    (tmp_path / "sideband.toml").write_bytes(b"[agent]\r\nturns = 3\r\n")
    set_value(tmp_path)
    assert (tmp_path / "sideband.toml").read_bytes() == b"[agent]\r\nturns = 3\r\n\r\n[policy]\r\ntimeout = 5\r\n"


def test_line_ends_of_a_file_with_both_kinds_become_those_of_unix(tmp_path):
    (tmp_path / "sideband.toml").write_bytes(b"[agent]\nturns = 3\r\n")
    set_value(tmp_path)
    assert b"\r" not in (tmp_path / "sideband.toml").read_bytes()


def set_value(home):
    with changed_settings(home) as file:
        file.set(("policy", "timeout"), 5)


def test_mistake_in_the_file_is_not_one_of_a_plugin(tmp_path):
    (tmp_path / "sideband.toml").write_text("[agent")
    with pytest.raises(ConfigurationError) as caught:
        set_value(tmp_path)
    assert place_of(caught.value) == ""
