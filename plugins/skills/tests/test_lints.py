import anyio
import attrs
import pytest
from pydantic import BaseModel, Field
from sideband.ops import OpContext, OpFamily, Scope, op
from sideband_skills import FolderLoader

ASKING = "---\nname: demo\ndescription: x\nmetadata: {sideband.capabilities: 'http:host=api.test'}\n---\n"
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
    """Ask it."""
    return []


FAMILIES = (OpFamily(name="http", ops=(get,), scope=HttpScope), OpFamily(name="sql", ops=(query,)))


@pytest.fixture
def validate(make_skill):
    def run(code, *, families=(), manifest=ASKING, files=None):
        folder = make_skill(files={"run.py": code, **(files or {})}, manifest=manifest)

        async def check():
            return await FolderLoader().validate(folder, families=families)

        return anyio.run(check)

    return run


@pytest.fixture
def in_function(validate, codes):
    """The codes for a few lines inside an async function."""

    def run(*lines, families=()):
        body = "".join(f"    {line}\n" for line in lines)
        return codes(validate(f"{HEAD}async def run(x):\n{body}", families=families))

    return run


def test_a_good_skill_has_no_problems(in_function):
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
def test_an_op_that_is_not_awaited_is_found(in_function, line):
    assert in_function(line) == ["async.await"]


def test_an_answer_that_is_used_without_being_awaited_is_found(in_function):
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
def test_an_op_that_is_awaited_somewhere_is_fine(in_function, lines):
    assert in_function(*lines) == []


@pytest.mark.parametrize("line", ["time.sleep(1)", "[time.sleep(1) for _ in x]"])
def test_sleeping_in_async_code_is_found(in_function, line):
    assert in_function(line) == ["async.sleep"]


@pytest.mark.parametrize(
    ("statement", "instead"),
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
        ("import multiprocessing.pool", "no way"),
    ],
)
def test_a_module_that_cannot_work_is_found_with_what_to_use_instead(validate, codes, statement, instead):
    (problem,) = validate(statement)
    assert problem.code == "skill.import.closed"
    assert instead in problem.hint


@pytest.mark.parametrize(
    "statement", ["import urllib.parse", "import json, os.path", "from . import helper", "import os"]
)
def test_a_module_that_works_is_fine(validate, statement):
    assert validate(statement) == ()


def test_a_module_of_the_skill_itself_is_fine(validate):
    assert validate("import helper\nimport lib.more", files={"helper.py": "", "lib/more.py": ""}) == ()


def test_a_module_that_no_worker_has_is_found(validate, codes):
    assert codes(validate("import numpy as np")) == ["import.unknown"]


@pytest.mark.parametrize("place", ["file", "other"])
def test_a_declared_dependency_is_fine(validate, place):
    block = "# /// script\n# dependencies = ['numpy']\n# ///\n"
    files = {"other.py": block} if place == "other" else {}
    code = "import numpy as np" if place == "other" else f"{block}import numpy as np"
    assert validate(code, files=files) == ()


def test_a_version_of_python_that_is_not_this_one_is_found(validate, codes):
    found = validate("# /// script\n# requires-python = '<3'\n# ///\n")
    assert codes(found) == ["python.version"]
    assert "<3" in found[0].reason


def test_an_op_that_does_not_exist_is_found(validate):
    (problem,) = validate(f"{HEAD}async def f():\n    await http.gett('x')\n", families=FAMILIES)
    assert problem.code == "skill.sdk.op"
    assert "did you mean `get`" in problem.reason


def test_a_family_that_does_not_exist_is_found(validate):
    code = "from sideband.skill import htp\nasync def f():\n    await htp.get('x')\n"
    (problem,) = validate(code, families=FAMILIES)
    assert problem.code == "skill.sdk.family"
    assert "did you mean `http`" in problem.reason


def test_an_argument_that_does_not_exist_is_found(validate):
    (problem,) = validate(f"{HEAD}async def f():\n    await http.get('x', heders=[])\n", families=FAMILIES)
    assert problem.code == "skill.sdk.argument"
    assert "did you mean `headers`" in problem.reason


@pytest.mark.parametrize("argument", ["from_='x'", "**more", "headers={}"])
def test_an_argument_that_exists_is_fine(in_function, argument):
    assert in_function(f"return await http.get(x, {argument})", families=FAMILIES) == []


def test_conveniences_of_a_family_are_not_called_unknown(tmp_path, in_function):
    families = (OpFamily(name="http", ops=(get,), scope=HttpScope, sdk=tmp_path / "_sdk.py"),)
    assert in_function("return await http.pages(x)", families=families) == []


@pytest.mark.parametrize("line", ["await sql.query('x')", "await dispatch('sql.query', {})"])
def test_a_capability_that_the_code_needs_and_does_not_ask_for_is_found(validate, line):
    (problem,) = validate(f"{HEAD}async def f():\n    {line}\n", families=FAMILIES)
    assert problem.code == "skill.capability.missing"
    assert "`sql.query`" in problem.reason


def test_without_families_ops_are_not_judged(in_function):
    assert in_function("return await http.gett(x)") == []


def test_what_loading_says_comes_first(validate, codes):
    found = validate("import requests", manifest="# Text\n")
    assert codes(found) == ["frontmatter.missing", "import.closed"]


def test_a_folder_that_is_no_skill_is_said_to_be_none(make_skill):
    (problem,) = anyio.run(FolderLoader().validate, make_skill(manifest=None))
    assert (problem.code, problem.fatal) == ("skill.manifest.missing", True)


def test_a_folder_that_does_not_exist_is_said_not_to(tmp_path):
    (problem,) = anyio.run(FolderLoader().validate, tmp_path / "nowhere")
    assert problem.code == "skill.source.missing"


@pytest.mark.parametrize(
    ("capability", "told"),
    [("htpp:host=api.test", "no family `htpp` (did you mean `http`?)"), ("http:hsot=api.test", "unknown field `hsot`")],
)
def test_a_capability_that_no_call_would_be_granted_is_found(validate, capability, told):
    manifest = ASKING.replace("http:host=api.test", f"http:host=api.test {capability}")
    (problem,) = validate(f"{HEAD}async def run(x):\n    return x\n", families=FAMILIES, manifest=manifest)
    assert problem.code == "skill.capability.unknown"
    assert told in problem.reason
