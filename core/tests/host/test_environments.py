"""Where what a skill depends on lies, and what is said of a skill that can't have it here."""

from pathlib import Path

import pytest
from sideband.environments import Environment, EnvironmentMissing, Environments
from sideband.loading import SkillError, SkillSpec


@pytest.fixture
def environments(tmp_path):
    return Environments(tmp_path / "home")


def skill(*requirements, **options):
    return SkillSpec("needy", "needy", "x", Path(), requirements=requirements, **options)


def test_a_missing_environment_is_named_with_the_command_that_makes_it(environments):
    with pytest.raises(EnvironmentMissing, match="tiny>=1") as caught:
        environments.require(skill("tiny>=1"))
    assert caught.value.hint == "`sideband skills install needy` installs them"
    assert environments.find(skill("tiny>=1")) is None


def test_a_skill_that_depends_on_nothing_needs_no_environment(environments):
    assert environments.require(skill()) is None
    assert environments.find(skill()) is None


def test_equal_requirements_share_an_environment_and_others_do_not(environments):
    path = environments.path(skill("upper", "tiny <2", "tiny<2"))
    assert path == environments.path(skill("tiny<2", "upper"))
    assert path != environments.path(skill("tiny<2"))
    assert environments.requirements(skill("upper", "tiny <2", "tiny<2")) == ("tiny<2", "upper")


def test_an_environment_says_what_was_recorded_in_it(environments):
    path = environments.path(skill("tiny"))
    path.mkdir(parents=True)
    assert environments.find(skill("tiny")) == Environment(path)
    made = Environment(path, ("tiny",), {"tiny": "1.0"})
    made.record()
    assert environments.find(skill("tiny")) == made
    assert environments.require(skill("tiny")) == path


@pytest.mark.parametrize("text", ["tiny @ https://example.test/tiny.whl", "tiny @ file:///tmp/tiny.whl"])
def test_a_place_is_no_package(environments, text):
    with pytest.raises(SkillError, match="names a place"):
        environments.path(skill(text))


@pytest.mark.parametrize(
    ("version", "said"), [("<3", r"runs on Python <3"), (">=" + "9" * 5_000, r"is no specifier of Python versions")]
)
def test_a_skill_for_another_version_of_python_has_no_environment(environments, version, said):
    with pytest.raises(SkillError, match=said):
        environments.require(skill(requires_python=version))
