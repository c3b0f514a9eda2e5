"""Environments of skills: paths, records and invalid requirements."""

from pathlib import Path

import pytest
from sideband.environments import Environment, EnvironmentMissing, Environments
from sideband.loading import SkillError, SkillSpec


@pytest.fixture
def environments(tmp_path):
    return Environments(tmp_path / "home")


def skill(*requirements, **options):
    return SkillSpec("needy", "needy", "x", Path(), requirements=requirements, **options)


def test_missing_environment_names_the_install_command(environments):
    with pytest.raises(EnvironmentMissing, match="tiny>=1") as caught:
        environments.require(skill("tiny>=1"))
    assert "`sideband skills install needy`" in caught.value.hint
    assert environments.find(skill("tiny>=1")) is None


def test_skill_without_requirements_needs_no_environment(environments):
    assert environments.require(skill()) is None
    assert environments.find(skill()) is None


def test_equal_requirements_share_an_environment(environments):
    path = environments.path(skill("upper", "tiny <2", "tiny<2"))
    assert path == environments.path(skill("tiny<2", "upper"))
    assert path != environments.path(skill("tiny<2"))
    assert environments.requirements(skill("upper", "tiny <2", "tiny<2")) == ("tiny<2", "upper")


def test_environment_returns_its_record(environments):
    path = environments.path(skill("tiny"))
    path.mkdir(parents=True)
    assert environments.find(skill("tiny")) == Environment(path)
    made = Environment(path, ("tiny",), {"tiny": "1.0"})
    made.record()
    assert environments.find(skill("tiny")) == made
    assert environments.require(skill("tiny")) == path


@pytest.mark.parametrize("text", ["tiny @ https://example.test/tiny.whl", "tiny @ file:///tmp/tiny.whl"])
def test_requirement_with_a_url_is_rejected(environments, text):
    with pytest.raises(SkillError, match="URL"):
        environments.path(skill(text))


@pytest.mark.parametrize(
    ("version", "problem"),
    [
        pytest.param("<3", "requires Python <3", id="incompatible"),
        pytest.param(">=" + "9" * 5_000, "invalid Python version specifier", id="invalid"),
    ],
)
def test_incompatible_python_version_is_rejected(environments, version, problem):
    with pytest.raises(SkillError, match=problem):
        environments.require(skill(requires_python=version))
