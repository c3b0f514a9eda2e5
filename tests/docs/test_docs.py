"""What the documents say is true: their examples run, their tables are those of the code."""

import importlib.util
import re
import shlex
import sys
import types
from pathlib import Path

import pytest
from sideband import Host, Plugin
from sideband.ops import OpDenied

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page, language):
    return [text for kind, text in FENCE.findall((ROOT / page).read_text()) if kind == language]


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def commands(page):
    """The indented command lines of a page."""
    return re.findall(r"^    (\.venv/bin/sideband .*|mkdir .*)$", (ROOT / page).read_text(), re.MULTILINE)


@pytest.fixture
def newcomer(tmp_path, sideband):
    """A folder in which the README was followed up to its first command."""
    (markdown,) = blocks("README.md", "markdown")
    skill = next(text for text in blocks("README.md", "python") if "@tool" in text)
    folder = tmp_path / "skills" / "notes"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(markdown)
    (folder / "notes.py").write_text(skill)
    return tmp_path


def test_a_newcomer_who_follows_the_readme_has_a_running_skill(newcomer, sideband):
    printed = []
    for line in commands("README.md"):
        words = shlex.split(line)
        if words[0] != "mkdir":
            done = sideband(*words[1:], folder=newcomer)
            assert done.returncode == 0, (line, done.stderr)
            printed.append(done.stdout)
    assert "nothing to complain about" in printed[0]
    assert printed[1].strip() == "1"
    assert "water the plants" in printed[2]
    assert "sql.execute" in printed[3]
    assert "is whole" in printed[4]


def test_the_program_in_the_readme_runs(newcomer, sideband, monkeypatch):
    import subprocess

    for line in commands("README.md"):
        if "notes.add" in line:
            sideband(*shlex.split(line)[1:], folder=newcomer)
    program = next(text for text in blocks("README.md", "python") if "anyio.run" in text)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=newcomer, capture_output=True, text=True, check=False,
        env={"HOME": str(newcomer), "SIDEBAND_HOME": str(newcomer / "home")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "water the plants" in done.stdout


def test_each_command_that_the_readme_lists_is_there(sideband):
    listed = re.findall(r"^\| `sideband (\w+)", (ROOT / "README.md").read_text(), re.MULTILINE)
    listed += re.findall(r"`sideband (hooks) ", (ROOT / "README.md").read_text())
    there = re.findall(r"^  (\w+)  ", sideband("--help").stdout, re.MULTILINE)
    assert set(listed) == set(there)


@pytest.mark.anyio
async def test_the_op_family_of_the_tutorial_works_and_its_scope_holds(tmp_path):
    family = next(text for text in blocks("docs/plugins.md", "python") if "clock.now" in text)
    path = tmp_path / "sideband_clock.py"
    path.write_text(family)
    clock = load(path)
    async with Host(home=tmp_path / "home", plugins=[Plugin("op", "clock", clock)]) as host:
        assert "+0" in await host.op("clock.now", {"zone": "Europe/Vienna"}, grants=["clock:zone=Europe/Vienna"])
        with pytest.raises(OpDenied):
            await host.op("clock.now", {"zone": "UTC"}, grants=["clock:zone=Europe/Vienna"])


@pytest.mark.anyio
async def test_the_guard_of_the_tutorial_denies_at_night(tmp_path):
    guard = types.ModuleType("night")
    code = next(text for text in blocks("docs/plugins.md", "python") if "hookimpl" in text)
    exec(compile(code.replace("datetime.now().hour", "3"), "docs/plugins.md", "exec"), guard.__dict__)
    async with Host(home=tmp_path / "home", plugins=[Plugin("hook", "night", guard)]) as host:
        with pytest.raises(OpDenied, match="before six"):
            await host.op("http.get", {"url": "http://127.0.0.1:9/"})


@pytest.mark.anyio
async def test_configuration_and_lifespan_of_the_tutorial_reach_an_op(tmp_path):
    from pydantic import BaseModel
    from sideband.ops import OpContext, OpFamily, op

    class Nothing(BaseModel):
        pass

    @op("zone.tell")
    async def tell(params: Nothing, ctx: OpContext) -> str:
        return ctx.state

    module = types.ModuleType("zone")
    code = next(text for text in blocks("docs/plugins.md", "python") if "lifespan" in text)
    exec(compile(code, "docs/plugins.md", "exec"), module.__dict__)
    module.sideband_ops = lambda: OpFamily(name="zone", ops=(tell,))
    settings = {"plugins": {"zone": {"zone": "Mars"}}}
    async with Host(home=tmp_path / "home", plugins=[Plugin("op", "zone", module)], settings=settings) as host:
        assert await host.op("zone.tell", {}) == "the zone is Mars"


def test_the_reference_is_what_the_code_says():
    generate = load(ROOT / "docs" / "generate.py")
    for name, text in generate.pages().items():
        assert (ROOT / "docs" / "reference" / name).read_text() == text, "run: python docs/generate.py"


def test_the_links_of_all_pages_lead_somewhere():
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *ROOT.glob("plugins/*/README.md")]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), (page, target)
