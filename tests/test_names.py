"""One word has one meaning: class names, file names and exit codes, across all packages."""

import ast
import collections
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
LAYERS = ("core", "agent", "libs/*", "plugins/*", "contrib/*")
SHARED_CLASSES = {
    "Config": "the settings of a plugin, as the design names them",
    "OpError": "what an op fails with, in the host and in a worker, which shares no code with it",
}
# The name of a file says which of these concerns it holds; the old names must not come back.
OTHER_FILE_NAMES = {
    "_taking_back.py": "_undo.py",
    "_effects.py": "_undo.py or _preview.py",
    "_params.py": "_models.py",
    "_results.py": "_models.py",
}


@cache
def trees():
    paths = [path for layer in LAYERS for source in ROOT.glob(f"{layer}/src") for path in source.rglob("*.py")]
    return {path.relative_to(ROOT): ast.parse(path.read_text()) for path in paths}


def test_each_class_name_is_used_once():
    found = collections.defaultdict(list)
    for path, tree in trees().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                found[node.name].append(str(path))
    shared = {name: places for name, places in found.items() if len(places) > 1}
    assert {name: places for name, places in shared.items() if name not in SHARED_CLASSES} == {}
    assert set(SHARED_CLASSES) <= set(shared), "these are used once by now: take them off the list"


def test_plugins_use_the_same_file_name_for_the_same_concern():
    plugins = [path for path in trees() if path.parts[0] in ("plugins", "contrib")]
    assert {str(path): OTHER_FILE_NAMES[path.name] for path in plugins if path.name in OTHER_FILE_NAMES} == {}


def test_the_scope_of_an_op_family_is_in_a_file_of_that_name():
    strays = [
        str(path)
        for path, tree in trees().items()
        for node in tree.body
        if path.parts[0] == "plugins" and path.name != "_scope.py" and isinstance(node, ast.ClassDef)
        if any(getattr(base, "id", "") == "Scope" for base in node.bases)
    ]
    assert strays == []


def test_all_ops_of_a_plugin_are_declared_in_one_module():
    strays = [str(path) for path, tree in trees().items() if any(map(_declares_op, _functions(tree)))]
    assert [path for path in strays if path.startswith("plugins/") and not path.endswith("/_ops.py")] == []


def _functions(tree):
    return (node for node in ast.walk(tree) if isinstance(node, ast.AsyncFunctionDef))


def _declares_op(function):
    calls = [one for one in function.decorator_list if isinstance(one, ast.Call)]
    return any(getattr(call.func, "id", "") == "op" for call in calls)


def test_exit_codes_are_named_and_not_written_as_numbers():
    for path, tree in trees().items():
        for node in ast.walk(tree):
            match node:
                case ast.Assign(targets=[ast.Name(id="exit_code")], value=ast.Constant(value=int())):
                    raise AssertionError(f"{path}:{node.lineno}")
                case ast.AnnAssign(target=ast.Name(id="exit_code"), value=ast.Constant(value=int())):
                    raise AssertionError(f"{path}:{node.lineno}")
