"""Every error of every package can be told apart, says what to do, stands in the reference, and has a test."""

import ast
import importlib
import inspect
import re
import textwrap
from functools import cache
from pathlib import Path

import pytest
from sideband import SidebandError

ROOT = Path(__file__).parents[1]
LAYERS = ("core", "agent", "libs/*", "plugins/*", "contrib/*")
SOURCES = [source for layer in LAYERS for source in sorted(ROOT.glob(f"{layer}/src"))]
TESTS = [ROOT / "tests", *sorted(ROOT.glob("*/tests")), *sorted(ROOT.glob("*/*/tests"))]

# Where nothing can be done, or the message is all that can be said: no hint is better than an empty phrase.
_CARRIED = "carries what another error, a guard or a plugin said"
_WRITTEN = "its message says how it is written"
_WANTED = "somebody wanted it so"
_AGAIN = "is tried again by itself, and told as what the whole came to"
NO_HINT = {
    "CallCancelled": _WANTED,
    "ConfigurationError": _WRITTEN,
    "HookResultInvalid": _WRITTEN,
    "Interrupted": _WANTED,
    "OpCancelled": _WANTED,
    "OpDenied": _CARRIED,
    "OpError": _CARRIED,
    "OpFailed": _CARRIED,
    "PluginHostClosed": _WRITTEN,
    "ProviderError": _AGAIN,
    "ProviderTimeout": _AGAIN,
    "SidebandError": _CARRIED,
    "SkillRefused": _CARRIED,
    "StreamBroken": _AGAIN,
    "ToolDenied": _CARRIED,
    "ToolRejected": "a model reads it, and its message says what the model can do",
    "UsageError": _WRITTEN,
    "WorkerStartFailed": _CARRIED,
}
# Two classes for one thing, so that a program sees one code.
SHARED = {"agent.model": "the command line says it in words of its own"}
# What no test can name: it never leaves the part that raises it, or takes a moment that can't be chosen.
NO_TEST = {
    "KnowledgeUnreadable": "takes a file that goes away between two looks at it",
    "ModelFailed": "has the code of what the model call failed with",
    "RunParked": "never leaves the agent, which ends the run as parked",
    "SummaryUnusable": "is reported of its hook, and the next strategy goes on",
    "ServiceFailed": "takes an interpreter that does not start",
}


@pytest.fixture(scope="module", autouse=True)
def pages():
    """The module that lists all errors, which imports all packages."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "docs")
        module = importlib.import_module("_pages.errors")
        module.errors_page()
        yield module


def errors():
    """All classes, those of tests left out."""
    found, waiting = set(), [SidebandError]
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += one.__subclasses__()
    ours = {top.name for source in SOURCES for top in source.iterdir()}
    return sorted((one for one in found if one.__module__.partition(".")[0] in ours), key=lambda one: one.__qualname__)


@cache
def calls():
    """Where our code makes an instance of something: by the name that is called, the calls."""
    found = {}
    for source in SOURCES:
        for path in source.rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
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
def said_in_tests():
    """All words in tests, and all codes."""
    text = "\n".join(path.read_text() for folder in TESTS for path in folder.rglob("*.py") if path != Path(__file__))
    return set(re.findall(r"[\w.]+", text)), text


def maker(error):
    """The class whose constructor it uses."""
    return next(one for one in error.__mro__ if "__init__" in vars(one))


def hints_in(owner):
    """The expressions that the constructor gives as the hint."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(owner.__init__)))
    return [
        keyword.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "hint"
    ]


def is_empty(hint):
    """Whether it is certain that the hint says nothing."""
    return isinstance(hint, ast.Constant) and not hint.value


def asks_for_hint(owner):
    """Whether the hint comes from whoever makes the error."""
    return "hint" in inspect.signature(owner.__init__).parameters


def without_hint(error):
    """Where the error is made in such a way that it has no hint."""
    owner = maker(error)
    if owner is not SidebandError and not asks_for_hint(owner):
        hints = hints_in(owner)
        return [] if hints and not all(map(is_empty, hints)) else [f"{error.__name__} itself"]
    default = "" if owner is SidebandError else inspect.signature(owner.__init__).parameters["hint"].default
    if default:  # one that has to be given is `empty`, which is true as well
        return []
    if owner is not SidebandError and any(isinstance(hint, ast.BoolOp) for hint in hints_in(owner)):
        return []
    bare = []
    for path, node in calls().get(error.__name__, ()):
        given = [keyword.value for keyword in getattr(node, "keywords", ()) if keyword.arg in ("hint", None)]
        if isinstance(node, ast.Raise) or not given or all(map(is_empty, given)):
            bare.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    return bare


def test_unrelated_errors_have_codes_of_their_own():
    by_code = {}
    for error in errors():
        by_code.setdefault(error.code, []).append(error)
    shared = {
        code: [one.__name__ for one in found]
        for code, found in by_code.items()
        if not any(all(issubclass(one, root) for one in found) for root in found)
    }
    assert {code: found for code, found in shared.items() if code not in SHARED} == {}
    assert set(SHARED) <= set(shared), "these are told apart by now: take them off the list"


def test_every_error_says_what_to_do():
    bare = {error.__name__: found for error in errors() if (found := without_hint(error))}
    assert {name: found for name, found in bare.items() if name not in NO_HINT} == {}
    assert set(NO_HINT) <= set(bare), "these have a hint by now: take them off the list"


def test_every_error_stands_in_the_reference():
    listed = (ROOT / "docs" / "reference" / "errors.md").read_text()
    assert [error.__name__ for error in errors() if not re.search(rf"\b{error.__name__}`", listed)] == []


def test_every_error_that_is_raised_has_a_test():
    words, text = said_in_tests()
    raised = [error for error in errors() if error.__name__ in calls()]
    untested = [
        error.__name__
        for error in raised
        if error.__name__ not in words and not re.search(rf"[\"'`\[ ]{re.escape(error.code)}[\"'`\] ]", text)
    ]
    assert len(raised) > 100
    assert [name for name in untested if name not in NO_TEST] == []
    assert set(NO_TEST) <= set(untested), "these have a test by now: take them off the list"
