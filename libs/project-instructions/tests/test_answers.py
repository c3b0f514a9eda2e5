"""An answer holds for the content that was shown, and for nothing else."""

import json
import os
from pathlib import Path

import pytest
from attrs import evolve
from sideband.errors import StateUnwritable
from sideband_project_instructions import Answers, InstructionFile, known_instructions

FILE = InstructionFile(Path("/srv/project"), "AGENTS.md", b"Be kind.\n")
CHANGED = evolve(FILE, content=b"Be rude.\n")


@pytest.fixture
def answers(tmp_path):
    return Answers(tmp_path / "home")


@pytest.mark.parametrize(("use", "decision"), [(True, "used"), (False, "refused")])
def test_answer_is_for_one_content_of_one_file(answers, use, decision):
    assert answers.decision(FILE) == "new"
    answers.remember([FILE], use=use)
    assert answers.decision(FILE) == decision
    assert answers.decision(CHANGED) == "changed"
    assert answers.decision(evolve(FILE, root=Path("/srv/other"))) == "new"


def test_text_of_the_last_answer_is_known(answers):
    assert answers.previous_text(FILE) is None
    answers.remember([FILE], use=False)
    assert answers.previous_text(CHANGED) == "Be kind."
    answers.remember([CHANGED], use=True)
    assert answers.previous_text(FILE) == "Be rude."
    kept = {path.name for path in (answers.home / "instructions").iterdir()}
    assert kept == {"lock", "answers.json", CHANGED.digest}


def test_answer_can_be_forgotten(answers):
    answers.remember([FILE], use=True)
    assert answers.given() == {FILE.path: True}
    assert answers.forget(FILE.path)
    assert not answers.forget(FILE.path)
    assert answers.decision(FILE) == "new"
    assert FILE.digest not in {path.name for path in (answers.home / "instructions").iterdir()}


def test_file_with_a_problem_is_never_used(answers):
    broken = evolve(FILE, problem="larger than 1 MiB", in_project=True)
    answers.remember([FILE], use=True)
    assert answers.decision(broken) == "refused"


def test_file_of_the_trusted_project_needs_no_answer(answers):
    assert answers.decision(evolve(FILE, in_project=True)) == "used"


def stored(digest):
    return json.dumps({"/srv/project/AGENTS.md": {"digest": digest, "use": True}})


@pytest.mark.parametrize("text", ["", "{", "[]", stored("abc"), stored("." * 64), stored(["a"] * 64), "[" * 9999])
def test_damaged_answers_count_as_none(answers, text):
    answers.remember([FILE], use=True)
    (answers.home / "instructions/answers.json").write_text(text)
    assert answers.decision(FILE) == "new"
    assert answers.previous_text(FILE) is None


def test_answers_are_readable_by_their_owner_only(answers):
    answers.remember([FILE], use=True)
    folder = answers.home / "instructions"
    for path in (folder, *folder.iterdir()):
        assert path.stat().st_mode & 0o077 == 0


def test_files_that_only_a_refused_one_names_are_not_asked_about(answers, tmp_path):
    (tmp_path / "AGENTS.md").write_text("@docs.md")
    (tmp_path / "docs.md").write_text("Be kind.")
    agents, docs = known_instructions(tmp_path, None, answers.home).unanswered
    answers.remember([agents], use=False)
    assert known_instructions(tmp_path, None, answers.home).unanswered == ()
    # nor are they used, whatever the answer about them was
    answers.remember([docs], use=True)
    assert known_instructions(tmp_path, None, answers.home).used == ()


@pytest.mark.skipif(os.geteuid() == 0, reason="root can write everywhere")
def test_folder_that_cannot_be_written_is_an_error(answers):
    answers.home.mkdir(mode=0o500)
    with pytest.raises(StateUnwritable):
        answers.remember([FILE], use=True)
