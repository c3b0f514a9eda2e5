"""The package uses only the recorded API, and each break of a part that it uses is found."""

import ast
import importlib
import re
from pathlib import Path

import pytest

from .conftest import SOURCE

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def api():
    """The module of the command ``python docs/api.py``."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(DOCS)
        yield importlib.import_module("api")


@pytest.fixture(scope="module")
def recorded(api):
    return api.read(DOCS / "api.json")


def used_parts(tree):
    """Yield the paths of the parts that a module uses: imports, keywords, members of arguments, hooks, ops."""
    names = {
        alias.asname or alias.name: f"python:{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "sideband"
        for alias in node.names
        if alias.name != "tides"  # the module of the package's own family
    }
    yield from names.values()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _parts_of_function(node, names)
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") in names:
            yield f"{names[node.value.id]}.{node.attr}"
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in names:
            yield from (f"{names[node.func.id]}({one.arg})" for one in node.keywords)


def _parts_of_function(function, names):
    is_hook = "hookimpl" in {getattr(one, "id", "") for one in function.decorator_list}
    if is_hook:
        yield f"hook:{function.name}"
    arguments = {one.arg: names.get(getattr(one.annotation, "id", "")) for one in function.args.args}
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and (owner := arguments.get(getattr(node.value, "id", ""))):
            yield (
                f"hook:{function.name}({node.attr})" if is_hook and node.value.id == "event" else f"{owner}.{node.attr}"
            )
        if isinstance(node, ast.Call) and (
            owner := arguments.get(getattr(getattr(node.func, "value", None), "id", ""))
        ):
            yield from (f"{owner}.{node.func.attr}({one.arg})" for one in node.keywords)
            if node.func.attr == "dispatch" and not node.args[0].value.startswith("tides."):
                yield f"op:{node.args[0].value}"


def recorded_path(part, facts):
    """Return the path under which a part is recorded: where its class is defined, or one of its bases."""
    kind, _, name = part.partition(":")
    owner = name.partition("(")[0].rpartition(".")[0]
    if kind != "python" or part in facts or f"python:{owner}" not in facts:
        return part
    rest = name.removeprefix(owner)
    known = facts[f"python:{owner}"]
    homes = [known["as"], *facts[f"python:{known['as']}"]["bases"]] if known["kind"] == "same" else known["bases"]
    bases = [base for home in homes for base in (home, *facts.get(f"python:{home}", {}).get("bases", ()))]
    return next((path for home in bases if (path := f"python:{home}{rest}") in facts), part)


@pytest.fixture(scope="module")
def used(recorded):
    """The parts that the package uses, as they are recorded."""
    modules = [path for path in sorted((SOURCE / "src").rglob("*.py")) if path.name != "__init__.py"]
    parts = {part for path in modules for part in used_parts(ast.parse(path.read_text()))}
    return {recorded_path(part, recorded.facts) for part in parts}


def test_package_uses_only_what_is_recorded(used, recorded):
    assert {
        "op:http.get", "hook:op_call", "python:sideband.OpContext.dispatch(rights)", "python:sideband.OpFamily(uses)",
        "python:sideband.tools.Tool(level)", "hook:op_call(params)", "python:sideband.Level.MONITORED",
    } <= used  # fmt: skip
    assert used - recorded.facts.keys() == set()


def test_removal_of_each_part_that_the_package_uses_is_a_break(api, used, recorded):
    for part in sorted(used):
        around = (
            re.match(r"\w+:\w+", part)[0] if not part.startswith("python:") else re.split(r"[(]|\.[^.(]+$", part)[0]
        )
        facts = {path: fact for path, fact in recorded.facts.items() if path.startswith(around)}
        without = {path: fact for path, fact in facts.items() if not path.startswith(part)}
        assert part in {change.path for change in api.compare(facts, without) if change.is_break}


def test_new_requirement_of_a_function_that_the_package_calls_is_a_break(api, recorded):
    facts = {path: fact for path, fact in recorded.facts.items() if path.startswith("python:sideband.OpFamily")}
    changed = {**facts, "python:sideband.OpFamily(maintainer)": {"kind": "parameter", "required": True, "type": "str"}}
    (found,) = api.compare(facts, changed)
    assert found.is_break
    assert found.path == "python:sideband.OpFamily(maintainer)"
