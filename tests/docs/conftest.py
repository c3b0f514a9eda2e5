"""Shared fixtures: the examples of a page, and folders prepared according to the documentation."""

import doctest
import importlib
import os
import re
import shlex
import subprocess
import sys
import types
from pathlib import Path

import pytest
from sideband.__main__ import main

ROOT = Path(__file__).parents[2]
CHECKER = doctest.OutputChecker()
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
FENCE = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^    (\.venv/bin/sideband .*|mkdir .*)$", re.MULTILINE)


class Page:
    """A page of the documentation, or all pages of a folder."""

    def __init__(self, path):
        self.path = path
        files = sorted((ROOT / path).glob("*.md")) or [ROOT / path]
        self.text = "\n".join(file.read_text() for file in files)

    def examples(self, language):
        """Return the fenced code blocks in a language."""
        return [text for kind, _, text in FENCE.findall(self.text) if kind == language]

    def example(self, language, words):
        """Return the only code block that contains ``words``."""
        (found,) = [text for text in self.examples(language) if words in text]
        return found

    def module(self, words):
        """Run the Python code block that contains ``words`` and return it as a module."""
        module = types.ModuleType("example")
        exec(compile(self.example("python", words), self.path, "exec"), module.__dict__)
        return module

    def commands(self):
        """Return the arguments of each indented `sideband` command."""
        return [shlex.split(line)[1:] for line in COMMAND.findall(self.text) if not line.startswith("mkdir")]

    def section(self, heading):
        """Return the text below a second-level heading."""
        return self.text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def follow_page(path, folder, run):
    """Do what a page says: write the files that have a title, and run the commands of the consoles in order.

    Args:
        path: the path of the page.
        folder: the working directory, in which the files are written. A title ``FILE, at the end`` adds to a file.
        run: runs a command in a folder, and returns the completed process. A ``cd`` changes the folder.
    """
    for kind, title, text in FENCE.findall((ROOT / path).read_text()):
        if title:
            name = title.removesuffix(", at the end")
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(file.read_text() + text if title != name else text)
        if kind == "console":
            for command, _, expected in (
                part.partition("\n") for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
            ):
                if command.startswith("cd "):
                    folder = folder / command.removeprefix("cd ")
                    continue
                done = run(command, folder)
                printed = done.stdout + done.stderr + (f"exit code {done.returncode}\n" if done.returncode else "")
                is_expected = CHECKER.check_output(expected, printed, OPTIONS) if expected else done.returncode == 0
                assert is_expected, f"{command}\n{printed}"


@pytest.fixture(scope="session")
def follow():
    """The function that does what a page says."""
    return follow_page


@pytest.fixture
def walk(tmp_path):
    """Return a function that follows a page with this command line, a home folder of its own, and more variables."""

    def walk(path, folder, **more):
        variables = {
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            "HOME": str(tmp_path),
            "SIDEBAND_HOME": str(tmp_path / "home"),
            **more,
        }

        def run(command, folder):
            return subprocess.run(
                command, shell=True, cwd=folder, capture_output=True, text=True, check=False, env=variables
            )

        follow_page(path, folder, run)

    return walk


@pytest.fixture
def root():
    return ROOT


@pytest.fixture
def page():
    """The class of pages; call it with a path."""
    return Page


@pytest.fixture
def import_page(root, monkeypatch):
    """Import a module of the generator of the reference."""
    monkeypatch.syspath_prepend(root / "docs")
    return importlib.import_module


@pytest.fixture
def newcomer(tmp_path, page):
    """A folder with the skill of the page on skills."""
    skills = page("docs/skills.md")
    folder = tmp_path / "skills" / "notes"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(skills.example("markdown", "name: notes"))
    (folder / "notes.py").write_text(skills.example("python", "@tool"))
    return tmp_path


@pytest.fixture
def talker(newcomer, page):
    """The same folder with the scripted model and the settings of the page on agents."""
    agents = page("docs/agents.md")
    (newcomer / "home").mkdir()
    (newcomer / "home" / "conversation.toml").write_text(agents.example("toml", "[models.demo]"))
    (newcomer / "home" / "sideband.toml").write_text(agents.example("toml", "[plugins.scripted]"))
    return newcomer


@pytest.fixture
def sideband(tmp_path, monkeypatch, capsys):
    """Run the command line in this process, with its own home folder and without a terminal."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SIDEBAND_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "100")  # pytest-xdist sets the width of its own report

    def run(*words, folder=tmp_path, **environment):
        with monkeypatch.context() as patch:
            patch.chdir(folder)
            for name, value in environment.items():
                patch.setenv(name, value)
            capsys.readouterr()
            try:
                code = main([str(word) for word in words])
            except SystemExit as ended:  # of --help
                code = ended.code
            printed = capsys.readouterr()
        return types.SimpleNamespace(returncode=code, stdout=printed.out, stderr=printed.err)

    reading, writing = os.pipe()  # a chat cannot wait for /dev/null
    os.close(writing)
    with os.fdopen(reading) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield run


@pytest.fixture
def run_program():
    """Run a Python example as a process in a folder."""

    def run(program, folder):
        return subprocess.run(
            [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False,
            env={"HOME": str(folder), "SIDEBAND_HOME": str(folder / "home")},
        )  # fmt: skip

    return run
