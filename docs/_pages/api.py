"""The pages on the Python API: for each public module its classes, functions and constants, with their docstrings."""

from __future__ import annotations

import enum
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from importlib import import_module
from textwrap import dedent
from typing import Any

from sideband.plugins._kinds import KINDS

from .declarations import alias, fields, members, signature
from .docstrings import first_paragraph, section
from .packages import modules, packages, plugin_points
from .tables import paragraph, table

__all__ = ["API_PAGES", "GROUPS", "MODULES", "OF_PACKAGES"]

# A name that several modules export is described at the first one.
_FOR_PLUGINS = (
    "sideband",
    "sideband.ops",
    "sideband.hooks",
    "sideband.approvals",
    "sideband.tools",
    "sideband.messages",
    "sideband.providers",
    "sideband.plugins",
    "sideband.loading",
    "sideband.store",
    "sideband.command_line",
    "sideband.commands",
    "sideband.rendering",
    "sideband.blobs",
    "sideband.sandboxing",
    "sideband.errors",
)
_FOR_SKILLS = ("sideband.skill",)
_FOR_PROGRAMS = ("sideband_agent", "sideband_cassettes", "sideband_testing", "sideband_scripted")
OF_PACKAGES = "Packages beside the kernel"
"""The title of the list of pages on packages."""
# What the arguments and results of `Host` consist of. These names are described with it.
_ALSO = {
    "sideband": {
        "sideband.broker": ("EffectMissing", "PlannedStep", "Recovered", "UndoPlan", "UndoneStep"),
        "sideband.settings": ("LoadedSettings", "load_settings", "trust_project"),
    }
}
_SECTIONS = r"^(?:Args|Attributes|Returns|Yields|Raises|Example):\n"
_HIDDEN = ("__version__",)


def _file(module: str) -> str:
    package, _, rest = module.partition(".")
    return f"api-{'-'.join([package, *rest.replace('_', '.').split('.')]).strip('-')}.md"


@cache
def _modules() -> Mapping[str, tuple[str, ...]]:
    """Return all modules with public names, by the title of their list.

    A module without an underscore is public. Not listed are those that the host imports through an entry point.
    """
    points = {point.module for kind in KINDS.values() for point in plugin_points(kind.group)}
    found = [
        module.__name__
        for package in packages()
        for module in modules(package)
        if not any(part.startswith("_") for part in module.__name__.split("."))
        and module.__name__ not in points
        and set(getattr(module, "__all__", ())) - set(_HIDDEN)
    ]
    others = [one for one in found if one not in {*_FOR_PLUGINS, *_FOR_SKILLS, *_FOR_PROGRAMS}]
    return {
        "For plugins and programs": (*_FOR_PLUGINS, *_FOR_PROGRAMS),
        "For skills": _FOR_SKILLS,
        OF_PACKAGES: tuple(one for one in others if not one.startswith("sideband.")),
        "Parts of the kernel": tuple(one for one in others if one.startswith("sideband.")),
    }


MODULES = tuple(module for group in _modules().values() for module in group)
"""All public modules, in the order of the pages."""


@cache
def _homes() -> Mapping[str, Mapping[str, tuple[str, Any]]]:
    """Return the names of each page, with the module to import each from and its value."""
    homes: dict[str, dict[str, tuple[str, Any]]] = {}
    for page in MODULES:
        names = {name: page for name in import_module(page).__all__ if name not in _HIDDEN}
        names |= {name: module for module, more in _ALSO.get(page, {}).items() for name in more}
        homes[page] = {name: (module, getattr(import_module(module), name)) for name, module in sorted(names.items())}
    return homes


@cache
def _first_page(name: str, identity: int) -> str:
    return next(page for page, names in _homes().items() if name in names and id(names[name][1]) == identity)


def _index() -> list[str]:
    """Return the lines of the list of modules."""
    lines = [
        "# Python API",
        "",
        *paragraph(
            "The public names, by module. Names and modules that begin with an underscore are private and may change "
            "at any time. [Writing a plugin](../plugins.md) explains how to use them; "
            "[Compatibility](../compatibility.md) says how they may change."
        ),
    ]
    for title, group in _modules().items():
        rows = [
            [
                f"[`{module}`]({_file(module)})",
                first_paragraph(import_module(module).__doc__).removesuffix("."),
                str(len(_homes()[module])),
            ]
            for module in group
        ]
        lines += ["", f"## {title}", "", *table(["module", "contents", "names"], rows)]
    return lines


def _page(page: str) -> list[str]:
    """Return the lines of the page on a module."""
    lines = [f"# {page}", "", first_paragraph(import_module(page).__doc__)]
    elsewhere = []
    documented = {value for names in _homes().values() for _, value in names.values() if isinstance(value, type)}
    for name, (module, value) in _homes()[page].items():
        first = _first_page(name, id(value))
        if first != page:
            elsewhere.append(f"- [`{name}`]({_file(first)}#{name.lower()})")
            continue
        lines += ["", f"## {name}", "", f"`from {module} import {name}`"]
        lines += _class(name, value, documented) if isinstance(value, type) else _other(module, name, value)
    if elsewhere:
        lines += ["", "## Also exported", "", *elsewhere]
    return lines


def _class(name: str, value: type, documented: set[type]) -> Iterator[str]:
    is_error = issubclass(value, BaseException)
    bases = [base for base in value.__bases__ if base in documented]
    if bases:
        yield ""
        yield f"A subclass of {', '.join(f'`{base.__name__}`' for base in bases)}."
    yield from _prose(value.__doc__)
    if issubclass(value, enum.Enum):
        yield ""
        yield f"Members: {', '.join(f'`{one.name}`' for one in value)}."
        return
    found = list(fields(value, documented))
    if found and not is_error:
        yield ""
        yield from table(
            ["field", "type", "default", "meaning"],
            [
                [f"`{one.name}`", f"`{one.type}`", f"`{one.default}`" if one.default else "", one.meaning]
                for one in found
            ],
        )
    declared = signature(name, value)
    if declared:
        yield from ["", "```python", declared, "```"]
    if declared or is_error:
        yield from _items(value.__doc__, "Args|Attributes")
        if section(value.__doc__, "Args"):
            yield from _items(value.__doc__, "Attributes", "Attributes:")
    yield from _example(value.__doc__)
    own = [] if is_error else list(members(value, documented))
    properties = [one for one in own if one.is_property]
    if properties:
        rows = [[f"`{one.name}`", f"`{one.declaration}`", first_paragraph(one.doc)] for one in properties]
        yield ""
        yield from table(["property", "type", "meaning"], rows)
    for member in own:
        if not member.is_property:
            yield from ["", f"### {name}.{member.name}", "", "```python", member.declaration, "```"]
            yield from _described(member.doc)


def _other(module: str, name: str, value: Any) -> Iterator[str]:
    if inspect.isfunction(value):
        yield from ["", "```python", signature(name, value), "```"]
        yield from _described(value.__doc__)
        return
    text, doc = alias(module, name)
    if doc:
        yield from _prose(doc)
    if text and not isinstance(value, Mapping):
        yield from ["", "```python", f"{name} = {text}", "```"]


def _described(doc: str | None) -> Iterator[str]:
    yield from _prose(doc)
    yield from _items(doc, "Args")
    for title in ("Returns", "Yields"):
        if text := _text(doc, title):
            yield from ["", f"{title}: {text}"]
    yield from _items(doc, "Raises", "Raises:")
    yield from _example(doc)


def _prose(doc: str | None) -> Iterator[str]:
    """Yield the text before the first section, as it is broken into lines and paragraphs."""
    text = re.split(_SECTIONS, inspect.cleandoc(doc or ""), maxsplit=1, flags=re.MULTILINE)[0].strip()
    if text:
        yield ""
        yield from re.sub(r"``+", "`", text).splitlines()


def _items(doc: str | None, titles: str, heading: str = "") -> Iterator[str]:
    found = section(doc, titles)
    if found:
        yield ""
        if heading:
            yield from [heading, ""]
        yield from (f"- {text}" if text.startswith("`") and "`: " in text else f"- `{name}`: {text}"
                    for name, text in _grouped(found))  # fmt: skip


def _grouped(found: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each description once, also if several names share it."""
    seen = set()
    for name, text in found.items():
        is_shared = text.startswith(f"`{name}`, ") or (text in seen)
        if text not in seen:
            yield name, text
        if is_shared:
            seen.add(text)


def _text(doc: str | None, title: str) -> str:
    found = re.search(rf"^{title}:\n((?: {{4}}.*\n?)+)", inspect.cleandoc(doc or ""), re.MULTILINE)
    return first_paragraph(found[1]) if found else ""


def _example(doc: str | None) -> Iterator[str]:
    found = re.search(r"^Example:\n((?:(?: {4}.*)?\n?)+)", inspect.cleandoc(doc or ""), re.MULTILINE)
    if found:
        text = dedent(found[1]).strip()
        yield from ["", "```pycon" if text.startswith(">>>") else "```text", *text.splitlines(), "```"]


GROUPS = {title: [_file(module) for module in group] for title, group in _modules().items()}
"""The file names of the pages, by the title of their list."""

API_PAGES: Mapping[str, Callable[[], list[str]]] = {
    "api.md": _index,
    **{_file(module): partial(_page, module) for module in MODULES},
}
"""The pages by file name."""
