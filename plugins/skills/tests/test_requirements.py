"""Dependencies of skills, read from inline metadata or from the installed package."""

import re
import time

import importlib_metadata  # noqa: F401 - hosts import it, and it replaces the standard library's finder
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sideband.loading import SkillPackage
from sideband_skills._script_blocks import find_blocks

# The regular expression of the specification, which takes quadratic time.
REFERENCE = re.compile(r"(?m)^# /// (?P<type>[a-zA-Z0-9-]+)$\s(?P<content>(^#(| .*)$\s)+)^# ///$")
LINES = [
    "# /// script",
    "# /// other",
    "# ///",
    "#",
    "# x = 1",
    "#x",
    "",
    "code",
    "# /// ",
    "# /// a b",
    " # /// script",
]


def block(*lines, kind="script"):
    return "".join(f"{line}\n" for line in [f"# /// {kind}", *(f"# {line}" for line in lines), "# ///"])


@pytest.fixture
def load_code(load_one):
    return lambda *texts: load_one(files={f"m{number}.py": text for number, text in enumerate(texts)})


@pytest.fixture
def refuse(make_skill, load):
    """Return a function that returns the fatal problem of a skill with this code."""

    def run(*texts):
        files = {f"m{number}.py": text for number, text in enumerate(texts)}
        loaded = load(make_skill(files=files))
        assert loaded.skills == ()
        (problem,) = [problem for problem in loaded.problems if problem.fatal]
        assert problem.hint
        return problem

    return run


@pytest.fixture
def install(tmp_path, make_skill, monkeypatch):
    """Return a function that installs a distribution with a skill and returns its package."""

    def run(metadata, *groups, files=None, name="sideband-stars"):
        site = tmp_path / "site"
        information = site / f"{name.replace('-', '_')}-1.2.dist-info"
        information.mkdir(parents=True)
        information.joinpath("METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n{metadata}")
        points = "".join(f"[{group}]\nstars = stars\n" for group in groups or ["sideband.v1.skill"])
        information.joinpath("entry_points.txt").write_text(points)
        monkeypatch.syspath_prepend(str(site))
        folder = make_skill("stars", files, parent=site)
        return SkillPackage("stars", folder, name, "1.2")

    return run


@given(st.lists(st.sampled_from(LINES), max_size=14).map("\n".join))
@example("# /// script\n# ///\n# ///")
@example("# /// script\n#\n# ///")
@example("# /// a\n# /// b\n# x\n# ///\n")
def test_blocks_match_the_specification(text):
    expected = [
        (
            found["type"],
            "".join(line[2:] if line.startswith("# ") else line[1:] for line in found["content"].splitlines(True)),
        )
        for found in REFERENCE.finditer(text)
    ]
    assert [(found.kind, found.content) for found in find_blocks(text)] == expected


@given(st.text(alphabet="# /scriptx=1\n", max_size=200))
def test_blocks_of_arbitrary_text_match_the_specification(text):
    assert [found.kind for found in find_blocks(text)] == [found["type"] for found in REFERENCE.finditer(text)]


def test_windows_line_endings_are_supported():
    text = block("dependencies = []")
    assert list(find_blocks(text.replace("\n", "\r\n"))) == list(find_blocks(text))


def test_block_has_its_line_number():
    assert [found.line for found in find_blocks(f"import os\n\n{block('x = 1')}")] == [3]


def test_many_opening_lines_are_read_in_linear_time():
    started = time.perf_counter()
    assert list(find_blocks("# /// script\n" * 80_000)) == []
    assert time.perf_counter() - started < 5


def test_requirements_and_versions_of_all_modules_are_merged(load_code):
    skill = load_code(
        block("requires-python = '>=3.11'", "dependencies = [", "'numpy>=2',", "\"httpx[a] ; os_name == 'x'\",", "]"),
        block('requires-python = "<4"', 'dependencies = ["pandas", "numpy >=2"]'),
        "x = 1\n",
    )  # fmt: skip
    assert skill.requirements == ("numpy>=2", 'httpx[a]; os_name == "x"', "pandas")
    assert skill.requires_python == "<4,>=3.11"
    assert skill.problems == ()


def test_skill_without_a_block_has_no_requirements(load_code):
    skill = load_code("import numpy\n", block("dependencies = 3", kind="other"), "# /// script\n# dependencies = [1\n")
    assert (skill.requirements, skill.requires_python, skill.problems) == ((), "", ())


def test_block_may_have_no_dependencies(load_code):
    assert load_code(block('requires-python = ">=3"')).requirements == ()


def test_packages_of_sideband_are_skipped(load_code):
    assert load_code(block('dependencies = ["sideband", "Sideband_Core>=0.1", "sidebands"]')).requirements == (
        "sidebands",
    )


@pytest.mark.parametrize(
    ("lines", "code", "part"),
    [
        (["dependencies = ["], "script.toml", "line 1"),
        (["x = " + "[" * 9_000], "script.toml", "line 1"),
        (["x = 1"] * 20_000, "script.toml", "8 KiB"),
        (["[" + "a." * 9_000 + "a]", *(f"k{number} = 1" for number in range(1_000))], "script.toml", "8 KiB"),
        (["dependencies = 'numpy'"], "script.dependencies", "'numpy'"),
        (["dependencies = [1]"], "script.dependencies", "[1]"),
        (["dependencies = {numpy = 2}"], "script.dependencies", "numpy"),
        (["requires-python = 3.11"], "requires_python", "3.11"),
        (["requires-python = 'new'"], "requires_python", "'new'"),
        (["requires-python = '>=" + "9" * 5_000 + "'"], "requires_python", "9..."),
        (["dependencies = ['numpy = 2']"], "requirement", "'numpy = 2'"),
        (["dependencies = ['numpy>=two!']"], "requirement", "numpy>=two!"),
        (["dependencies = ['']"], "requirement", "''"),
        (["dependencies = ['a; " + "(" * 6_000 + "']"], "requirement", "dependencies"),
        (["dependencies = ['a @ https://example.test/a.whl']"], "requirement.direct", "https://example.test/a.whl"),
        (["dependencies = ['a@git+ssh://git@example.test/a']"], "requirement.direct", "git+ssh"),
        (["dependencies = ['git+https://example.test/a']"], "requirement.direct", "git+https"),
        (["dependencies = ['https://example.test/a.whl']"], "requirement.direct", "https://example.test/a.whl"),
        (["dependencies = ['a @ file:///a.whl']"], "requirement.direct", "file:///a.whl"),
        (["dependencies = ['./a']"], "requirement.direct", "./a"),
        (["dependencies = ['/a']"], "requirement.direct", "/a"),
        (["dependencies = ['-e .']"], "requirement.direct", "-e ."),
        (["dependencies = ['--index-url https://example.test']"], "requirement.direct", "--index-url"),
    ],
)
def test_skill_with_an_invalid_block_does_not_load(refuse, lines, code, part):
    problem = refuse(block(*lines))
    assert problem.code == f"skill.{code}"
    assert part in problem.reason
    assert problem.source.endswith("/m0.py")
    assert len(problem.reason) < 400


def test_duplicate_blocks_in_a_file_are_refused(refuse):
    problem = refuse(f"{block('dependencies = []')}\n{block('dependencies = []')}")
    assert problem.code == "skill.script.repeated"
    assert "line 1" in problem.reason
    assert "line 5" in problem.reason


def test_too_many_requirements_are_refused(refuse):
    named = ", ".join(f"'p{number}'" for number in range(201))
    assert refuse(block(f"dependencies = [{named}]")).code == "skill.requirement.many"


def test_unknown_key_is_reported_with_a_suggestion(load_code, codes):
    skill = load_code(block("dependancies = ['numpy']"))
    assert codes(skill.problems) == ["script.key"]
    assert "`dependencies`" in skill.problems[0].reason


def test_package_sources_of_a_skill_are_ignored(load_code, codes):
    skill = load_code(block("dependencies = ['a']", "[tool.uv.sources]", "a = {path = '/x'}", "[tool.other]", "b = 1"))
    assert codes(skill.problems) == ["script.tool"]
    assert skill.requirements == ("a",)


def test_packaged_skill_has_the_requirements_of_its_distribution(install, load):
    package = install(
        "Requires-Python: >=3.11\nRequires-Dist: numpy>=2\nRequires-Dist: sideband-core>=0.1\n"
        "Requires-Dist: pandas; extra == 'all'\nRequires-Dist: here; python_version > '3'\n"
        "Requires-Dist: there; python_version < '3'\n"
    )
    (skill,) = load(packages=[package]).skills
    assert skill.requirements == ("numpy>=2", "here")
    assert skill.requires_python == ">=3.11"


def test_block_overrides_the_requirements_of_the_distribution(install, load):
    package = install("Requires-Dist: numpy\n", files={"stars.py": block("dependencies = ['pandas']")})
    (skill,) = load(packages=[package]).skills
    assert skill.requirements == ("pandas",)


def test_requirements_of_a_distribution_with_plugins_are_ignored(install, load):
    package = install("Requires-Dist: numpy\n", "sideband.v1.skill", "sideband.v1.op")
    (skill,) = load(packages=[package]).skills
    assert skill.requirements == ()


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("Requires-Dist: a @ https://example.test/a.whl", "requirement.direct"),
        ("Requires-Dist: a b", "requirement"),
        ("Requires-Dist: a; python_version ~= 'x'", "requirement"),
        ("Requires-Python: new", "requires_python"),
    ],
)
def test_package_with_invalid_metadata_does_not_load(install, load, codes, line, code):
    loaded = load(packages=[install(f"{line}\n")])
    assert loaded.skills == ()
    assert codes(loaded.problems) == [code]
    assert "package sideband-stars" in loaded.problems[0].source


@pytest.mark.parametrize(
    ("text", "size"),
    [("536870912", 512 << 20), ("512M", 512 << 20), ("512 MiB", 512 << 20), ("2g", 2 << 30), ("65536K", 64 << 20)],
)
def test_memory_is_read_as_bytes_or_with_a_unit(load_one, text, size):
    skill = load_one(f"---\nname: demo\ndescription: x\nmetadata:\n  sideband.memory: {text}\n---\n")
    assert (skill.memory, skill.problems) == (size, ())


@pytest.mark.parametrize("text", ["512", "1.5G", "-1M", "much", "31M", "17T", "9" * 40, "512MX", "0x20000000"])
def test_invalid_memory_is_reported(load_one, codes, text):
    skill = load_one(f"---\nname: demo\ndescription: x\nmetadata:\n  sideband.memory: '{text}'\n---\n")
    assert skill.memory is None
    assert codes(skill.problems) == ["memory"]
    assert "sideband.memory" in skill.problems[0].reason
    assert text[:30] in skill.problems[0].reason


def test_isolation_call_requests_one_worker_per_call(load_one):
    skill = load_one("---\nname: demo\ndescription: x\nmetadata: {sideband.isolation: call}\n---\n")
    assert (skill.alone, skill.problems) == (True, ())
    assert load_one(name="other").alone is False


@pytest.mark.parametrize("value", ["replay", "ask", "never"])
def test_skill_can_restrict_whether_its_calls_resume(load_one, value):
    skill = load_one(f"---\nname: demo\ndescription: x\nmetadata: {{sideband.resume: {value}}}\n---\n")
    assert (skill.resume, skill.problems) == (value, ())


def test_invalid_resume_is_reported_and_treated_as_the_strictest(load_one, codes):
    skill = load_one("---\nname: demo\ndescription: x\nmetadata: {sideband.resume: always}\n---\n")
    assert skill.resume == "never"
    assert codes(skill.problems) == ["resume"]


def test_invalid_isolation_is_reported_and_treated_as_the_strictest(load_one, codes):
    skill = load_one("---\nname: demo\ndescription: x\nmetadata: {sideband.isolation: ful}\n---\n")
    assert skill.alone
    assert codes(skill.problems) == ["isolation"]
    assert "'ful'" in skill.problems[0].reason
