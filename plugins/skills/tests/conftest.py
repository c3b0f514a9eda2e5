import os
import textwrap
from time import time_ns

import anyio
import pytest
from sideband.loading import SkillSources
from sideband_skills import FolderLoader, _skill_cache
from sideband_skills._config import Config

MANIFEST = "---\nname: {name}\ndescription: Does what the test needs.\n---\n# Text\n"

LONGER_MANIFEST = "---\nname: {name}\ndescription: {text}\n{more}---\n# Text\n"
TOOL = 'from sideband.skill import tool, http\n\n@tool\nasync def {name}(a: int = 1) -> int:\n    """Do it."""\n'
LATER = 10_000_000_000


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request):
    return request.param


@pytest.fixture
def skills(tmp_path):
    folder = tmp_path / "skills"
    folder.mkdir()
    return folder


@pytest.fixture
def make_skill(skills):
    """Return a function that writes a skill folder from file names and texts; no manifest if it is ``None``."""

    def make(name="demo", files=None, *, manifest=MANIFEST, parent=None):
        folder = (parent or skills) / name
        folder.mkdir(parents=True, exist_ok=True)
        if manifest is not None:
            content = manifest.format(name=name) if manifest is MANIFEST else manifest
            data = content if isinstance(content, bytes) else content.encode()
            (folder / "SKILL.md").write_bytes(data)
        for path, text in (files or {}).items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(text if isinstance(text, bytes) else textwrap.dedent(text).encode())
        return folder

    return make


@pytest.fixture
def load():
    def run(*folders, packages=(), project_folders=(), **options):
        sources = SkillSources(folders=folders, packages=tuple(packages), project_folders=project_folders)
        return anyio.run(FolderLoader(**options).load, sources)

    return run


@pytest.fixture
def load_one(make_skill, load):
    """Return a function that loads one skill from its manifest and files."""

    def run(manifest=MANIFEST, files=None, *, name="demo"):
        loaded = load(make_skill(name, files, manifest=manifest))
        assert not loaded.problems
        (skill,) = loaded.skills
        return skill

    return run


@pytest.fixture
def load_tool(load_one):
    """Return a function that loads a skill with one tool, from its signature and docstring."""

    def run(signature="()", *, before="", doc="Do it.", returns=""):
        body = textwrap.indent(f'"""{doc}"""', "    ")
        head = f"from sideband.skill import tool\n{textwrap.dedent(before)}\n"
        code = f"{head}@tool\nasync def run{signature}{returns}:\n{body}\n"
        skill = load_one(files={"run.py": code})
        assert skill.tools, skill.problems
        return skill.tools[0], skill

    return run


@pytest.fixture
def codes():
    return lambda problems: [problem.code.removeprefix("skill.") for problem in problems]


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


@pytest.fixture
def settled(monkeypatch):
    """Let the loader believe that all files were last changed long ago."""
    monkeypatch.setattr(_skill_cache, "time_ns", lambda: time_ns() + LATER)


@pytest.fixture
def load_cached(home):
    """Return a function that loads folders with the cache of one home folder."""

    def run(*folders, limits=None, home=home, **sources):
        loader = FolderLoader(limits or Config())
        return anyio.run(loader.load, SkillSources(folders=folders, home=home, **sources))

    return run


@pytest.fixture
def opened(monkeypatch, skills):
    """Return a list of the paths of files that are opened below the skills' folder during the test."""
    found = []
    original = os.open

    def counting(path, *arguments, **options):
        if str(path).startswith(str(skills)):
            found.append(str(path).removeprefix(f"{skills}/"))
        return original(path, *arguments, **options)

    monkeypatch.setattr(os, "open", counting)
    return found


@pytest.fixture
def make(make_skill):
    """Return a function that writes a skill with a tool."""

    def run(name="demo", text="Does it.", more="", files=None):
        code = {"run.py": TOOL.format(name="run"), **(files or {})}
        return make_skill(name, code, manifest=LONGER_MANIFEST.format(name=name, text=text, more=more))

    return run
