"""Projects without ``sideband.toml``: their AGENTS.md is used only with trust, and reported without."""

import os

import pytest
from sideband import ConfigurationError
from sideband.settings import load_settings, trust_project, trusted_project


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    (folder / "deeper").mkdir(parents=True)
    (folder / "AGENTS.md").write_text("Answer in French.")
    return folder


@pytest.fixture
def ask(sideband, turns, plugin):
    """Run an agent in a folder, and report its system prompt on standard output."""
    environment = plugin(
        "prompted",
        "provider",
        "from sideband_scripted import Scripted\n"
        "def sideband_providers():\n"
        "    return [Scripted([lambda request: request.system] * 9, name='prompted', model='test')]\n",
    )
    return lambda folder, *words: sideband("run", "hello", "-m", "prompted:test", *words, folder=folder, **environment)


def test_ignored_instructions_are_reported_with_the_way_to_use_them(ask, project):
    done = ask(project)
    assert "Answer in French." not in done.stdout
    assert f"notice: ignored {project}/AGENTS.md: you have not accepted it; " in done.stderr
    assert "or add --trust to trust this folder" in done.stderr


def test_folder_without_a_project_file_can_be_trusted(ask, project):
    first = ask(project, "--trust")
    assert f"trusting {project}\n" in first.stderr
    for done in (first, ask(project), ask(project / "deeper")):
        assert "Answer in French." in done.stdout
        assert "ignored" not in done.stderr


def test_new_project_file_must_be_trusted_again(ask, project):
    ask(project, "--trust")
    (project / "sideband.toml").write_text("[policy]\ntimeout = 3\n")
    done = ask(project)
    assert "Answer in French." not in done.stdout
    assert f"ignored {project}/sideband.toml: its current content is not trusted" in done.stderr


def test_removal_of_a_trusted_project_file_ends_the_trust(ask, project):
    (project / "sideband.toml").write_text("[policy]\ntimeout = 3\n")
    assert "Answer in French." in ask(project, "--trust").stdout
    (project / "sideband.toml").unlink()
    assert "Answer in French." not in ask(project).stdout


def test_trust_of_a_folder_does_not_include_its_parent(ask, project):
    done = ask(project / "deeper", "--trust")
    assert "Answer in French." not in done.stdout
    assert "Answer in French." not in ask(project).stdout


def test_pipe_in_place_of_a_project_file_is_not_read(project, tmp_path):
    """A local user could put it into a shared parent folder, such as ``/tmp``, to block all commands below."""
    os.mkfifo(tmp_path / "sideband.toml")
    os.mkfifo(project / "sideband.toml")
    home = tmp_path / "home"
    home.mkdir()
    assert load_settings(home, project=project / "deeper").project_file is None
    trust_project(home, project)
    assert trusted_project(home, project / "deeper") == project


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to other users")
def test_trust_of_a_folder_does_not_include_a_file_that_another_user_put_above_it(project, tmp_path):
    file = tmp_path / "sideband.toml"
    file.write_text("[policy]\ntimeout = 3\n")
    os.chown(file, 61_234, -1)
    home = tmp_path / "home"
    home.mkdir()
    with pytest.raises(ConfigurationError, match="belongs to another user"):
        trust_project(home, project)
    assert trusted_project(home, project) is None
    assert trust_project(home, tmp_path) == file
    assert trusted_project(home, project) == tmp_path


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to other users")
def test_file_of_the_owner_of_a_folder_can_be_trusted_in_the_folder(project, tmp_path):
    """Root often works in folders of another user, such as those that a container mounts."""
    file = tmp_path / "sideband.toml"
    file.touch()
    home = tmp_path / "home"
    home.mkdir()
    for path in (file, project):
        os.chown(path, 61_234, -1)
    assert trust_project(home, project) == file


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to other users")
def test_file_that_the_administrator_put_above_a_folder_can_be_trusted_in_it(project, tmp_path, monkeypatch):
    file = tmp_path / "sideband.toml"
    file.touch()
    home = tmp_path / "home"
    home.mkdir()
    os.chown(project, 61_234, -1)
    monkeypatch.setattr(os, "geteuid", lambda: 61_234)
    assert trust_project(home, project) == file
