"""Which names in a module stand for what: found in its imports, without running any."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator

from attrs import Factory, define

from ._skill_names import NAME_PART

SDK_MODULE = "sideband.skill"
# what the module `sideband.skill` has besides op families
SDK_NAMES = frozenset({"OpError", "annotations", "capabilities", "dispatch", "tool"})
DISPATCH = f"{SDK_MODULE}.dispatch"
_GENERATED = "sideband_sdk"
_AGENTOS = "agentos"


def parse_module(text: str) -> ast.Module | str:
    """The syntax tree, or why there is none."""
    try:
        with warnings.catch_warnings():
            # an odd escape in somebody's skill is not this host's warning
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        return f"line {error.lineno}: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return str(error) or "it is nested too deeply"


@define
class Names:
    """What the names of one module mean.

    Attributes:
        qualified: local name to where it was imported from (``List`` to ``typing.List``, ``t`` to ``typing``).
        families: local name to the op family that it stands for.
        modules: local names of the module ``sideband.skill`` itself.
        everything: whether the families that are used can't be told.
        agentos: whether it is written for AgentOS's SDK.
    """

    qualified: dict[str, str] = Factory(dict)
    families: dict[str, str] = Factory(dict)
    modules: set[str] = Factory(set)
    everything: bool = False
    agentos: bool = False

    def resolve(self, node: ast.expr) -> str | None:
        """The full name that an expression such as ``t.Optional`` stands for, or ``None`` if it is no name."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        return ".".join([self.qualified.get(node.id, node.id), *reversed(parts)])

    def family(self, node: ast.expr) -> str | None:
        """The op family that an expression stands for: ``http``, or ``s.http`` after ``import sideband.skill as s``."""
        if isinstance(node, ast.Name):
            return self.families.get(node.id)
        name = self.resolve(node)
        if name is None or not name.startswith(f"{SDK_MODULE}."):
            return None
        family = name.removeprefix(f"{SDK_MODULE}.")
        return family if _is_family(family) else None


def read_names(tree: ast.Module) -> Names:
    """Read the imports of a module, wherever in it they stand, and how ``sideband.skill`` is used."""
    names = Names()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value in (SDK_MODULE, _GENERATED):
            # `importlib.import_module("sideband.skill")`, or something just as indirect
            names.everything = True
        if isinstance(node, ast.Import):
            for alias in node.names:
                _import(alias, names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                _import_from(node.module, alias, names)
    used = set(_used_through_modules(tree, names)) | set(_dispatched(tree, names))
    names.families.update({f"{SDK_MODULE}.{family}": family for family in used})
    return names


def _is_family(name: str) -> bool:
    # the host makes files of these names, so nothing but a name part gets through
    return bool(NAME_PART.match(name)) and name not in SDK_NAMES


def _import(alias: ast.alias, names: Names) -> None:
    root = alias.name.partition(".")[0]
    names.qualified[alias.asname or root] = alias.name if alias.asname else root
    names.agentos |= root == _AGENTOS
    names.everything |= root == _GENERATED
    if alias.name == SDK_MODULE and alias.asname:
        names.modules.add(alias.asname)


def _import_from(module: str, alias: ast.alias, names: Names) -> None:
    local = alias.asname or alias.name
    root = module.partition(".")[0]
    names.agentos |= root == _AGENTOS
    names.everything |= root == _GENERATED
    if module == SDK_MODULE and alias.name == "*":
        names.everything = True
        return
    names.qualified[local] = f"{module}.{alias.name}"
    if module == SDK_MODULE and _is_family(alias.name):
        names.families[local] = alias.name
    if f"{module}.{alias.name}" == SDK_MODULE:
        names.modules.add(local)


def _used_through_modules(tree: ast.Module, names: Names) -> Iterator[str]:
    """Families behind ``s.http``. A bare ``s`` that is passed around could reach any."""
    inner: set[ast.expr] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            inner.add(node.value)
            family = names.family(node)
            if family is not None:
                yield family
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in names.modules and node not in inner:
            names.everything = True


def _dispatched(tree: ast.Module, names: Names) -> Iterator[str]:
    """Families behind ``dispatch("http.get", …)``. With a name that is computed, it could be any."""
    understood: set[ast.expr] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Call(function, [ast.Constant(str(op)), *_]) if names.resolve(function) == DISPATCH:
                understood.add(function)
                if _is_family(op.partition(".")[0]):
                    yield op.partition(".")[0]
            case ast.Name() | ast.Attribute() if node not in understood and names.resolve(node) == DISPATCH:
                names.everything = True
            case _:
                pass
