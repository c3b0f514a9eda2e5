"""The folders in which a host searches for skills: configured ones, the user's, and those of a trusted project."""

from pathlib import Path

import pytest
from sideband import ConfigurationError
from sideband.settings import SkillFolders, load_settings, trust_project

DEFAULTS = (".sideband/skills", ".claude/skills", ".agents/skills")
DIGEST = "0123456789abcdef" * 4


@pytest.fixture
def user(tmp_path):
    folder = tmp_path / "user"
    folder.mkdir()
    return folder


@pytest.fixture
def home(user):
    folder = user / ".sideband"
    folder.mkdir()
    return folder


def make(folder, *names):
    for name in names:
        (folder / name).mkdir(parents=True)
    return tuple(folder / name for name in names)


def write(folder, text=""):
    (folder / "sideband.toml").write_text(text)


def test_default_folders_of_the_user_are_found_in_their_order(home, user):
    expected = make(user, *(f"{one}/notes" for one in reversed(DEFAULTS)))
    sources = load_settings(home, user=user).skill_folders.sources(())
    assert sources.folders == tuple(reversed(expected))


def test_default_folder_of_the_user_that_is_created_later_is_searched(home, user):
    folders = load_settings(home, user=user).skill_folders
    assert folders.sources(()).folders == ()
    expected = make(user, f"{DEFAULTS[-1]}/notes")
    assert folders.sources(()).folders == expected


def test_default_folders_are_not_used_without_a_home_directory(home, user):
    make(user, *DEFAULTS)
    assert load_settings(home).skill_folders == SkillFolders()


def test_default_folders_of_a_trusted_project_are_found(home, user, project):
    expected = make(project, *DEFAULTS)
    write(project)
    trust_project(home, project)
    below = project / "src"
    below.mkdir()
    for folder in (project, below):
        assert load_settings(home, user=user, project=folder).skill_folders.project == expected


def test_default_folders_of_an_untrusted_project_are_not_searched(home, user, project):
    ignored = make(project, *DEFAULTS)
    without_file = load_settings(home, user=user, project=project)
    write(project, "[skills]\nfolders = ['more']\n")
    untrusted = load_settings(home, user=user, project=project)
    trust_project(home, project)
    write(project, "[skills]\nfolders = ['other']\n")
    changed = load_settings(home, user=user, project=project)
    for loaded in (without_file, untrusted, changed):
        assert loaded.skill_folders.untrusted == ignored
        assert loaded.skill_folders.sources(()).project_folders == ()


def test_default_folder_of_a_project_that_leads_out_of_it_is_not_used(home, project, tmp_path):
    make(tmp_path, "outside/skills")
    (inside,) = make(project, ".agents/skills")
    (project / ".sideband").symlink_to(tmp_path / "outside")
    (project / ".claude").symlink_to(".agents")
    write(project)
    trust_project(home, project)
    assert load_settings(home, project=project).skill_folders.project == (project / ".claude/skills", inside)


def test_home_directory_is_not_a_project_of_its_own(home, user):
    (skill,) = make(user, ".claude/skills/notes")
    sources = load_settings(home, user=user, project=user).skill_folders.sources(())
    assert (sources.folders, sources.project_folders) == ((skill,), ())


def test_relative_folder_starts_at_the_folder_of_its_file(home, project, monkeypatch, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    monkeypatch.setenv("HOME", "/home/user")
    write(home, "[skills]\nfolders = ['mine', '~/more', '/srv/skills']\n")
    write(project, "[skills]\nfolders = ['theirs', '../beside']\n")
    trust_project(home, project)
    folders = load_settings(home, project=project).skill_folders
    assert folders.configured == (home / "mine", Path("/home/user/more"), Path("/srv/skills"))
    assert folders.project == (project / "theirs", project / "../beside")


@pytest.mark.parametrize("place", ["variable", "command line"])
def test_folder_of_a_variable_or_an_option_starts_at_the_working_directory(home, place):
    write(home, "[skills]\nfolders = ['mine']\n")
    options = (
        {"environment": {"SIDEBAND_SKILLS__FOLDERS": "['here']"}}
        if place == "variable"
        else {"flags": {"skills": {"folders": ["here"]}}}
    )
    assert load_settings(home, **options).skill_folders.configured == (Path("here"),)


def test_project_adds_folders_and_removes_none(home, project):
    write(home, "[skills]\nfolders = ['mine']\n")
    write(project, "[skills]\nfolders = []\n")
    trust_project(home, project)
    assert load_settings(home, project=project).skill_folders.configured == (home / "mine",)


@pytest.mark.parametrize("text", ["folders = 'skills'", "folders = [1]", "folder = ['skills']"])
@pytest.mark.parametrize("place", ["home", "project"])
def test_invalid_table_names_its_file(home, project, text, place):
    folder = {"home": home, "project": project}[place]
    write(folder, f"[skills]\n{text}\n")
    trust_project(home, project if place == "project" else home)
    with pytest.raises(ConfigurationError, match=r"skills\.folder") as caught:
        load_settings(home, project=project)
    assert str(folder / "sideband.toml") in str(caught.value)


def test_sources_are_ordered_from_explicit_to_personal(tmp_path):
    (child,) = make(tmp_path / "personal", "a")
    folders = SkillFolders(
        explicit=(Path("explicit"),),
        configured=(Path("configured"),),
        personal=(tmp_path / "personal",),
        project=(Path("project"),),
    )
    sources = folders.sources(())
    assert sources.folders == (Path("explicit"), Path("configured"), child)
    assert sources.project_folders == (Path("project"),)


def test_snapshots_in_a_default_folder_are_not_sources(tmp_path):
    make(tmp_path, DIGEST, ".new-0123", "notes")
    assert SkillFolders(personal=(tmp_path,)).sources(()).folders == (tmp_path / "notes",)


def test_links_in_a_default_folder_of_the_user_are_sources(tmp_path):
    (target,) = make(tmp_path, "elsewhere/notes")
    (personal,) = make(tmp_path, "personal")
    (personal / "notes").symlink_to(target)
    (personal / "broken").symlink_to(tmp_path / "nowhere")
    (personal / "README.md").write_text("text")
    assert SkillFolders(personal=(personal,)).sources(()).folders == (personal / "notes",)
