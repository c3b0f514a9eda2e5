"""The command `sideband new` makes a complete project, or nothing."""

import json
import shutil
import tomllib
from pathlib import Path

import pytest
import sideband
import sideband_templates
from sideband.__main__ import main
from sideband_templates import AnswerRefused, TargetUnwritable, Template, bake

ROOT = Path(__file__).parents[3]


@pytest.fixture
def new(tmp_path, monkeypatch, capsys):
    """Run `sideband new` in a folder of its own and return its exit code, output and errors."""
    monkeypatch.setenv("SIDEBAND_HOME", str(tmp_path / "home"))
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)

    def run(*words):
        code = main(["new", *words])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def test_new_skill_is_made_in_the_current_folder(new):
    code, out, err = new("skill", "star-watch", "description=Watches stars.", "author_name=Ada")
    assert (code, err) == (0, "")
    project = tomllib.loads(Path("sideband-star-watch/pyproject.toml").read_text())["project"]
    assert (project["name"], project["description"]) == ("sideband-star-watch", "Watches stars.")
    assert project["authors"] == [{"name": "Ada"}]
    assert "created sideband-star-watch with 10 files" in out
    assert ".venv/bin/sideband skills validate src/sideband_star_watch" in out


def test_options_and_answers_may_have_any_order(new, tmp_path):
    (tmp_path / "other").mkdir()
    code, out, _ = new("--output", str(tmp_path / "other"), "skill", "stars", "--json", "author_email=a@b.org")
    result = json.loads(out)
    assert (code, result["folder"]) == (0, str(tmp_path / "other" / "sideband-stars"))
    assert "src/sideband_stars/SKILL.md" in result["files"]
    project = tomllib.loads((tmp_path / "other/sideband-stars/pyproject.toml").read_text())["project"]
    assert project["authors"][0]["email"] == "a@b.org"


def test_new_distribution_has_the_running_version(new):
    code, out, _ = new("distribution", "acme-agent", "description=Ours.")
    manifest = Path("acme-agent/sideband.toml").read_text()
    assert (code, tomllib.loads(manifest)["dist"]["core"]) == (0, "~=0.1")
    assert tomllib.loads(manifest)["dist"]["name"] == "acme-agent"
    assert "sideband dist lock" in out


def test_requirement_has_the_running_version_and_the_next_one_that_may_break(new, monkeypatch):
    monkeypatch.setattr("sideband_templates._templates.__version__", "1.4.2")
    new("skill", "stars")
    new("skill", "comets", "sideband_version=0.3.1")
    for name, bounds in (("stars", ">=1.4.2,<2"), ("comets", ">=0.3.1,<0.4")):
        project = tomllib.loads(Path(f"sideband-{name}/pyproject.toml").read_text())["project"]
        assert project["dependencies"][0] == f"sideband-core{bounds}"


def test_cookiecutter_asks_for_the_current_version_by_default():
    for path in ROOT.glob("cookiecutter-*/cookiecutter.json"):
        assert json.loads(path.read_text())["sideband_version"] == sideband.__version__, path


BAD_NAMES = {
    "Star Watch": ("is not lower-case words", "star-watch"),
    "starWatch": ("is not lower-case words", "star-watch"),
    "star_watch": ("is not lower-case words", "star-watch"),
    "star--watch": ("is not lower-case words", "star-watch"),
    "star-": ("is not lower-case words", "star"),
    "2stars": ("does not begin with a letter", "stars"),
    "../stars": ("is a path", "stars"),
    "../json": ("is a path", "my-json"),
    "/etc/stars": ("is a path", "etc-stars"),
    ".": ("is a path", "weather"),
    "a/b": ("is a path", "a-b"),
    "stars\n": ("U+000A", "visible"),
    "st\u202ears": ("U+202E", "visible"),
    "\u017ft\xe4rs": ("is not lower-case words", "stars"),
    "class": ("keyword of Python", "my-class"),
    "json": ("standard library", "my-json"),
    "sideband": ("name of the runtime", "weather"),
    "sideband-stars": ("prefix that the template adds", "stars"),
    "sideband-http": ("prefix that the template adds", "my-http"),
    "http": ("package, plugin or command of sideband", "my-http"),
    "store-sqlite": ("package, plugin or command of sideband", "my-store-sqlite"),
    "a" * 41: ("has 41 characters", "40"),
    "": ("it is empty", "text"),
    " ": ("begins or ends with a space", "space"),
}


@pytest.mark.parametrize("name", BAD_NAMES)
def test_bad_name_is_refused_with_the_reason_and_a_suggestion(new, name):
    code, out, err = new("skill", "--", name)
    reason, remedy = BAD_NAMES[name]
    assert (code, out) == (2, "")
    assert "[template.name]" in err
    assert reason in err
    assert remedy in err.partition("hint:")[2]
    assert not list(Path().iterdir())


BAD_ANSWERS = {
    "author_email=ada": "e-mail address",
    'author_email="a@b.org': "e-mail address",
    "description=": "it is empty",
    "description=one\ntwo": "U+000A",
    f"description={'x' * 201}": "201 characters",
    "repository_url=javascript:alert(1)": "address of a web page",
    'repository_url=https://a.org/"': "address of a web page",
    "sideband_version=1": "not a version",
}


@pytest.mark.parametrize("answer", BAD_ANSWERS)
def test_bad_answer_is_refused_with_the_reason(new, answer):
    code, _, err = new("skill", "stars", answer)
    assert code == 2
    assert "[template.answer]" in err
    assert BAD_ANSWERS[answer] in err
    assert not list(Path().iterdir())


BAD_WORDS = {
    ("skill", "stars", "autor_name=x"): ("template.question", "did you mean `author_name`?"),
    ("skill", "stars", "__module=os"): ("template.question", "no question `__module`"),
    ("skill", "stars", "x"): ("usage", "expected key=value, got `x`"),
    ("skill", "stars", "author_name=x", "author_name=y"): ("usage", "given twice"),
    ("skil", "stars"): ("usage", "did you mean `skill`?"),
    ("plugin", "stars"): ("usage", "--kind with one of op,"),
    ("plugin", "stars", "--kind", "hooks"): ("usage", "did you mean `hook`?"),
    ("plugin", "stars", "kind=x"): ("template.answer", "choose one of op, guard"),
    ("plugin", "dispatch", "--kind", "op"): ("template.name", "try my-dispatch"),
    ("skill", "stars", "--kind", "op"): ("template.question", "no question `kind`"),
    ("distribution", "sideband-acme"): ("template.name", "try acme-agent"),
    ("skill", "stars", "--output", "missing"): ("template.unwritable", "cannot write to missing"),
}


@pytest.mark.parametrize("words", BAD_WORDS)
def test_bad_word_is_refused_with_the_reason(new, words):
    code, _, err = new(*words)
    assert code == 2
    assert all(part in err for part in BAD_WORDS[words])
    assert not list(Path().iterdir())


def test_existing_folder_is_never_changed(new):
    Path("sideband-stars").mkdir()
    Path("sideband-comets").symlink_to("missing")
    for name in ("stars", "comets"):
        code, _, err = new("skill", name)
        assert code == 2
        assert f"sideband-{name} exists [template.exists]" in err
    assert not list(Path("sideband-stars").iterdir())


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """The folder of the skill's template, a copy that is used from now on."""
    folder = shutil.copytree(ROOT / "cookiecutter-skill", tmp_path / "cookiecutter-skill")
    template = Template("skill", folder, Template.read("skill").questions)
    monkeypatch.setattr(Template, "read", lambda name: template)
    return folder


@pytest.mark.parametrize(
    "text", ["{{ cookiecutter.unknown }}", "{{ ''.__class__.mro() }}", "{% include '/etc/passwd' %}"]
)
def test_template_that_fails_leaves_nothing(tmp_path, copied, text):
    (next(copied.glob("{{*")) / "zzz.txt").write_text(text)
    target = tmp_path / "target"
    target.mkdir()
    with pytest.raises(Exception, match=r"unknown|unsafe|passwd"):
        bake("skill", {"name": "stars"}, target)
    assert not list(target.iterdir())


def test_compiled_files_of_an_installed_template_are_ignored(tmp_path, copied):
    cache = next(copied.glob("{{*/src/*")) / "__pycache__"
    cache.mkdir()
    (cache / "releases.cpython-311.pyc").write_bytes(b"\xff\x00")
    assert not list(bake("skill", {"name": "stars"}, tmp_path).rglob("*.pyc"))


def test_full_disk_leaves_nothing(tmp_path, monkeypatch):
    written = []
    write = Path.write_text

    def fails(self, *arguments, **options):
        if len(written) == 5:
            raise OSError(28, "No space left on device")
        written.append(self)
        return write(self, *arguments, **options)

    monkeypatch.setattr(Path, "write_text", fails)
    with pytest.raises(TargetUnwritable, match="No space left"):
        bake("skill", {"name": "stars"}, tmp_path)
    assert written
    assert not list(tmp_path.iterdir())


def test_answers_are_never_read_as_templates(tmp_path):
    folder = bake("skill", {"name": "stars", "description": "{{ 7 * 7 }} {% raw %} {# x #}"}, tmp_path)
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    assert project["description"] == "{{ 7 * 7 }} {% raw %} {# x #}"
    assert "{{ 7 * 7 }} {% raw %} {# x #}" in (folder / "README.md").read_text()


def test_names_of_all_packages_and_plugins_are_taken(tmp_path):
    manifests = [ROOT / "agent/pyproject.toml", *(path for kind in ("core", "libs/*", "plugins/*", "contrib/*")
                                                  for path in ROOT.glob(f"{kind}/pyproject.toml"))]  # fmt: skip
    names = set()
    for manifest in manifests:
        project = tomllib.loads(manifest.read_text())["project"]
        names.add(project["name"].removeprefix("sideband-"))
        groups = project.get("entry-points", {})
        names |= {name for group, table in groups.items() if group.startswith("sideband.") for name in table}
    free = []
    for name in sorted(names):
        try:
            Template.read("skill").answers({"name": name.replace("_", "-")})
        except AnswerRefused:
            continue
        free.append(name)
    assert not free


def test_command_and_package_have_the_same_templates_and_kinds(new):
    kinds = next(one for one in Template.read("plugin").questions if one.name == "kind").choices
    assert f"choose from {', '.join(kinds)};" in new("plugin", "stars", "--kind", "x")[2]
    assert sorted(path.name for path in ROOT.glob("cookiecutter-*")) == [
        f"cookiecutter-{name}" for name in sideband_templates.TEMPLATES
    ]
