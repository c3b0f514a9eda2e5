import anyio
import attrs
import pytest
from pydantic import BaseModel, Field
from sideband import skill
from sideband.ops import OpContext, OpFailed, OpFamily, Scope, op
from sideband_skills import FolderLoader

REQUESTING = "---\nname: demo\ndescription: x\nmetadata: {sideband.capabilities: 'http:host=api.test'}\n---\n"
HEAD = "import asyncio, time\nfrom sideband.skill import dispatch, http, sql, tool\n"


class GetParams(BaseModel):
    url: str
    headers: dict[str, str] = {}
    source: str = Field(default="", alias="from")


class QueryParams(BaseModel):
    sql: str


@attrs.frozen
class HttpScope(Scope, family="http"):
    host: str | None = None


@op("http.get", requires="http")
async def get(params: GetParams, ctx: OpContext) -> dict[str, str]:
    """Get it."""
    return {}


@op("sql.query", requires="sql")
async def query(params: QueryParams, ctx: OpContext) -> list[str]:
    """Query it."""
    return []


FAMILIES = (OpFamily(name="http", ops=(get,), scope=HttpScope), OpFamily(name="sql", ops=(query,)))


@pytest.fixture
def validate(make_skill):
    def run(code, *, families=(), manifest=REQUESTING, files=None):
        folder = make_skill(files={"run.py": code, **(files or {})}, manifest=manifest)

        async def check():
            return await FolderLoader().validate(folder, families=families)

        return anyio.run(check)

    return run


@pytest.fixture
def in_function(validate, codes):
    """Return a function that returns the problem codes of lines inside an async function."""

    def run(*lines, families=()):
        body = "".join(f"    {line}\n" for line in lines)
        return codes(validate(f"{HEAD}async def run(x):\n{body}", families=families))

    return run


def test_valid_skill_has_no_problems(in_function):
    assert in_function("return (await http.get(x, headers={}))['json']", families=FAMILIES) == []


@pytest.mark.parametrize(
    "line",
    [
        "http.get(x)",
        "return http.get(x)['json']",
        "return http.get(x).json",
        "return f'{http.get(x)}'",
        "return http.get(x) == 1",
        "dispatch('http.get', {})",
        "answer = http.get(x)",
    ],
)
def test_op_that_is_not_awaited_is_reported(in_function, line):
    assert in_function(line) == ["async.await"]


def test_coroutine_used_as_a_result_is_reported(in_function):
    assert in_function("answer = http.get(x)", "return answer['json']") == ["async.await"]


@pytest.mark.parametrize(
    "lines",
    [
        ["return await http.get(x)"],
        ["return await asyncio.gather(http.get(x), http.get(x))"],
        ["return await asyncio.gather(*[http.get(y) for y in x])"],
        ["task = asyncio.create_task(http.get(x))", "return await task"],
        ["answer = http.get(x)", "return await answer"],
        ["answers = [http.get(x)]", "return await asyncio.gather(*answers)"],
        ["return (await http.get(x))['json']"],
        ["return http.get(x)"],
    ],
)
def test_op_that_is_awaited_later_is_accepted(in_function, lines):
    assert in_function(*lines) == []


@pytest.mark.parametrize("line", ["time.sleep(1)", "[time.sleep(1) for _ in x]"])
def test_blocking_sleep_in_async_code_is_reported(in_function, line):
    assert in_function(line) == ["async.sleep"]


@pytest.mark.parametrize(
    ("statement", "hint"),
    [
        ("import requests", "`http`"),
        ("from httpx import AsyncClient", "`http`"),
        ("import urllib.request", "`http`"),
        ("from urllib import request", "`http`"),
        ("import http.client", "`http`"),
        ("import subprocess as sp", "`shell`"),
        ("from os import system", "`shell`"),
        ("import sqlite3", "`sql`"),
        ("import keyring", "`secrets`"),
        ("def f():\n    import socket", "`http`"),
        ("import multiprocessing.pool", "remove"),
    ],
)
def test_import_of_a_blocked_module_is_reported_with_an_alternative(validate, codes, statement, hint):
    (problem,) = validate(statement)
    assert problem.code == "skill.import.closed"
    assert hint in problem.hint


@pytest.mark.parametrize(
    "statement", ["import urllib.parse", "import json, os.path", "from . import helper", "import os"]
)
def test_import_of_a_supported_module_is_accepted(validate, statement):
    assert validate(statement) == ()


def test_import_of_the_skills_own_module_is_accepted(validate):
    assert validate("import helper\nimport lib.more", files={"helper.py": "", "lib/more.py": ""}) == ()


def test_import_of_a_module_beside_a_tool_is_accepted(validate):
    assert validate("x = 1", files={"scripts/helper.py": "", "scripts/tools.py": "import helper\n"}) == ()


def test_import_of_a_module_of_another_folder_is_reported(validate, codes):
    files = {"scripts/helper.py": "", "lib/other.py": "", "lib/more.py": "import other\n"}
    assert codes(validate("import helper", files=files)) == ["import.unknown", "import.unknown"]


def test_import_of_an_undeclared_package_is_reported(validate, codes):
    assert codes(validate("import numpy as np")) == ["import.unknown"]


@pytest.mark.parametrize("place", ["file", "other"])
def test_import_of_a_declared_dependency_is_accepted(validate, place):
    block = "# /// script\n# dependencies = ['numpy']\n# ///\n"
    files = {"other.py": block} if place == "other" else {}
    code = "import numpy as np" if place == "other" else f"{block}import numpy as np"
    assert validate(code, files=files) == ()


def test_unsupported_python_version_is_reported(validate, codes):
    found = validate("# /// script\n# requires-python = '<3'\n# ///\n")
    assert codes(found) == ["python.version"]
    assert "<3" in found[0].reason


def test_unknown_op_is_reported(validate):
    (problem,) = validate(f"{HEAD}async def f():\n    await http.gett('x')\n", families=FAMILIES)
    assert problem.code == "skill.sdk.op"
    assert "did you mean `get`" in problem.reason


def test_unknown_family_is_reported(validate):
    code = "from sideband.skill import htp\nasync def f():\n    await htp.get('x')\n"
    (problem,) = validate(code, families=FAMILIES)
    assert problem.code == "skill.sdk.family"
    assert "did you mean `http`" in problem.reason


def test_unknown_argument_is_reported(validate):
    (problem,) = validate(f"{HEAD}async def f():\n    await http.get('x', heders=[])\n", families=FAMILIES)
    assert problem.code == "skill.sdk.argument"
    assert "did you mean `headers`" in problem.reason


@pytest.mark.parametrize("argument", ["from_='x'", "**more", "headers={}"])
def test_known_argument_is_accepted(in_function, argument):
    assert in_function(f"return await http.get(x, {argument})", families=FAMILIES) == []


SDK = """
from helpers import connect, other
from sideband.skill import dispatch

__all__ = ["any_options", "connect", "get", "rows", "session"]

async def rows(statement, *, db):
    ...

async def any_options(**options):
    ...

async def get(url, *, headers=None, timeout=1):
    ...

class session:
    def __init__(self, base_url):
        ...

def hidden():
    ...
"""


@pytest.fixture
def with_sdk(tmp_path):
    """Return a family with functions of its own, one of which replaces that of an op."""
    (tmp_path / "_sdk.py").write_text(SDK)
    return (OpFamily(name="http", ops=(get,), scope=HttpScope, sdk=tmp_path / "_sdk.py"),)


def test_functions_of_the_sdk_module_of_a_family_are_known(with_sdk, in_function):
    lines = [
        "await http.rows(x, db=x)",
        "await http.any_options(a=1)",
        "await http.get(x, timeout=2)",
        "async with http.session(base_url=x): pass",
        "await http.connect(anything=x)",
        "await dispatch('http.get', {})",
    ]
    assert in_function(*lines, families=with_sdk) == []


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("await http.nope()", "unknown op `http.nope`"),
        ("await http.row(x)", "unknown op `http.row` (did you mean `rows`?)"),
        ("await http.hidden()", "unknown op `http.hidden`"),
        ("await http.other()", "unknown op `http.other`"),
        ("await dispatch('http.rows', {})", "unknown op `http.rows`"),
        ("await http.rows(x, database=x)", "unknown argument `database` of `http.rows`"),
        ("await http.get(x, source=x)", "unknown argument `source` of `http.get`"),
    ],
)
def test_unknown_function_or_argument_of_a_family_with_an_sdk_module_is_reported(with_sdk, validate, line, reason):
    (problem,) = validate(f"{HEAD}async def run(x):\n    {line}\n", families=with_sdk)
    assert reason in problem.reason


def test_family_with_an_unreadable_sdk_module_is_not_checked(tmp_path, in_function):
    families = (OpFamily(name="http", ops=(get,), scope=HttpScope, sdk=tmp_path / "_sdk.py"),)
    assert in_function("await http.nope()", families=families) == []


@pytest.mark.parametrize(("name", "hint"), [("requests>=2", "use `http`"), ("psycopg-binary", "use `sql`")])
def test_dependency_that_does_not_work_in_a_worker_is_reported(validate, name, hint):
    (problem,) = validate(f'# /// script\n# dependencies = ["numpy", "{name}"]\n# ///\n')
    assert problem.code == "skill.requirement.closed"
    assert hint in problem.hint


@pytest.mark.parametrize("line", ["await sql.query('x')", "await dispatch('sql.query', {})"])
def test_missing_capability_is_reported(validate, line):
    (problem,) = validate(f"{HEAD}async def f():\n    {line}\n", families=FAMILIES)
    assert problem.code == "skill.capability.missing"
    assert "`sql.query`" in problem.reason


def test_ops_are_not_checked_without_families(in_function):
    assert in_function("return await http.gett(x)") == []


def test_problems_of_loading_precede_those_of_lints(validate, codes):
    found = validate("import requests", manifest="# Text\n")
    assert codes(found) == ["frontmatter.missing", "import.closed"]


def test_folder_without_a_manifest_is_a_problem(make_skill):
    (problem,) = anyio.run(FolderLoader().validate, make_skill(manifest=None))
    assert (problem.code, problem.fatal) == ("skill.manifest.missing", True)


def test_missing_folder_is_a_problem(tmp_path):
    (problem,) = anyio.run(FolderLoader().validate, tmp_path / "nowhere")
    assert problem.code == "skill.source.missing"


@pytest.mark.parametrize(
    ("capability", "parts"),
    [
        pytest.param("htpp:host=api.test", ("`htpp`", "did you mean `http`?"), id="family"),
        pytest.param("http:hsot=api.test", ("`hsot`",), id="field"),
    ],
)
def test_unknown_capability_is_reported(validate, capability, parts):
    manifest = REQUESTING.replace("http:host=api.test", f"http:host=api.test {capability}")
    (problem,) = validate(f"{HEAD}async def run(x):\n    return x\n", families=FAMILIES, manifest=manifest)
    assert problem.code == "skill.capability.unknown"
    assert [part for part in parts if part not in problem.reason] == []


def test_names_of_the_sdk_are_not_families(in_function):
    code = "from sideband.skill import {}; {}"
    lines = [code.format(name, name) for name in skill.__all__]
    assert in_function(*lines, families=FAMILIES) == []


class GetFailed(OpFailed):
    code = "http.failed"


@op("http.back", internal=True)
async def back(params: GetParams, ctx: OpContext) -> None:
    """Go back."""


TYPED = (OpFamily(name="http", ops=(get, back), scope=HttpScope, errors=[GetFailed]),)


def test_errors_and_options_of_a_family_are_known(in_function):
    assert in_function("http.GetFailed, http.GetOptions", families=TYPED) == []
    assert in_function("http.GetFaild", families=TYPED) == ["sdk.op"]


@pytest.mark.parametrize("use", ["await http.back(url='x')", "await dispatch('http.back', {})"])
def test_internal_op_is_unknown(in_function, use):
    assert in_function(use, families=TYPED) == ["sdk.op"]


def test_entries_of_allowed_tools_that_mean_no_tool_are_reported(tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    listed = "allowed-tools: Read Bash(git:*) NotebookEdit"
    (folder / "SKILL.md").write_text(f"---\nname: notes\ndescription: Keeps notes.\n{listed}\n---\n")
    problems = anyio.run(FolderLoader().validate, folder)
    assert [one.reason.partition(" ")[0] for one in problems] == ["'NotebookEdit'"]
