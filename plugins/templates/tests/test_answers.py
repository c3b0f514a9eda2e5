"""Whatever answer is accepted, the files parse and have exactly that answer; cookiecutter refuses the same ones."""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sideband_templates import AnswerRefused, bake

ROOT = Path(__file__).parents[3]
TEXTS = st.text(
    st.one_of(st.characters(), st.sampled_from("\"'\\{}%#:-&*!|>@`[]<,~ \u00a0\u2028\U0001f326")), max_size=60
)


@settings(max_examples=25)
@given(description=TEXTS, author=TEXTS)
@example('"""', "\\")
@example("'''{{x}}", '"')
@example("- yes: no # \\u0041 \\", "a, b <c@d.org>")
@example("{% endraw %}${{ github.token }}", "[x](y) `z` \U0001f326")
def test_accepted_answers_are_in_the_files_exactly(description, author):
    with TemporaryDirectory() as folder:
        try:
            made = bake("skill", {"name": "stars", "description": description, "author_name": author}, Path(folder))
        except AnswerRefused:
            assert not list(Path(folder).iterdir())
            return
        project = tomllib.loads((made / "pyproject.toml").read_text())["project"]
        assert (project["description"], project["authors"]) == (description, [{"name": author}])
        manifest = (made / "src/sideband_stars/SKILL.md").read_text()
        assert yaml.safe_load(manifest.split("---\n")[1])["description"] == description
        for path in made.rglob("*.py"):
            ast.parse(path.read_text())
        for path in made.glob(".github/**/*.yml"):
            assert set(yaml.safe_load(path.read_text())["jobs"]) == {"test", "build", "publish"}


@settings(max_examples=200)
@given(st.text(st.one_of(st.characters(), st.sampled_from("abc-09_./\\")), max_size=45))
def test_accepted_names_are_names_of_distributions_and_modules(name):
    from packaging.utils import canonicalize_name
    from sideband_templates._rules import problems

    if not list(problems({"name": name, "kind": "op"})):
        assert canonicalize_name(name, validate=True) == name
        assert f"sideband_{name.replace('-', '_')}".isidentifier()
        assert len(name) <= 40


def test_hooks_have_the_rules_of_the_command(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "plugins" / "templates")
    import write_hooks

    assert write_hooks.paths()
    for path in write_hooks.paths():
        assert path.read_text() == write_hooks.hook(), f"run `python plugins/templates/write_hooks.py` for {path}"


@pytest.fixture(scope="module")
def hook(tmp_path_factory):
    """Run the hook of cookiecutter with answers and return the process."""
    from jinja2 import Environment, StrictUndefined

    source = (ROOT / "cookiecutter-skill/hooks/pre_gen_project.py").read_text()
    script = tmp_path_factory.mktemp("hook") / "pre_gen_project.py"

    def run(answers):
        # cookiecutter adds names that begin with an underscore and have other values.
        context = {**answers, "_template": "x", "_checkout": None, "_extensions": []}
        script.write_text(Environment(undefined=StrictUndefined).from_string(source).render(cookiecutter=context))
        return subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)

    return run


HOSTILE = '\'"\\ {{ 7 }} </script>\u2028\n""" & \ud83c'


def test_hook_refuses_bad_answers_with_all_reasons(hook):
    done = hook({"name": "../json", "description": HOSTILE, "author_name": "", "kind": "op"})
    assert done.returncode == 1
    errors = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert {line.split(":")[1] for line in errors} == {" invalid name", " invalid description", " invalid author_name"}
    assert "error: invalid name: '../json' is a path" in errors
    assert "hint: try my-json" in done.stderr


def test_hook_accepts_quotes_and_signs_of_templates(hook):
    done = hook({"name": "stars", "description": "'\"\\ {{ 7 }} </script> & \U0001f326", "author_email": ""})
    assert (done.returncode, done.stderr) == (0, "")
