"""The examples and claims of the reference pages are correct."""

import re
import subprocess
import sys

import anyio
import pytest
from sideband import Host
from sideband.ops import Capability
from sideband.workers import _wire


@pytest.fixture
def capabilities(import_page):
    return import_page("_pages.capabilities")


def test_example_capabilities_can_be_granted(capabilities):
    shown = [(one, family.scope) for family in capabilities.families() if family.scope
             for one in capabilities.examples_of(family.scope)]  # fmt: skip
    assert len(shown) > 5
    for text, scope in shown:
        assert Capability.parse(text).fit(scope).family == scope.family


def test_capability_fields_have_descriptions(page):
    rows = re.findall(
        r"^\| `(\w+)` \| (?:any value|`[^`]+`) \|(.*)\|$", page("docs/reference/capabilities.md").text, re.MULTILINE
    )
    assert len(rows) > 15
    assert [name for name, meaning in rows if not meaning.strip()] == []


def test_example_worker_messages_are_valid(page):
    shown = page("docs/reference/wire.md").section("From the worker")
    messages = re.findall(r"^```json\n(.*?)\n```$", shown, re.MULTILINE)
    assert len(messages) == len(_wire._PARSERS) + 1
    for message in messages:
        _wire.parse(message.encode())


@pytest.fixture
def check(page, tmp_path):
    """Run the example program of the page on a ledger file."""
    program = tmp_path / "check.py"
    program.write_text(page("docs/reference/ledger.md").example("python", "hashlib"))

    def run(file):
        return subprocess.run([sys.executable, program, file], capture_output=True, text=True, check=False)

    return run


def test_example_ledger_lines_form_a_chain(page, check, tmp_path):
    file = tmp_path / "shown.jsonl"
    file.write_text(page("docs/reference/ledger.md").example("json", "intent"))
    assert check(file).returncode == 0


def test_example_program_verifies_a_ledger(check, tmp_path):
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
    assert "AssertionError" in check(file).stderr


def test_ops_page_lists_missing_abilities(import_page):
    text = "\n".join(import_page("_pages.ops").ops_page())
    entry = text.partition("### crypto.hash\n")[2].partition("\n### ")[0]
    assert "Undo: no" in entry


def test_descriptions_in_tables_are_capitalized_without_full_stop(import_page):
    rows = [["a", "the size."], ["a", "`a` is a size"], ["kind.name", "kind.name = a size"], ["a", "one. Or two."]]
    *_, first, second, third, fourth = import_page("_pages.tables").table(["key", "meaning"], rows)
    assert first == "| a | The size |"
    assert second == "| a | `a` is a size |"
    assert third == "| kind.name | kind.name = a size |"
    assert fourth == "| a | One. Or two. |"
