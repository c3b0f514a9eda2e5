"""Hints for skills that use what an isolated worker does not have, and results that do not match their annotation."""

import pytest
from sideband import CallRequest, Host
from sideband.workers import SkillFailed, SkillRefused

pytestmark = pytest.mark.anyio

CODE = """
import os, socket, sqlite3, subprocess
from sideband.skill import crypto, tool

@tool
async def ask() -> str:
    return input("name? ")

@tool
async def environment() -> str:
    return os.environ["HOME"]

@tool
async def write() -> None:
    with open("out.txt", "w"):
        pass

@tool
async def write_elsewhere() -> None:
    with open("/tmp/out.txt", "w"):
        pass

@tool
async def make_folder() -> None:
    os.makedirs("/tmp/folder")

@tool
async def read() -> str:
    with open("/home/notes.txt") as file:
        return file.read()

@tool
async def fetch() -> None:
    socket.create_connection(("192.0.2.1", 80), 5)

@tool
async def look_up() -> None:
    socket.getaddrinfo("example.org", 80)

@tool
async def start() -> None:
    subprocess.run(["ls"])

@tool
async def open_database() -> None:
    sqlite3.connect("/tmp/notes.db").execute("CREATE TABLE notes (text)")

@tool
async def use_requests() -> None:
    import requests

@tool
async def use_unknown() -> None:
    import no_such_package

@tool
async def large() -> str:
    return "x" * (17 << 20)

@tool
async def number() -> int:
    await crypto.random(length=1)
    return "five"
"""

HINTS = {
    "ask": "make the answer a parameter of the tool",
    "environment": "make the value a parameter of the tool, or use `secrets.read`",
    "write": "use `files.write`, as in `from sideband.skill import files`",
    "write_elsewhere": "use `files.write`",
    "make_folder": "use `files.write`",
    "read": "use `files.read`",
    "fetch": "use `http.get`",
    "look_up": "use `http.get`",
    "start": "use `shell.run`",
    "open_database": "use `sql.query`",
    "use_requests": "use `http.get`",
    "use_unknown": "`sideband skills install guest`",
    "large": "return a part or a summary, or use `files.write`",
}
WITHOUT_FAMILIES = {
    "environment": "a worker has no environment variables; make the value a parameter of the tool",
    "write": "return the content; a worker cannot write files",
    "fetch": "pass the data as an argument; a worker has no network",
    "large": "a result has at most 16 MiB and 250,000 values; return a part or a summary",
}


@pytest.fixture
def make_host(tmp_path, make_skill):
    folder = make_skill("guest", CODE)
    return lambda **policy: Host(home=tmp_path / "home", skill_dirs=[folder], settings={"policy": policy})


async def find_hints(host, tools):
    found = {}
    for tool in tools:
        with pytest.raises((SkillFailed, SkillRefused)) as caught:
            await host.run(CallRequest(f"guest.{tool}", grants=()))
        found[tool] = caught.value.hint
    return found


async def test_hint_names_the_op_to_use_instead(make_host):
    async with make_host() as host:
        found = await find_hints(host, HINTS)
    assert {tool: hint for tool, hint in found.items() if HINTS[tool] not in hint} == {}


async def test_hint_names_no_op_that_is_not_installed(make_host):
    denied = {f"op.{name}": "not here" for name in ("files", "http", "secrets")}
    async with make_host(deny=denied) as host:
        assert await find_hints(host, WITHOUT_FAMILIES) == WITHOUT_FAMILIES


async def test_result_that_does_not_match_its_annotation_is_refused(make_host):
    async with make_host() as host:
        with pytest.raises(
            SkillRefused, match=r"guest\.number: the result .*: expected an integer, got text"
        ) as caught:
            await host.run(CallRequest("guest.number", grants=("crypto",)))
    assert "return annotation" in caught.value.hint
