"""What the documents say is true: their examples run, their tables are those of the code."""

import errno
import importlib.util
import json
import re
import shlex
import subprocess
import sys
import types
from pathlib import Path

import pytest
from sideband import Host, Plugin
from sideband.loading import SkillSources
from sideband.ops import OpDenied
from sideband.workers import Isolation
from sideband_sandbox._remedies import NamespaceFacts, namespace_remedy
from sideband_skills import FolderLoader

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


def run_program(program, folder):
    return subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False,
        env={"HOME": str(folder), "SIDEBAND_HOME": str(folder / "home")},
    )  # fmt: skip


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
    for line in commands("README.md"):
        if "notes.add" in line:
            sideband(*shlex.split(line)[1:], folder=newcomer)
    program = next(text for text in blocks("README.md", "python") if "anyio.run" in text)
    done = run_program(program, newcomer)
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


def test_the_program_of_the_security_page_shows_what_was_proved(tmp_path):
    (program,) = blocks("docs/security.md", "python")
    done = run_program(program, tmp_path)
    assert done.returncode == 0, done.stderr
    tier, *lines = done.stdout.splitlines()
    assert tier == "full"
    assert "a worker could not fork" in lines
    assert any(line.startswith("not stopped: bugs of the kernel") for line in lines)


def test_the_commands_of_the_security_page_show_the_tier_of_a_call_and_of_its_effects(newcomer, sideband):
    call, query = [shlex.split(line)[1:] for line in commands("docs/security.md")]
    called = sideband(*call, folder=newcomer)
    assert called.returncode == 0, called.stderr
    assert json.loads(called.stdout)["isolation"] == "full"
    effects = json.loads(sideband(*query, folder=newcomer).stdout)
    assert {effect["entries"][0]["isolation"] for effect in effects} == {"full"}


@pytest.mark.anyio
async def test_the_skill_of_the_security_page_gets_a_worker_for_each_call(tmp_path, sideband):
    (markdown,) = blocks("docs/security.md", "markdown")
    folder = tmp_path / "careful"
    folder.mkdir()
    (folder / "SKILL.md").write_text(markdown)
    assert sideband("skills", "validate", folder).returncode == 0
    (skill,) = (await FolderLoader().load(SkillSources(folders=(folder,)))).skills
    assert skill.alone


def test_the_security_page_names_every_tier_and_no_other():
    page = (ROOT / "docs/security.md").read_text()
    table = page.partition("## The tiers")[2].partition("\n## ")[0]
    named = re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE)
    assert sorted(named) == sorted(tier.label for tier in Isolation)


def test_the_security_page_has_a_line_for_each_cause_that_doctor_names():
    page = (ROOT / "docs/security.md").read_text()
    settings = {"kernel.apparmor_restrict_unprivileged_userns": 1, "kernel.unprivileged_userns_clone": 0}
    for facts in (
        NamespaceFacts(settings=settings, filtered=True, profile="docker-default"),
        NamespaceFacts(root=True),
        NamespaceFacts(),
    ):
        remedy = namespace_remedy(errno.EPERM, facts)
        for word in re.findall(
            r"kernel\.[a-z_]+|user\.[a-z_]+|CAP_[A-Z_]+|--[a-z-]+|[a-z_]*mount[a-z_]*|chroot", remedy
        ):
            assert word in page, word


def test_the_reference_is_what_the_code_says():
    generate = load(ROOT / "docs" / "generate.py")
    for name, text in generate.pages().items():
        assert (ROOT / "docs" / "reference" / name).read_text() == text, "run: python docs/generate.py"


def test_the_links_of_all_pages_lead_somewhere():
    for page in [
        ROOT / "README.md",
        ROOT / "SECURITY.md",
        *(ROOT / "docs").rglob("*.md"),
        *ROOT.glob("plugins/*/README.md"),
    ]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), (page, target)
