import ast
import contextlib
import os
import sys
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from sideband.loading import SkillSources
from sideband_skills import FolderLoader
from sideband_skills._config import Config
from sideband_skills._imports import Names
from sideband_skills._meter import LimitReached, Meter
from sideband_skills._problems import Problems

HEAD = "from sideband.skill import tool\n"
TOOL = HEAD + '@tool\nasync def run(repo: str = "x") -> int:\n    """Do it."""\n'
# Python's parser needs quadratic time for it: minutes.
ENDLESS = HEAD + "f'" + "{a}" * 340_000 + "'\n"


def manifest(*lines):
    return "\n".join(["---", "name: demo", "description: x", *lines, "---", "Text"])


@pytest.fixture
def beside(skills, make_skill, load, codes):
    """Return a function that loads a skill beside a good one, and returns its problems' codes if it did not load."""

    def run(files=None, *, manifest=None, **limits):
        make_skill("good", {"run.py": TOOL})
        make_skill("demo", files, **({} if manifest is None else {"manifest": manifest}))
        loaded = load(skills, limits=Config(**limits))
        assert "good.run" in [tool.full_name for skill in loaded.skills for tool in skill.tools]
        assert all(problem.source.startswith(str(skills / "demo")) for problem in loaded.problems)
        return codes(loaded.problems) if loaded.problems else [skill for skill in loaded.skills if skill.key == "demo"]

    return run


@pytest.fixture
def parsed_here():
    """Return the texts that this process parses or compiles."""
    texts = []
    active = True

    def hook(event, arguments):
        if active and event == "compile" and arguments[0] is not None:
            texts.append(arguments[0])

    sys.addaudithook(hook)
    yield texts
    active = False


@pytest.mark.parametrize("count", [1, 4])
def test_many_short_lines_need_no_memory_of_the_host(beside, count):
    files = {f"m{number}.py": HEAD + "a\n" * 100_000 for number in range(count)}
    assert beside(files, nodes=10_000) == ["limit.nodes"]


def test_nodes_of_all_files_of_a_skill_are_counted_together(beside):
    assert beside({f"m{number}.py": HEAD + "a\n" * 300 for number in range(5)}, nodes=2_000) == ["limit.nodes"]


def test_nodes_are_counted_per_skill(skills, make_skill, load):
    for number in range(5):
        make_skill(f"demo-{number}", {"run.py": HEAD + "a\n" * 300})
    assert len(load(skills, limits=Config(nodes=1_000)).skills) == 5


def test_parser_that_exceeds_its_memory_does_not_harm_the_host(load_one, codes):
    skill = load_one(files={"big.py": HEAD + "a\n" * 500_000, "run.py": TOOL})
    assert [tool.name for tool in skill.tools] == ["run"]
    assert codes(skill.problems) == ["python.syntax"]


def test_parser_that_does_not_end_is_killed(make_skill, load):
    (problem,) = load(make_skill(files={"m.py": ENDLESS}), limits=Config(seconds=0.5)).problems
    assert problem.code == "skill.limit.seconds"
    # not "loading", which would be noticed only after the parser has ended
    assert problem.reason == "parsing takes more than 0.5 s of processor time"


def test_skill_after_one_whose_parser_was_killed_loads(beside):
    assert beside({"m.py": ENDLESS}, seconds=0.5) == ["limit.seconds"]


def test_limit_is_named_with_the_key_that_raises_it(make_skill, load):
    (problem,) = load(make_skill(files={"m.py": TOOL}), limits=Config(nodes=2)).problems
    assert problem.reason == "its Python files have more than 2 syntax nodes"
    assert problem.hint == "if you trust it, raise `nodes` in `[plugins.skills]`"
    assert problem.fatal


def test_python_is_not_parsed_in_the_host(load_one, parsed_here):
    quoted = f"{HEAD}@tool\nasync def quoted(a: 'list[int]') -> 'str | None':\n    'x'\n"
    assert len(load_one(files={"run.py": TOOL, "quoted.py": quoted}).tools) == 2
    texts = [text.decode() if isinstance(text, bytes) else str(text) for text in parsed_here]
    assert [text for text in texts if "sideband" in text or "list[int]" in text] == []


@pytest.mark.parametrize("quoted", ["x = 1", "a; b", "(", "", "'int'", "1 +", "\\n", "lambda: 0"])
def test_quoted_annotation_that_is_not_a_type_accepts_any_value(load_one, quoted):
    skill = load_one(files={"run.py": f"{HEAD}@tool\nasync def run(a: {quoted!r}):\n    'x'\n"})
    assert skill.tools[0].parameters["properties"]["a"] in ({}, {"type": "integer"})


def test_time_for_quoted_annotations_is_limited(beside):
    alias = "X = '" + "int | " * 300 + "int'\n"
    tools = "".join(f"@tool\nasync def r{n}(a: X, b: 'X'): 'x'\n" for n in range(50))
    assert len(beside({"m.py": f"{HEAD}{alias}{tools}"}, seconds=4.0)) == 1


def test_file_that_does_not_mention_an_sdk_is_not_parsed(load_one):
    skill = load_one(files={"run.py": TOOL, "helper.py": "def broken(", "large.py": "a\n" * 400_000})
    assert [tool.name for tool in skill.tools] == ["run"]
    assert skill.problems == ()


@pytest.mark.parametrize(
    ("code", "families"),
    [
        ("from sideband.skill import http", ("http",)),
        ("from sideband import skill", None),
        ("import importlib; importlib.import_module('sideband.skill')", None),
        ("import sideband_sdk", None),
    ],
)
def test_helper_that_mentions_the_sdk_is_parsed(load_one, code, families):
    found = load_one(files={"run.py": TOOL, "lib/helper.py": f"{code}\nprint(skill)"}).families
    assert found == families


def test_dependencies_of_a_file_without_the_sdk_are_read(load_one):
    block = "# /// script\n# dependencies = ['numpy']\n# ///\nimport numpy\n"
    assert load_one(files={"run.py": TOOL, "helper.py": block}).requirements == ("numpy",)


def test_validate_parses_files_that_do_not_mention_the_sdk(make_skill, codes):
    folder = make_skill(files={"run.py": TOOL, "helper.py": "def broken("})
    assert codes(anyio.run(FolderLoader().validate, folder)) == ["python.syntax"]


def test_validate_has_the_same_limits(make_skill, codes):
    folder = make_skill(files={"run.py": "a\n" * 3_000})
    assert codes(anyio.run(FolderLoader(Config(nodes=2_000)).validate, folder)) == ["limit.nodes"]


@pytest.mark.parametrize(
    "code",
    [
        "x = ..., 1j, 1.5, b'b', 'ü\\ud800', True, None, 10**2, -1",
        "class A[T]: pass" if sys.version_info >= (3, 12) else "class A: pass",
        "async def f():\n  async for a in b: yield await c\n",
        "match a:\n  case {'x': [1, *_]} | A(b=2): pass",
        "x = " + "+".join(["a"] * 400),
        "def f(a, /, b: int = 1, *c, d: 'int', **e) -> None: return lambda *, x=1: f'{a!r:>{b}}'",
    ],
)
def test_tree_is_received_as_it_was_parsed(load_one, code):
    assert load_one(files={"run.py": f"{TOOL}\n{code}\n"}).problems == ()


def test_total_time_ends_loading_with_one_problem(skills, make_skill, load, codes):
    for number in range(20):
        make_skill(f"demo-{number}", {"run.py": TOOL})
    loaded = load(skills, limits=Config(total_seconds=1e-9))
    assert loaded.skills == ()
    assert codes(loaded.problems) == ["limit.total_seconds"]
    assert "the remaining skills are skipped" in loaded.problems[0].reason


def test_text_of_all_skills_is_limited(skills, make_skill, load, codes):
    for number in range(5):
        make_skill(f"demo-{number}", manifest=f"---\nname: demo-{number}\ndescription: x\n---\n" + "x" * 1_000)
    loaded = load(skills, limits=Config(total_text=2_500))
    assert "limit.total_text" in codes(loaded.problems)
    assert len(loaded.skills) < 5


def test_time_of_a_skill_is_limited_outside_the_parser_too(make_skill, load, codes):
    loaded = load(
        make_skill(manifest=manifest(*(f"key{number}: x" for number in range(50)))), limits=Config(seconds=1e-9)
    )
    assert codes(loaded.problems) == ["limit.seconds"]


def test_limit_of_all_skills_that_is_reached_within_a_skill_is_reported_once(skills, make_skill, load, codes):
    for name in ("a", "b"):
        make_skill(name, {"run.py": TOOL})
    assert codes(load(skills, limits=Config(total_text=1)).problems) == ["limit.total_text"]


@pytest.mark.parametrize(
    "files",
    [
        {"run.py": HEAD + "".join(f"@tool\nasync def r{n}(): 'x'\n" for n in range(20))},
        {f"{number}\t.txt": "" for number in range(20)},
        {"x" * 100 + f"{number}.txt": "" for number in range(20)},
    ],
    ids=["tools", "problems", "names of files"],
)
def test_all_data_that_is_kept_counts(skills, make_skill, load, codes, files):
    for number in range(3):
        make_skill(f"demo-{number}", files)
    assert codes(load(skills, limits=Config(total_text=1_500)).problems) == ["limit.total_text"]


@pytest.mark.parametrize(
    "text",
    [
        "allowed-tools: " + "a(" * 30_000,
        "\n".join(f"!{number}" for number in range(9_000)),
        "\n".join(f"namx{number}: x" for number in range(4_900)),
        "x: " + "[" * 30_000,
        "x: " + "{a: " * 10_000,
        "x: &a [*a, *a]",
        'x: "' + "\\u0041" * 9_000 + '"',
        "x: " + "- " * 30_000,
        "'" * 60_000,
        "a" * 60_000 + ": x",
    ],
)
def test_hostile_frontmatter_is_read_quickly(beside, text):
    (skill,) = beside(manifest=manifest(text), seconds=2.0)
    assert len(skill.problems) <= 201


@pytest.mark.parametrize(
    "line",
    [
        "a" + " " * 900_000 + "x",
        "a" * 900_000,
        "a" + "(" * 900_000,
        "a (" + " " * 900_000,
        ":param" + " a" * 400_000,
        ":param " + " " * 900_000 + "x",
        "a, " * 300_000 + "!",
        "-" * 900_000 + "x",
    ],
)
def test_hostile_docstring_is_read_quickly(beside, line):
    for head in ("    Args:\n        ", "    ", "    Parameters\n    ----------\n    "):
        code = f'{HEAD}@tool\nasync def run(a: int) -> int:\n    """X.\n\n{head}{line}\n    """\n'
        assert len(beside({"m.py": code}, seconds=3.0)) == 1


def test_each_problem_checks_the_time():
    meter = Meter(Config(seconds=1e-9))
    meter.start()
    with meter.skill(), pytest.raises(LimitReached):
        Problems("demo", meter).warn("code", "reason")


def test_skill_that_requests_thousands_of_capabilities_does_not_load(beside):
    words = " ".join(f"a{number}" for number in range(9_000))
    assert beside(manifest=manifest(f"metadata: {{sideband.capabilities: {words}}}")) == ["capability.many"]


def test_open_parentheses_in_allowed_tools_are_read_in_linear_time(beside):
    (skill,) = beside(manifest=manifest("allowed-tools: " + "a(" * 32_000), seconds=0.4)
    assert skill.allowed_tools == ("a",) * 256


@pytest.mark.parametrize(("parts", "is_resolved"), [(16, True), (17, False), (500, False)])
def test_name_with_many_parts_is_not_resolved(parts, is_resolved):
    # each part of a chain is resolved, which would take quadratic time
    name = "a" + ".a" * parts
    assert (Names().resolve(ast.parse(name, mode="eval").body) == name) is is_resolved


def test_number_of_values_in_frontmatter_is_limited(load_one, codes):
    skill = load_one(manifest(f"x: [{'1,' * 3_000}]"))
    assert codes(skill.problems) == ["frontmatter.yaml", "key.unknown"]


def test_number_of_allowed_tools_is_limited(load_one, codes):
    skill = load_one(manifest(f"allowed-tools: {'a ' * 300}"))
    assert len(skill.allowed_tools) == 256
    assert codes(skill.problems) == ["allowed_tools.many"]


def test_number_of_problems_is_limited(load_one, codes):
    skill = load_one(files={f"a\t{number}.txt": "" for number in range(300)})
    assert codes(skill.problems) == ["files.name"] * 200 + ["problems"]
    assert skill.problems[-1].reason == "100 more problems are not shown"


def test_fatal_problem_after_many_others_is_fatal(make_skill, load):
    files = {f"a\t{number}.txt": "" for number in range(300)}
    folder = make_skill(files=files | {"run.py": "# /// script\n# dependencies = ['a @ https://a.test']\n# ///\n"})
    assert load(folder).skills == ()


def test_skill_with_too_many_tools_loads_without_tools(load_one, codes):
    skill = load_one(files={"run.py": HEAD + "".join(f"@tool\nasync def r{n}(): 'x'\n" for n in range(257))})
    assert skill.tools == ()
    assert codes(skill.problems) == ["tool.many"]


@pytest.mark.parametrize(
    ("default", "part"),
    [("0x" + "f" * 6_000, "cannot be sent as JSON"), ("'" + "x" * 70_000 + "'", "64 KiB")],
)
def test_default_that_no_model_can_receive_refuses_its_tool_only(load_one, codes, default, part):
    code = f"{TOOL}\n@tool\nasync def other(a: int = {default}):\n    'x'\n"
    skill = load_one(files={"run.py": code})
    assert [tool.name for tool in skill.tools] == ["run"]
    assert codes(skill.problems) == ["tool.refused"]
    assert part in skill.problems[0].reason


def test_type_with_thousands_of_values_accepts_any_value(load_one, codes):
    values = ",".join(f"'{number}'" for number in range(2_000))
    code = f"{HEAD}from typing import Literal\nX = Literal[{values}]\n@tool\nasync def run(a: X) -> X:\n    'x'\n"
    skill = load_one(files={"run.py": code})
    assert skill.tools[0].parameters["properties"] == {"a": {}}
    assert codes(skill.problems) == ["annotation.unknown"]


def test_annotations_after_one_that_is_too_large_are_read(load_one):
    bases = "".join(f"@dataclass\nclass C{n}(C{n - 1}):\n  a{n}: int\n" for n in range(1_000))
    code = f"{HEAD}from dataclasses import dataclass\n{bases}@tool\nasync def run(a: C999, b: list[int]):\n    'x'\n"
    properties = load_one(files={"run.py": code}).tools[0].parameters["properties"]
    assert properties == {"a": {}, "b": {"type": "array", "items": {"type": "integer"}}}


def test_script_blocks_of_all_files_are_limited_together(beside):
    block = "# /// script\n# dependencies = ['numpy']\n# x = '" + "a" * 5_000 + "'\n# ///\n"
    assert beside({f"m{number}.py": block for number in range(4)}) == ["script.large"]


def test_folder_with_too_many_empty_folders_does_not_load(skills, make_skill, load, codes):
    make_skill("good")
    folder = make_skill("wide")
    for number in range(50):
        (folder / str(number)).mkdir()
    loaded = load(skills, limits=Config(files=10))
    assert [skill.key for skill in loaded.skills] == ["good"]
    assert "limit.files" in codes(loaded.problems)


def test_hidden_files_count_as_entries(skills, make_skill, load, codes):
    make_skill("good")
    make_skill("hidden", {f"lib/.{number}": "" for number in range(50)})
    loaded = load(skills, limits=Config(files=10))
    assert [skill.key for skill in loaded.skills] == ["good"]
    assert codes(loaded.problems) == ["limit.files"]


def test_source_with_too_many_entries_is_reported(skills, make_skill, load, codes):
    make_skill("good")
    for number in range(50):
        (skills / f"{number}.txt").write_text("")
    assert codes(load(skills, limits=Config(files=10)).problems) == ["limit.files"]


def test_link_that_passes_a_thousand_folders_is_resolved_by_the_kernel(make_skill, load):
    folder = make_skill(files={"a.txt": "a"})
    (folder / "link").symlink_to("./" * 2_000 + "a.txt")
    assert load(folder).skills[0].files == ("SKILL.md", "a.txt", "link")


def test_links_in_circles_are_skipped(make_skill, load, codes):
    folder = make_skill()
    for one, other in (("a", "b"), ("b", "a"), ("c", "c"), ("d", "."), ("e", "..")):
        (folder / one).symlink_to(other)
    (skill,) = load(folder).skills
    assert skill.files == ("SKILL.md",)
    assert codes(skill.problems) == ["files.link"] * 5


def test_link_to_a_hidden_file_is_skipped(make_skill, load):
    folder = make_skill(files={".env": "KEY=secret"})
    (folder / "settings.txt").symlink_to(".env")
    assert load(folder).skills[0].files == ("SKILL.md",)


def test_number_of_links_is_limited(make_skill, load, codes):
    folder = make_skill()
    for number in range(120):
        (folder / f"l{number:03}").symlink_to("SKILL.md")
    (skill,) = load(folder).skills
    assert len(skill.files) == 101
    assert codes(skill.problems) == ["files.link"] * 20


def test_linked_files_count_in_the_size(make_skill, load, codes):
    folder = make_skill(files={"a.bin": "x" * 1_000})
    for number in range(5):
        (folder / f"l{number}").symlink_to("a.bin")
    assert codes(load(folder, limits=Config(size=4_000)).problems) == ["files.many"]


@pytest.mark.parametrize("name", ["SKILL.md", "run.py"])
@pytest.mark.parametrize("kind", ["link", "pipe", "device"])
def test_file_that_is_replaced_between_listing_and_reading_is_not_read(tmp_path, make_skill, load, name, kind):
    secret = tmp_path / "secret"
    secret.write_text("---\nname: stolen\n---\n# sideband\nfrom sideband.skill import http\n")
    folder = make_skill(files={"run.py": TOOL})

    def replace(event, arguments):
        nonlocal replace_now
        if replace_now and event == "open" and str(arguments[0]) == str(folder / name):
            replace_now = False
            (folder / name).unlink()
            if kind == "link":
                (folder / name).symlink_to(secret)
            elif kind == "pipe":
                os.mkfifo(folder / name)
            else:
                (folder / name).symlink_to("/dev/zero")

    replace_now = True
    sys.addaudithook(replace)
    loaded = load(folder)
    assert not replace_now
    found = [*loaded.problems, *(problem for skill in loaded.skills for problem in skill.problems)]
    assert "skill.files.changed" in [problem.code for problem in found]
    assert all("stolen" not in skill.name and skill.families == () for skill in loaded.skills)


@pytest.mark.parametrize("name", [os.fsdecode(b"a\xff"), "a\n", "a\u202e", "a\x1b"])
def test_folder_name_as_the_name_of_a_skill_is_one_printable_line(make_skill, load, name):
    (skill,) = load(make_skill(name, manifest="Text")).skills
    assert (skill.name, skill.key) == ("a", "a")


def children():
    """Return the child processes of this process."""
    found = set()
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the thread has ended
            found.update((task / "children").read_text().split())
    return found


@pytest.mark.anyio
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
async def test_cancelled_load_ends_the_parser(make_skill):
    folder = make_skill(files={f"m{number}.py": f"{ENDLESS}(" for number in range(20)})
    before = children()
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            limits = Config(seconds=600, total_seconds=600)
            tasks.start_soon(FolderLoader(limits).load, SkillSources(folders=(folder,)))
            # in a process group of its own, which an interrupt from a terminal does not reach
            while not any(os.getpgid(int(child)) == int(child) for child in children() - before):
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        while children() - before:
            await anyio.lowlevel.checkpoint()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
def test_loading_leaves_no_process(make_skill, load):
    before = children()
    load(make_skill(files={"run.py": TOOL}))
    assert not children() - before
