"""What the pages of the reference say holds where it is tried."""

import importlib
import re
import subprocess
import sys

import anyio
import pytest
from sideband import Host
from sideband.ops import Capability
from sideband.workers import _wire


@pytest.fixture
def capabilities(root, monkeypatch):
    monkeypatch.syspath_prepend(root / "docs")
    return importlib.import_module("_pages.capabilities")


def test_every_capability_that_is_shown_can_be_granted(capabilities):
    shown = [(one, family.scope) for family in capabilities.families() if family.scope
             for one in capabilities.examples_of(family.scope)]  # fmt: skip
    assert len(shown) > 5
    for text, scope in shown:
        assert Capability.parse(text).fit(scope).family == scope.family


def test_every_field_of_every_capability_has_a_meaning(page):
    rows = re.findall(
        r"^\| `(\w+)` \| (?:any value|`[^`]+`) \|(.*)\|$", page("docs/reference/capabilities.md").text, re.MULTILINE
    )
    assert len(rows) > 15
    assert [name for name, meaning in rows if not meaning.strip()] == []


def test_every_message_of_a_worker_that_is_shown_is_one(page):
    shown = page("docs/reference/wire.md").section("From the worker")
    messages = re.findall(r"^```json\n(.*?)\n```$", shown, re.MULTILINE)
    assert len(messages) == len(_wire._PARSERS) + 1
    for message in messages:
        _wire.parse(message.encode())


@pytest.fixture
def check(page, tmp_path):
    """Runs the program of the page on a ledger."""
    program = tmp_path / "check.py"
    program.write_text(page("docs/reference/ledger.md").example("python", "hashlib"))

    def run(file):
        return subprocess.run([sys.executable, program, file], capture_output=True, text=True, check=False)

    return run


def test_the_lines_of_the_page_are_a_chain(page, check, tmp_path):
    file = tmp_path / "shown.jsonl"
    file.write_text(page("docs/reference/ledger.md").example("json", "intent"))
    assert check(file).returncode == 0


def test_the_program_of_the_page_checks_a_ledger(check, tmp_path):
    async def write():
        async with Host(home=tmp_path / "home") as host:
            await host.op("crypto.hash", {"data": "x"})
            return host.ledger.folder

    folder = anyio.run(write)
    (file,) = folder.glob("*.jsonl")
    lines = file.read_bytes().splitlines(keepends=True)
    done = check(file)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() in lines[-1].decode()
    file.write_bytes(b"".join(lines).replace(b"crypto.hash", b"crypto.hasH", 1))
    assert "changed or out of place" in check(file).stderr


def test_what_an_op_can_do_besides_is_told(page):
    told = page("docs/reference/ops.md").text
    entry = told.partition("### crypto.hash\n")[2].partition("\n### ")[0]
    assert "- no: can be taken back (`undo`)" in entry
