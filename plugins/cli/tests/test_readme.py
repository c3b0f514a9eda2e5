"""The README's tables of ``sideband run --json`` events and of folders match the code."""

import ast
import re
from pathlib import Path

import attrs
from sideband.hooks import HOOK_SPECS, AgentStart, Effect, Kind
from sideband.ops import Level, Origin
from sideband_cli._agent._json_lines import event_data
from sideband_cli._terminal._tables import first_sentence

README = Path(__file__).parents[1] / "README.md"
OF_THE_HOST = ("approval_", "worker_")
"""Beginnings of events that plugins observe, but not the agent of a run."""
PACKAGE = README.parent / "src" / "sideband_cli"


def table():
    rows = [
        f"| `{spec.name}` | {first_sentence(spec.event.__doc__)} | "
        f"{', '.join(f'`{field.name}`' for field in attrs.fields(spec.event))} |"
        for spec in HOOK_SPECS.values()
        if spec.kind is Kind.OBSERVE and (spec.name == "approval_mode_select" or not spec.name.startswith(OF_THE_HOST))
    ]
    return "\n".join(["| event | when | fields |", "|---|---|---|", *sorted(rows)])


def test_readme_lists_every_event_with_its_fields():
    assert table() in README.read_text(), f"expected in the README:\n{table()}"


def test_event_data_has_the_fields_of_the_event():
    assert event_data(AgentStart("r1")) == {"event": "agent_start", "run": "r1", "source": "interactive"}


def test_nested_objects_of_an_event_become_plain_data():
    effect = Effect("e1", "http.get", "done", Origin(skill="github"), Level.MONITORED, {"url": "x"}, decisions=[("a",)])
    data = event_data(effect)
    assert (data["level"], data["origin"]["skill"], data["params"]) == ("monitored", "github", {"url": "x"})
    assert data["decisions"] == [["a"]]


def folders():
    """Return the folders and modules that the README lists, in its order."""
    return re.findall(r"^\| `(\w+)(?:/|\.py)` \|", README.read_text().partition("## Source layout")[2], re.MULTILINE)


def test_readme_lists_every_folder():
    existing = {path.stem for path in PACKAGE.iterdir() if path.suffix in ("", ".py")}
    assert existing - set(folders()) - {"__pycache__"} == {"__init__", "_version"}


def test_folder_imports_only_from_folders_listed_below_it():
    order = folders()
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).parts
        if parts[0].removesuffix(".py") not in order:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level == len(parts):
                used = (node.module or "").partition(".")[0]
                assert order.index(used) > order.index(parts[0].removesuffix(".py")), f"{path} imports {used}"
