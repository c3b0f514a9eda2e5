"""Resolution of a module's names through its imports, without running them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from attrs import Factory, define

from ._skill_names import NAME_PART

SDK_MODULE = "sideband.skill"
# the names in `sideband.skill` that look like those of op families
SDK_NAMES = frozenset({"annotations", "capabilities", "dispatch", "now", "random", "tool", "uuid"})
DISPATCH = f"{SDK_MODULE}.dispatch"
_GENERATED = "sideband_sdk"
_AGENTOS = "agentos"
_MAXIMUM_PARTS = 16


@define
class Names:
    """The imported names of a module.

    Attributes:
        qualified: maps local names to qualified names (``List`` to ``typing.List``, ``t`` to ``typing``).
        families: maps local names to op families.
        modules: the local names of the module ``sideband.skill`` itself.
        everything: whether the used families cannot be determined.
        agentos: whether the module uses AgentOS's SDK.
    """

    qualified: dict[str, str] = Factory(dict)
    families: dict[str, str] = Factory(dict)
    modules: set[str] = Factory(set)
    everything: bool = False
    agentos: bool = False

    def resolve(self, node: ast.expr) -> str | None:
        """Return the qualified name of an expression such as ``t.Optional``, or ``None`` if it is not a dotted name."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
            if len(parts) > _MAXIMUM_PARTS:
                # Each part of a chain is resolved, so without a limit the time is quadratic.
                return None
        if not isinstance(node, ast.Name):
            return None
        return ".".join([self.qualified.get(node.id, node.id), *reversed(parts)])

    def family(self, node: ast.expr) -> str | None:
        """Return the op family of ``http`` or ``s.http`` (after ``import sideband.skill as s``), or ``None``."""
        if isinstance(node, ast.Name):
            return self.families.get(node.id)
        name = self.resolve(node)
        if name is None or not name.startswith(f"{SDK_MODULE}."):
            return None
        family = name.removeprefix(f"{SDK_MODULE}.")
        return family if _is_family(family) else None


def read_names(nodes: Sequence[ast.AST]) -> Names:
    """Read all imports of a module, including nested ones, and its uses of ``sideband.skill``."""
    names = Names()
    for node in nodes:
        if isinstance(node, ast.Constant) and node.value in (SDK_MODULE, _GENERATED):
            # an indirect import, such as `importlib.import_module("sideband.skill")`
            names.everything = True
        if isinstance(node, ast.Import):
            for alias in node.names:
                _import(alias, names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                _import_from(node.module, alias, names)
    used = set(_used_through_modules(nodes, names)) | set(_dispatched(nodes, names))
    names.families.update({f"{SDK_MODULE}.{family}": family for family in used})
    return names


def _is_family(name: str) -> bool:
    # the host creates files with these names, so they must be name parts
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


def _used_through_modules(nodes: Sequence[ast.AST], names: Names) -> Iterator[str]:
    """Yield the families of attributes such as ``s.http``. A bare ``s`` may reach any family."""
    objects: set[ast.expr] = set()
    for node in nodes:
        if isinstance(node, ast.Attribute):
            objects.add(node.value)
            family = names.family(node)
            if family is not None:
                yield family
    for node in nodes:
        if isinstance(node, ast.Name) and node.id in names.modules and node not in objects:
            names.everything = True


def _dispatched(nodes: Sequence[ast.AST], names: Names) -> Iterator[str]:
    """Yield the families of calls such as ``dispatch("http.get", …)``. A computed name may be any family."""
    resolved: set[ast.expr] = set()
    for node in nodes:
        match node:
            case ast.Call(function, [ast.Constant(str(op)), *_]) if names.resolve(function) == DISPATCH:
                resolved.add(function)
                if _is_family(op.partition(".")[0]):
                    yield op.partition(".")[0]
            case ast.Name() | ast.Attribute() if node not in resolved and names.resolve(node) == DISPATCH:
                names.everything = True
            case _:
                pass
