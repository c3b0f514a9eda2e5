"""mypy accepts the public API as an author uses it: in strict mode, and without the plugin of pydantic."""

import importlib
import inspect
import re
import subprocess
import sys
from enum import Enum
from pathlib import Path

import pytest
from pydantic import BaseModel

ROOT = Path(__file__).parents[1]
LAYERS = ("core", "agent", "libs/*", "plugins/*", "contrib/*")
FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DOCUMENTED = """
from sideband.messages import AssistantMessage, TextPart, ToolResultMessage, Usage, UserMessage
from sideband.providers import ModelInfo, Prices

messages = [
    UserMessage(content="hello"),
    UserMessage(content=[TextPart(text="hello")], source="notes"),
    AssistantMessage(content="hello", model="echo:twice", usage=Usage(input=3, output=4)),
    ToolResultMessage(call="1", tool="dice__roll", content="6", metadata={"ms": 3}),
]
model = ModelInfo(id="twice", context_window=8_000, prices=Prices(input=0, output=0))
"""
# An example may import the module of another one.
OPTIONS = """# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls
# mypy: disable-error-code="import-not-found"
"""
VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
PAGES = (
    "README.md",
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "reference"),
)


def public_classes():
    """Return the public classes that can be instantiated, with the name to import each from."""
    found = {}
    for layer in LAYERS:
        for path in sorted(ROOT.glob(f"{layer}/src/*/**/*.py")):
            source = next(parent for parent in path.parents if parent.name == "src")
            name = ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")
            if "._" in name or "runtime" in name or "__all__" not in path.read_text():
                continue
            module = importlib.import_module(name)
            for one in module.__all__:
                value = getattr(module, one)
                # The signature of an enumeration depends on the version of Python.
                if isinstance(value, type) and not (getattr(value, "_is_protocol", False) or issubclass(value, Enum)):
                    found.setdefault(value, f"{name}.{one}")
    return found


def call(number, cls, name):
    """Return a function that calls a class with only the arguments that are required at run time."""
    if issubclass(cls, BaseModel):
        cls.model_rebuild()  # a model that is built on first use has no signature before
    try:
        parameters = inspect.signature(cls).parameters.values()
    except ValueError:  # that of a built-in base class
        parameters = ()
    required = [one for one in parameters if one.default is one.empty and one.kind not in VARIABLE]
    declared = ", ".join(f"{one.name}: Any" for one in required)
    passed = ", ".join(f"{one.name}={one.name}" if one.kind is one.KEYWORD_ONLY else one.name for one in required)
    return f"def call_{number}({declared}) -> object:\n    return {name}({passed})\n"


def write_calls(folder):
    """Write a module that calls every public class."""
    classes = public_classes()
    assert len(classes) > 200
    modules = sorted({name.rpartition(".")[0] for name in classes.values()})
    lines = ["from typing import Any", *(f"import {module}" for module in modules)]
    lines += [call(number, cls, name) for number, (cls, name) in enumerate(classes.items())]
    (folder / "calls.py").write_text("\n".join(lines))


def write_examples(folder):
    """Write the Python examples of the documentation, which may omit annotations."""
    for page in PAGES:
        for number, example in enumerate(FENCE.findall((ROOT / page).read_text())):
            if "sideband.skill" not in example:  # skills are checked against stubs of the installed families
                name = re.sub(r"\W", "_", page.removesuffix(".md"))
                (folder / f"example_{name}_{number}.py").write_text(OPTIONS + example)


@pytest.fixture(scope="module")
def errors(tmp_path_factory):
    """Return the errors of one run of mypy in strict mode over all files, as an author runs it."""
    folder = tmp_path_factory.mktemp("author")
    write_calls(folder)
    write_examples(folder)
    (folder / "documented.py").write_text(DOCUMENTED)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--cache-dir={folder / 'cache'}", "."]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return [line for line in done.stdout.splitlines() if ": error: " in line]


def test_mypy_accepts_public_constructors_with_only_the_required_arguments(errors):
    assert [line for line in errors if not line.startswith("example_")] == []


def test_mypy_accepts_the_python_examples_of_the_documentation(errors):
    assert [line for line in errors if line.startswith("example_")] == []
