"""cookiecutter and cruft make the same files from the same folders."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cookiecutter.exceptions import FailedHookException
from cookiecutter.main import cookiecutter
from sideband_templates import Template, bake

ROOT = Path(__file__).parents[3]
KINDS = next(one for one in Template.read("plugin").questions if one.name == "kind").choices
VARIANTS = [
    ("skill", {"name": "star-watch", "description": 'Watches "stars" \\ and \U0001f326.', "author_email": "a@b.org"}),
    ("distribution", {"project": "acme-agent", "description": "Our 'plugins'."}),
    *(("plugin", {"name": f"my-{kind}", "kind": kind, "author_name": "Ada 'A' Lovelace"}) for kind in KINDS),
]


@pytest.fixture
def bake_with_cookiecutter(tmp_path, monkeypatch):
    """Make a project with cookiecutter, without the user's configuration, and return its folder."""
    monkeypatch.setenv("HOME", str(tmp_path))
    config = tmp_path / "cookiecutter.yaml"
    config.write_text(f"cookiecutters_dir: {tmp_path}/templates\nreplay_dir: {tmp_path}/replay\n")

    def make(name, answers, folder):
        folder.mkdir(exist_ok=True)
        template = str(ROOT / f"cookiecutter-{name}")
        options = {"no_input": True, "output_dir": str(folder), "config_file": str(config)}
        return Path(cookiecutter(template, extra_context=answers, **options))

    return make


def files(folder):
    """Return the content and the permissions of each file."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mode)
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize(("name", "answers"), VARIANTS, ids=lambda value: value if isinstance(value, str) else "")
def test_cookiecutter_makes_the_same_files(name, answers, tmp_path, bake_with_cookiecutter):
    (tmp_path / "ours").mkdir()
    ours = files(bake(name, answers, tmp_path / "ours"))
    assert ours == files(bake_with_cookiecutter(name, answers, tmp_path / "theirs"))
    if name == "plugin":
        assert {"src/sideband_my_op/plugin.py", "tests/test_my_op.py"} <= {
            path.replace(answers["kind"].replace("-", "_"), "op") for path in ours
        }


@pytest.mark.parametrize("name", ["http", "../stars", "sideband-stars", "Stars"])
def test_cookiecutter_refuses_bad_names_and_leaves_nothing(name, tmp_path, bake_with_cookiecutter, capfd):
    with pytest.raises(FailedHookException):
        bake_with_cookiecutter("skill", {"name": name}, tmp_path / "theirs")
    assert "error: invalid name" in capfd.readouterr().err
    assert not list((tmp_path / "theirs").iterdir())
    assert not (tmp_path / "stars").exists()


def test_default_answers_make_a_project(tmp_path, bake_with_cookiecutter):
    for name in ("skill", "distribution", "plugin"):
        first = Template.read(name).questions[0]
        (tmp_path / name).mkdir()
        ours = bake(name, {first.name: first.default}, tmp_path / name)
        assert files(ours) == files(bake_with_cookiecutter(name, {}, tmp_path / f"{name}-theirs"))


def test_cruft_makes_the_same_files_from_a_git_repository(tmp_path):
    source = shutil.copytree(ROOT / "cookiecutter-plugin", tmp_path / "source" / "cookiecutter-plugin").parent
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "GIT_CONFIG_GLOBAL": "/dev/null"}
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    for words in (["init", "--quiet"], ["add", "."], [*identity, "commit", "--quiet", "-m", "Templates"]):
        subprocess.run(["git", *words], cwd=source, check=True, env=environment)
    answers = {"name": "my-op", "kind": "op"}
    (tmp_path / "theirs").mkdir()
    subprocess.run(
        [sys.executable, "-m", "cruft", "create", str(source), "--directory", "cookiecutter-plugin", "--no-input",
         "--output-dir", str(tmp_path / "theirs"), "--extra-context", json.dumps(answers)],
        check=True, env=environment, cwd=tmp_path,
    )  # fmt: skip
    (tmp_path / "ours").mkdir()
    theirs = tmp_path / "theirs" / "sideband-my-op"
    recorded = json.loads((theirs / ".cruft.json").read_text())
    assert recorded["context"]["cookiecutter"]["kind"] == "op"
    (theirs / ".cruft.json").unlink()
    assert files(bake("plugin", answers, tmp_path / "ours")) == files(theirs)
