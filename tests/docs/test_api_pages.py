"""The reference of the Python API is complete: each public name, field and method is described."""

import importlib
import re

import pytest

# The only content of a part of a message or of an event says what it is.
PLAIN = {"text"}
ROW = re.compile(r"^\| `(\w+)` \| `(.+?)` \|.*\| (.*?) ?\|$", re.MULTILINE)


@pytest.fixture
def api(import_page):
    return import_page("_pages.api")


@pytest.fixture
def pages(api):
    """The text of each page by its module."""
    return {module: "\n".join(api.API_PAGES[api._file(module)]()) for module in api.MODULES}


def section(page, heading):
    return page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def test_public_names_are_described_or_linked(pages):
    for module, page in pages.items():
        for name in set(importlib.import_module(module).__all__) - {"__version__"}:
            assert f"\n## {name}\n" in page or f"- [`{name}`](" in page, f"{module}.{name}"


def test_described_names_have_a_description(pages):
    for module, page in pages.items():
        for section in page.split("\n## ")[1:]:
            name, *lines = re.sub(r"```.*?```", "", section, flags=re.DOTALL).splitlines()
            texts = [line for line in lines if line and not line.startswith(("|", "`from ", "#", "A subclass of"))]
            assert texts or name == "Also exported", f"{module}.{name}"


def test_described_names_can_be_imported_as_shown(pages):
    shown = [line for page in pages.values() for line in re.findall(r"^`(from sideband.*)`$", page, re.MULTILINE)]
    assert len(shown) > 250
    for line in shown:
        exec(line, {})


def test_fields_have_a_meaning(pages):
    for module, page in pages.items():
        for name, kind, meaning in ROW.findall(page):
            assert meaning or name in PLAIN or kind.startswith("Literal"), f"{module}: {name}"


@pytest.mark.parametrize(
    ("module", "name", "words"),
    [
        ("sideband.hooks", "OpCall", "`effect` `op` `params` `level` `origin` `grant` `key` `preview`"),
        ("sideband.hooks", "ToolCall", "`id` `tool` `arguments` `level` `read_only`"),
        ("sideband.hooks", "ToolResult", "`content` `is_error`"),
        ("sideband.hooks", "Input", "`text` `source`"),
        ("sideband.messages", "ImagePart", "`media_type` `data`"),
        ("sideband", "OpContext", "OpContext.emit OpContext.on_call_end `home` OpContext.dispatch capabilities:"),
        ("sideband.approvals", "Approver", "Callable[[ApprovalRequest], Awaitable[Approval]]"),
        (
            "sideband.approvals",
            "ApprovalRequest",
            "`id` `question` `effect` `preview` `level` `risk` `origin`",
        ),
        ("sideband.approvals", "Approval", "`verdict` `scope` `reason` `by`"),
        ("sideband", "Host", "Host.plan_undo Host.undo Path|None=None"),
    ],
)
def test_page_describes_what_authors_look_for(pages, module, name, words):
    text = section(pages[module], name).replace(" ", "")
    for word in words.split():
        assert word in text, word
