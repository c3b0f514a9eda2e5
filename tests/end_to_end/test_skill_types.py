"""A skill that uses each op family, checked with the stubs of the installed families."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "plugins" / "skills" / "README.md"

# A type checker reports exactly the marked lines.
SKILL = '''
from __future__ import annotations

from sideband.skill import OpDenied, blobs, crypto, files, http, llm, plist, progress, secrets, shell, sql, tool


@tool
async def fetch(repo: str) -> int:
    """Stars of a repository."""
    answer = await http.get(f"https://api.github.com/repos/{repo}", auth="github", headers={"accept": "text/html"})
    stars: int = answer["json"]["stargazers_count"]
    status: int = answer["status"]
    answer["sttus"]  # error
    await http.get("https://example.org", heders={})  # error
    await http.get("https://example.org", timeout="soon")  # error
    await http.gett("https://example.org")  # error
    async with http.session(base_url="https://example.org", retry=3) as api:
        page = await api.get("/items", params={"page": 1})
        body: str | None = page["body"]
        await api.get("/items", parms={})  # error
        await api.request("PUT", "/items", json=[1])
    async with http.session(base="https://example.org"):  # error
        pass
    blob = await http.fetch_blob("https://example.org/a.zip")
    await http.download("https://example.org/a.zip", "a.zip", overwrite=True)
    try:
        await http.post("https://example.org", json={"a": 1})
    except http.HttpTimeout as error:
        again: bool = error.retryable
    except (http.RedirectRefused, http.AddressDenied, OpDenied, ConnectionError):
        pass
    except http.HttpTimout:  # error
        pass
    return stars


@tool
async def read(path: str) -> str:
    """Read."""
    text: str = await files.read_text(path)
    found = await files.list(path=path)
    size: int = found["entries"][0]["size"]
    found["entries"][0]["sze"]  # error
    written = await files.write_json(path, {"a": 1}, expected=None)
    written["digst"]  # error
    await files.write(path, "text", overwrit=True)  # error
    await files.restore(path)  # error
    try:
        part = await files.read(path, kind="bytes", length=10)
    except files.FileMissing:
        return ""
    except files.FileMising:  # error
        pass
    kept = await blobs.put(content=text)
    info = await blobs.get(kept["sha256"], kind="text")
    try:
        await blobs.stat("0" * 64)
    except blobs.BlobMissing as missing:
        return missing.hint
    await blobs.pt(text)  # error
    return text


@tool
async def store(db: str) -> list[dict[str, object]]:
    """Store."""
    await sql.execute("CREATE TABLE t(n)", db=db)
    changed = await sql.executemany("INSERT INTO t VALUES (?)", rows=[[1], [2]], db=db)
    rows = [dict(row) async for row in sql.rows("SELECT n FROM t", db=db, batch=10)]
    found = await sql.query("SELECT n FROM t WHERE n = :n", db=db, params={"n": 1})
    found["rws"]  # error
    await sql.query("SELECT 1", dbb=db)  # error
    await sql.revert(db, "0" * 64)  # error
    try:
        await sql.query("SELECT", db=db)
    except (sql.SqlSyntax, sql.SqlMissing, TimeoutError):
        pass
    return rows


@tool
async def talk(model: str) -> str:
    """Talk."""
    first = await llm.generate(model, [{"role": "user", "content": "hello"}], max_tokens=10)
    await llm.generate(model, [{"role": "user", "content": "hello"}, first, {"role": "user", "content": "more"}])
    await llm.generate(model, [{"role": "usr", "content": "hello"}])  # error
    await llm.ask(model, "hello", temprature=1)  # error
    used: int = first["usage"]["input"]
    first["usge"]  # error
    name: str = (await llm.models())["models"][0]["name"]
    return await llm.ask(model, "hello", temperature=0)


@tool
async def run() -> int:
    """Run."""
    done = await shell.run("git", "status", "--short", cwd="/srv")
    code: int = done["exit_code"]
    done["exitcode"]  # error
    await shell.run("git", cdw="/srv")  # error
    names = [one["name"] for one in (await secrets.list())["items"]]
    try:
        value: str = await secrets.read("github")
    except secrets.SecretMissing:
        value = ""
    await secrets.read(nme="github")  # error
    digest = await crypto.hash(b"data", algorithm="sha512")
    await crypto.hash(b"data", algorithm="rot13")  # error
    parsed = await plist.parse(b"<plist/>")
    await plist.parse(data=b"<plist/>", extrct=[])  # error
    await progress.report(current=1, total=2, message="half")
    await progress.report(currnt=1)  # error
    return code
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("skill")
    command = [sys.executable, "-m", "sideband", "sdk", "stubs", str(folder)]
    subprocess.run(command, check=True, capture_output=True, env={"SIDEBAND_HOME": str(folder / "home"), "PATH": ""})
    (folder / "tools.py").write_text(SKILL)
    page = README.read_text().partition("## Errors and types")[2]
    (folder / "readme.py").write_text(page.partition("```python")[2].partition("```")[0])
    return folder


def test_type_checker_reports_exactly_the_wrong_uses_of_the_families(folder):
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--cache-dir",
        folder / "cache",
        "tools.py",
        "readme.py",
        "sideband_sdk",
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    reported = set(re.findall(r"^(\S+?):(\d+): error: ", done.stdout, re.MULTILINE))
    lines = enumerate(SKILL.splitlines(), 1)
    assert reported == {("tools.py", str(number)) for number, line in lines if "# error" in line}, done.stdout


def test_each_function_of_the_families_has_complete_types(folder):
    """Editors show what a stub says, so none of its parts may be unknown without need."""
    for stub in (folder / "sideband_sdk").glob("*.pyi"):
        for node in ast.walk(ast.parse(stub.read_text())):
            if isinstance(node, ast.AsyncFunctionDef):
                arguments = [*node.args.args, *node.args.kwonlyargs]
                assert node.returns is not None, (stub.name, node.name)
                assert all(argument.annotation is not None for argument in arguments), (stub.name, node.name)
                assert ast.get_docstring(node), (stub.name, node.name)
