"""Every error of every package has a unique code, a hint, an entry in the reference and a test."""

import ast
import importlib
import inspect
import re
import sys
import textwrap
from functools import cache
from pathlib import Path

import pytest
from sideband import SidebandError

ROOT = Path(__file__).parents[1]
LAYERS = ("core", "agent", "libs/*", "plugins/*", "contrib/*")
SOURCES = [source for layer in LAYERS for source in sorted(ROOT.glob(f"{layer}/src"))]
TESTS = [ROOT / "tests", *sorted(ROOT.glob("*/tests")), *sorted(ROOT.glob("*/*/tests"))]

# Errors without a hint, because nothing can be done or the message is sufficient.
_CARRIED = "carries the hint of another error, a guard or a plugin"
_WRITTEN = "its message describes the expected form"
_REQUESTED = "the caller or the user requested it"
_AGAIN = "is retried automatically, and reported as the final failure"
NO_HINT = {
    "CallCancelled": _REQUESTED,
    "ConfigurationError": _WRITTEN,
    "HookResultInvalid": _WRITTEN,
    "Interrupted": _REQUESTED,
    "OpCancelled": _REQUESTED,
    "OpDenied": _CARRIED,
    "OpError": _CARRIED,
    "OpFailed": _CARRIED,
    "PluginHostClosed": _WRITTEN,
    "ProviderError": _AGAIN,
    "ProviderTimeout": _AGAIN,
    "SidebandError": _CARRIED,
    "SkillRefused": _CARRIED,
    "StreamBroken": _AGAIN,
    "ToolRejected": "addressed to the model; its message says what to do",
    "UsageError": _WRITTEN,
    "WorkerStartFailed": _CARRIED,
}
# Two classes for the same error, so that programs see a single code.
SHARED = {
    "agent.model": "the command line uses its own message",
    "approval.needed": "the run parks that needs the approval",
}
# Errors that tests cannot name: they are never raised to callers, or depend on a race.
NO_TEST = {
    "KnowledgeUnreadable": "requires a file that disappears between two accesses",
    "ModelFailed": "has the code of the error of the model call",
    "RunParked": "is caught by the agent, which parks the run",
    "SummaryUnusable": "is reported as a hook failure, and the next strategy is used",
}


@pytest.fixture(scope="module", autouse=True)
def pages():
    """Import all packages by generating the page of errors."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "docs")
        module = importlib.import_module("_pages.errors")
        module.errors_page()
        yield module


def errors():
    """Return all error classes except those of tests."""
    found, waiting = set(), [SidebandError]
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += one.__subclasses__()
    ours = {top.name for source in SOURCES for top in source.iterdir()}
    found = {one for one in found if getattr(sys.modules.get(one.__module__), one.__name__, None) is one}
    return sorted((one for one in found if one.__module__.partition(".")[0] in ours), key=lambda one: one.__qualname__)


@pytest.fixture(scope="module")
def calls(trees):
    """The calls and raises in the sources, by the name of the callee."""
    found = {}
    for path, tree in trees.items():
        for node in ast.walk(tree):
            name = _called(node)
            if name:
                found.setdefault(name, []).append((path, node))
    return found


def _called(node):
    match node:
        case ast.Raise(exc=ast.Name(id=name)):
            return name
        case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)):
            return name
    return None


@cache
def words_and_text_of_tests():
    """Return all words in the tests, and their text."""
    text = "\n".join(path.read_text() for folder in TESTS for path in folder.rglob("*.py") if path != Path(__file__))
    return set(re.findall(r"[\w.]+", text)), text


def maker(error):
    """Return the class that defines the constructor of an error."""
    return next(one for one in error.__mro__ if "__init__" in vars(one))


def hints_in(owner):
    """Return the expressions that the constructor of a class passes as ``hint``."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(owner.__init__)))
    return [
        keyword.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "hint"
    ]


def is_empty(hint):
    """Return whether a hint is a constant without text."""
    return isinstance(hint, ast.Constant) and not hint.value


def accepts_hint(owner):
    """Return whether the constructor of a class has a parameter ``hint``."""
    return "hint" in inspect.signature(owner.__init__).parameters


def without_hint(error, calls):
    """Return the places that raise an error without a hint."""
    owner = maker(error)
    if owner is not SidebandError and not accepts_hint(owner):
        hints = hints_in(owner)
        return [] if hints and not all(map(is_empty, hints)) else [f"{error.__name__} itself"]
    default = "" if owner is SidebandError else inspect.signature(owner.__init__).parameters["hint"].default
    if default:  # a required parameter has the default `Parameter.empty`, which is true
        return []
    if owner is not SidebandError and any(isinstance(hint, ast.BoolOp) for hint in hints_in(owner)):
        return []
    bare = []
    for path, node in calls.get(error.__name__, ()):
        given = [keyword.value for keyword in getattr(node, "keywords", ()) if keyword.arg in ("hint", None)]
        if isinstance(node, ast.Raise) or not given or all(map(is_empty, given)):
            bare.append(f"{path}:{node.lineno}")
    return bare


def test_unrelated_errors_have_different_codes():
    by_code = {}
    for error in errors():
        by_code.setdefault(error.code, []).append(error)
    shared = {
        code: [one.__name__ for one in found]
        for code, found in by_code.items()
        if not any(all(issubclass(one, root) for one in found) for root in found)
    }
    assert {code: found for code, found in shared.items() if code not in SHARED} == {}
    assert set(SHARED) <= set(shared), "remove these from SHARED: their codes are unique now"


def test_errors_have_hints(calls):
    bare = {error.__name__: found for error in errors() if (found := without_hint(error, calls))}
    assert {name: found for name, found in bare.items() if name not in NO_HINT} == {}
    assert set(NO_HINT) <= set(bare), "remove these from NO_HINT: they have hints now"


def test_reference_lists_every_error():
    listed = (ROOT / "docs" / "reference" / "errors.md").read_text()
    assert [error.__name__ for error in errors() if not re.search(rf"\b{error.__name__}`", listed)] == []


def test_raised_errors_are_named_in_tests(calls):
    words, text = words_and_text_of_tests()
    raised = [error for error in errors() if error.__name__ in calls]
    untested = [
        error.__name__
        for error in raised
        if error.__name__ not in words and not re.search(rf"[\"'`\[ ]{re.escape(error.code)}[\"'`\] ]", text)
    ]
    assert len(raised) > 100
    assert [name for name in untested if name not in NO_TEST] == []
    assert set(NO_TEST) <= set(untested), "remove these from NO_TEST: they have tests now"
