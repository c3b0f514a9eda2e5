"""``skills test``: the tests of a skill, in a pytest of their own."""

import json

import pytest
from sideband_cli._errors import KitMissing, SkillTestsUnread

TESTS = """
import os
from pathlib import Path
import pytest

def test_home_is_hermetic():
    assert "skill-tests" in os.environ["SIDEBAND_HOME"]
    assert "SIDEBAND_POLICY__TIMEOUT" not in os.environ

@pytest.mark.anyio
async def test_greeting(worker):
    folder = Path(__file__).parents[1]
    assert await worker.call(folder, "greet", name="Bo") == "hello Bo"
"""


@pytest.fixture
def tested(hello):
    """Return a function that adds tests to the skill and returns its folder."""

    def make(code=TESTS):
        (hello / "tests").mkdir(exist_ok=True)
        (hello / "tests" / "test_hello.py").write_text(code)
        return hello

    return make


def test_tests_of_a_skill_run_in_a_home_of_their_own_and_leave_nothing(sideband, tested):
    folder = tested()
    done = sideband("skills", "test", "--json", folder, SIDEBAND_POLICY__TIMEOUT="5", PYTEST_ADDOPTS="-z")
    data = json.loads(done.stdout)
    assert (done.returncode, data["failed"], data["pytest"]) == (0, 0, 0), done.stdout + done.stderr
    assert data["passed"] >= 2
    assert {"name", "outcome", "message", "seconds"} == set(data["cases"][0])
    assert not [one for one in folder.rglob("*") if one.name in ("__pycache__", ".pytest_cache")]


def test_further_words_reach_pytest_and_a_failure_is_in_the_data(sideband, tested):
    folder = tested("def test_it():\n    assert 1 == 2\ndef test_other(): pass\n")
    done = sideband("--json", "skills", "test", folder, "-k", "test_it")
    (case,) = json.loads(done.stdout)["cases"]
    assert (done.returncode, case["outcome"]) == (1, "failed")
    assert "assert 1 == 2" in case["message"]
    assert sideband("skills", "test", folder, "--no-such-option").returncode == 2


def test_named_skill_is_tested_only_with_yes_since_its_tests_have_the_rights_of_the_user(sideband, tested, tmp_path):
    folder = tested(f"open({str(tmp_path / 'ran')!r}, 'w')\ndef test_it(): pass\n")
    words = ["skills", "test", "--skill-dir", folder]
    done = sideband(*words, "hello")
    assert done.returncode == SkillTestsUnread.exit_code == 3
    assert "run with your rights" in done.stderr
    assert not (tmp_path / "ran").exists()
    assert sideband(*words, "--yes", "hello").returncode == 0
    assert (tmp_path / "ran").exists()
    assert "did you mean `hello`" in sideband(*words, "helo").stderr


def test_tests_of_a_project_are_those_of_its_skill_and_a_skill_without_any_says_where(sideband, tmp_path):
    project = tmp_path / "project"
    skill = project / "src" / "hello"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: hello\ndescription: Greet.\n---\n")
    done = sideband("skills", "test", skill)
    assert (done.returncode, "beside SKILL.md" in done.stderr) == (2, True)
    (project / "tests").mkdir()
    (project / "tests" / "test_it.py").write_text("def test_it(): pass\n")
    assert sideband("skills", "test", skill).returncode == 2  # any folder above may have tests
    (project / "pyproject.toml").touch()
    assert sideband("skills", "test", skill).returncode == 0


def test_missing_kit_is_reported_with_exit_code_5(sideband, tested, tmp_path):
    blocked = tmp_path / "blocked"
    blocked.mkdir()
    code = (
        "import sys\n"
        "class No:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'sideband_testing': raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, No())\n"
    )
    (blocked / "sitecustomize.py").write_text(code)
    done = sideband.in_new_interpreter("skills", "test", tested(), PYTHONPATH=str(blocked))
    assert done.returncode == KitMissing.exit_code == 5, done.stderr
    assert "pip install sideband-testing" in done.stderr
