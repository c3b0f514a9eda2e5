"""Naming rules across all packages: class names, file names and exit codes."""

import ast
import collections

_OF_OPS = "the failure of an op, in the host and in workers, which share no code"
SHARED_CLASSES = {
    "Config": "the settings of a plugin; the host looks for this name",
    "EffectInFlight": _OF_OPS,
    "EffectUnknown": _OF_OPS,
    "EgressRefused": _OF_OPS,
    "LimitExceeded": _OF_OPS,
    "OpCancelled": _OF_OPS,
    "OpDenied": _OF_OPS,
    "OpError": _OF_OPS,
    "OpNotFound": _OF_OPS,
    "OpParamsInvalid": _OF_OPS,
    "OpResultInvalid": _OF_OPS,
    "OpTimeout": _OF_OPS,
    "OpUnavailable": _OF_OPS,
    "SecretsClosed": _OF_OPS,
}
# Retired file names, and the names to use instead.
RETIRED_FILE_NAMES = {
    "_taking_back.py": "_undo.py",
    "_effects.py": "_undo.py or _preview.py",
    "_params.py": "_models.py",
    "_results.py": "_models.py",
}


def test_class_names_are_unique(trees):
    found = collections.defaultdict(list)
    for path, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                found[node.name].append(str(path))
    shared = {name: places for name, places in found.items() if len(places) > 1}
    assert {name: places for name, places in shared.items() if name not in SHARED_CLASSES} == {}
    assert set(SHARED_CLASSES) <= set(shared), "remove these from SHARED_CLASSES: they are unique now"


def test_plugins_do_not_use_retired_file_names(trees):
    plugins = [path for path in trees if path.parts[0] in ("plugins", "contrib")]
    assert {str(path): RETIRED_FILE_NAMES[path.name] for path in plugins if path.name in RETIRED_FILE_NAMES} == {}


def test_scopes_are_defined_in_scope_modules(trees):
    misplaced = [
        str(path)
        for path, tree in trees.items()
        for node in tree.body
        if path.parts[0] == "plugins" and path.name != "_scope.py" and isinstance(node, ast.ClassDef)
        if any(getattr(base, "id", "") == "Scope" for base in node.bases)
    ]
    assert misplaced == []


def test_ops_are_declared_in_ops_modules(trees):
    misplaced = [str(path) for path, tree in trees.items() if any(map(_declares_op, _functions(tree)))]
    assert [path for path in misplaced if path.startswith("plugins/") and not path.endswith("/_ops.py")] == []


def _functions(tree):
    return (node for node in ast.walk(tree) if isinstance(node, ast.AsyncFunctionDef))


def _declares_op(function):
    calls = [one for one in function.decorator_list if isinstance(one, ast.Call)]
    return any(getattr(call.func, "id", "") == "op" for call in calls)


def test_exit_codes_are_not_written_as_numbers(trees):
    for path, tree in trees.items():
        for node in ast.walk(tree):
            match node:
                case ast.Assign(targets=[ast.Name(id="exit_code")], value=ast.Constant(value=int())):
                    raise AssertionError(f"{path}:{node.lineno}")
                case ast.AnnAssign(target=ast.Name(id="exit_code"), value=ast.Constant(value=int())):
                    raise AssertionError(f"{path}:{node.lineno}")
