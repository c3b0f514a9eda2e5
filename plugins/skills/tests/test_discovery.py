import textwrap

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

TOOL = """
from sideband.skill import tool
@tool
async def {name}():
    '''Do it.'''
"""


@pytest.mark.parametrize(
    "code",
    [
        "from sideband.skill import tool\n@tool\n",
        "from sideband.skill import tool as t\n@t\n",
        "from sideband.skill import tool\n@tool()\n",
        "from sideband.skill import tool\n@tool(timeout=None)\n",
        "import sideband.skill as s\n@s.tool\n",
        "import sideband.skill\n@sideband.skill.tool\n",
        "from sideband import skill\n@skill.tool\n",
        "from sideband import skill as s\n@s.tool()\n",
        "from sideband.skill import *\nfrom sideband.skill import tool\nimport functools\n@tool\n@functools.cache\n",
    ],
)
def test_tool_is_found_with_any_import_of_the_decorator(load_one, code):
    skill = load_one(files={"run.py": code + "async def run():\n    '''Do it.'''\n"})
    assert [(tool.full_name, tool.model_name, tool.module) for tool in skill.tools] == [
        ("demo.run", "demo__run", "run.py")
    ]
    assert skill.problems == ()


@pytest.mark.parametrize(
    "code",
    ["async def run(): ...", "from other import tool\n@tool\nasync def run(): ...", "@tool\nasync def run(): ..."],
)
def test_function_without_the_decorator_is_not_a_tool(load_one, code):
    skill = load_one(files={"run.py": code})
    assert (skill.tools, skill.problems) == ((), ())


def test_tools_are_found_in_the_folder_and_in_scripts_only(load_one):
    files = {"b.py": TOOL.format(name="b"), "scripts/a.py": TOOL.format(name="a"), "lib/c.py": TOOL.format(name="c")}
    assert [(tool.name, tool.module) for tool in load_one(files=files).tools] == [("a", "scripts/a.py"), ("b", "b.py")]


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        ("def run(): ...", "not `async def`"),
        ("async def _run(): ...", "begins with `_`"),
        ("async def getIt(): ...", "lower-case"),
        ("async def get__it(): ...", "lower-case"),
        ("async def run(a, /): ...", "parameters a are positional-only"),
        ("async def run():\n    yield 1", "generator"),
        (f"async def {'a' * 60}(): ...", "more than 64 characters"),
    ],
)
def test_function_that_cannot_be_a_tool_is_reported(load_one, function, reason):
    skill = load_one(files={"run.py": f"from sideband.skill import tool\n@tool\n{function}\n"})
    (problem,) = skill.problems
    assert skill.tools == ()
    assert (problem.code, problem.fatal) == ("skill.tool.refused", True)
    assert reason in problem.reason
    assert problem.source.endswith("/run.py")


def test_generator_inside_a_tool_is_allowed(load_one):
    code = TOOL.format(name="run") + "    def inner():\n        yield 1\n    return list(inner())\n"
    assert [tool.name for tool in load_one(files={"run.py": code}).tools] == ["run"]


def test_tool_below_the_top_level_is_reported(load_one):
    code = "from sideband.skill import tool\nclass A:\n    @tool\n    async def run(self): ...\n"
    (problem,) = load_one(files={"run.py": code}).problems
    assert "inside a class" in problem.reason


def test_duplicate_tool_is_reported_with_both_files(load_one):
    skill = load_one(
        files={name: TOOL.format(name="run") for name in ("a.py", "b.py")} | {"c.py": TOOL.format(name="c")}
    )
    assert [tool.name for tool in skill.tools] == ["c"]
    (problem,) = skill.problems
    assert (problem.code, problem.fatal) == ("skill.tool.duplicate", True)
    assert "`a.py`" in problem.reason
    assert "`b.py`" in problem.reason


@pytest.mark.parametrize(
    "code",
    ["def broken(", "x = '\x00'", "(" * 5_000, "x = " + "-" * 50_000 + "1", "print 'two'", "x" * 100 + "=" * 9 + "€"],
)
def test_syntax_error_in_one_file_does_not_stop_the_others_from_loading(load_one, codes, code):
    skill = load_one(files={"broken.py": f"# sideband\n{code}", "run.py": TOOL.format(name="run")})
    assert [tool.name for tool in skill.tools] == ["run"]
    assert all(problem.source.endswith("broken.py") for problem in skill.problems)
    assert len(skill.problems) == 1 or codes(skill.problems)[0] == "encoding"


def test_invalid_escape_sequence_causes_no_warning(load_one):
    assert load_one(files={"run.py": "from sideband.skill import tool\nx = '\\d'\n"}).problems == ()


@pytest.mark.parametrize(("mark", "seconds"), [("@tool(timeout=5)", 5.0), ("@tool(timeout=0.5)", 0.5), ("@tool", None)])
def test_timeout_is_read_from_the_decorator(load_one, mark, seconds):
    code = f"from sideband.skill import tool\n{mark}\nasync def run():\n    'Do it.'\n"
    assert load_one(files={"run.py": code}).tools[0].timeout == seconds


@pytest.mark.parametrize("mark", ["@tool(timeout=-1)", "@tool(timeout=LIMIT)", "@tool(timeout='5')", "@tool(timeot=5)"])
def test_invalid_decorator_argument_is_a_warning(load_one, mark):
    code = f"from sideband.skill import tool\n{mark}\nasync def run():\n    'Do it.'\n"
    skill = load_one(files={"run.py": code})
    assert skill.tools[0].timeout is None
    (problem,) = skill.problems
    assert not problem.fatal


def test_agentos_tool_is_listed_with_a_warning(load_one, codes):
    code = """
        from agentos import connection, http, returns, timeout

        @returns("story[]")
        @timeout(10)
        @connection("public")
        async def stories(limit: int = 3, **params):
            '''Top stories.'''

        @returns("story")
        def old(**params): ...
    """
    skill = load_one(files={"hn.py": code})
    (tool,) = skill.tools
    assert tool.timeout == 10
    assert list(tool.parameters["properties"]) == ["limit"]
    assert codes(skill.problems) == ["tool.refused", "agentos.import"]


@pytest.mark.parametrize(
    ("code", "families"),
    [
        ("from sideband.skill import tool, http, sql as db, OpError", ("http", "sql")),
        ("import sideband.skill as s\ns.http.get\ns.tool", ("http",)),
        ("import sideband.skill\nsideband.skill.weather.now()", ("weather",)),
        ("from sideband.skill import dispatch\ndispatch('sql.query', {})", ("sql",)),
        ("async def f():\n    from sideband.skill import shell", ("shell",)),
        ("", ()),
        ("from sideband.skill import *", None),
        ("import sideband.skill as s\nx = s", None),
        ("from sideband.skill import dispatch\ndispatch(name, {})", None),
        ("from sideband.skill import dispatch\nsend = dispatch", None),
        ("import importlib\nimportlib.import_module('sideband.skill')", None),
        ("import sideband_sdk.http", None),
        ("from sideband.skill import __init__, Weather", ()),
        ("from sideband.skill import dispatch\ndispatch('../../x.y', {})", ()),
    ],
)
def test_used_op_families_are_found(load_one, code, families):
    assert load_one(files={"lib/helper.py": code}).families == families


def test_op_families_of_all_files_are_merged(load_one):
    files = {"a.py": "from sideband.skill import http", "lib/b.py": "from sideband.skill import sql"}
    assert load_one(files=files).families == ("http", "sql")


def test_loading_runs_no_code_of_the_skill(tmp_path, load_one):
    canary = tmp_path / "canary"
    touch = f"open({str(canary)!r}, 'w')"
    code = f"""
        {touch}
        from sideband.skill import tool
        from typing import Annotated, Literal
        @tool(timeout={touch})
        async def run(a: {touch} = {touch}, b: Literal[{touch}] = 1, c: "{touch}" = 2, d: Annotated[int, {touch}] = 3):
            '''Do it.'''
        class E(__import__("enum").Enum):
            A = {touch}
    """
    skill = load_one(files={"run.py": code, "conftest.py": touch, "__init__.py": touch, "SKILL.py": touch})
    assert [tool.name for tool in skill.tools] == ["run"]
    with pytest.raises(ValueError, match="unknown argument"):
        skill.tools[0].validate({"z": 1})
    assert not canary.exists()


PIECES = st.sampled_from(
    [
        "@tool\n",
        "@tool(timeout=1)\n",
        "async def run(",
        "def f(",
        "a: int",
        ", ",
        "*",
        "/",
        "=1",
        "):\n",
        "    pass\n",
        "b",
    ]
)


@given(st.lists(PIECES, max_size=10).map("".join) | st.text(max_size=60))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
def test_loading_never_raises(load_one, source):
    load_one(files={"run.py": textwrap.dedent("from sideband.skill import tool\n") + source.replace("\r", "")})
