"""Convert JSON schemas to Python annotations and typed dictionaries, as source text."""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Iterable, Mapping
from typing import Any

from attrs import define, field, frozen

_SIMPLE = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
_BINARY = ("binary", "base64", "base64url")
_STRINGS = re.compile(r"'[^']*'|\"[^\"]*\"")
_MAXIMUM_DEPTH = 8
_TAG = "x-tag"


@frozen
class Annotator:
    """Writes annotations for the types of one schema. Types that cannot be expressed become ``Any``.

    Args:
        definitions: the schema's ``$defs``.
        shadowed: builtin names that the module redefines, for instance by a function ``list``.
        models: receives the objects with named keys. If ``None``, they are written as dictionaries.

    Example:
        >>> Annotator().write({"type": "array", "items": {"type": "string"}})
        'list[str]'
        >>> Annotator(shadowed=frozenset({"list"})).write({"type": "array"})
        '_builtins.list[Any]'
    """

    definitions: Mapping[str, Any] = {}
    shadowed: frozenset[str] = frozenset()
    models: TypedDicts | None = None

    def write(self, schema: Any, depth: int = 0) -> str:
        """Return the annotation for ``schema``."""
        # The limit also terminates recursive types.
        if not isinstance(schema, Mapping) or depth > _MAXIMUM_DEPTH:
            return "Any"
        if "$ref" in schema:
            return self._write_reference(schema, depth)
        if "enum" in schema or "const" in schema:
            return _literal(schema.get("enum", [schema.get("const")]))
        options = schema.get("anyOf", schema.get("oneOf"))
        if options is not None:
            tag = schema.get("discriminator", {}).get("propertyName")
            return _union(self.write({**option, _TAG: tag} if tag else option, depth + 1) for option in options)
        return self._write_type(schema, depth)

    def _write_reference(self, schema: Mapping[str, Any], depth: int) -> str:
        name = str(schema["$ref"]).rpartition("/")[2]
        target = self.definitions.get(name)
        if self.models is None or not isinstance(target, Mapping) or not target.get("properties"):
            return self.write(target, depth + 1)
        # The key that distinguishes the options of a union is required there, even if it has a default.
        required = [*target.get("required", ()), *([schema[_TAG]] if _TAG in schema else ())]
        return self.models.name(name, {**target, "required": sorted(set(required))}, self)

    def _write_type(self, schema: Mapping[str, Any], depth: int) -> str:
        kind = schema.get("type")
        if isinstance(kind, list):
            return _union(self.write({**schema, "type": one}, depth + 1) for one in kind)
        if kind == "null":
            return "None"
        if kind == "string" and schema.get("format") in _BINARY:
            return self.builtin("bytes")
        if kind == "array":
            # A tuple is a list in JSON.
            items = [*schema.get("prefixItems", ()), *([schema["items"]] if schema.get("items") else ())]
            return f"{self.builtin('list')}[{_union(self.write(one, depth + 1) for one in items)}]"
        if kind == "object":
            return self._write_object(schema, depth)
        return self.builtin(_SIMPLE[kind]) if kind in _SIMPLE else "Any"

    def _write_object(self, schema: Mapping[str, Any], depth: int) -> str:
        if self.models is not None and schema.get("properties"):
            return self.models.name(str(schema.get("title", "")), schema, self)
        values = "Any" if "properties" in schema else self.write(schema.get("additionalProperties"), depth + 1)
        return f"{self.builtin('dict')}[{self.builtin('str')}, {values}]"

    def builtin(self, name: str) -> str:
        """Return the name by which the module can use a builtin."""
        return f"_builtins.{name}" if name in self.shadowed else name


@define
class TypedDicts:
    """The typed dictionaries of one module. Equal objects share one, and others with the same name get a number.

    Args:
        taken: the names that the module has already.

    Attributes:
        of_parameters: whether the next ones are of parameters. If a model is also that of a result, where each key is
            present, both are accepted: type checkers do not accept one for the other.
    """

    taken: set[str]
    of_parameters: bool = False
    _results: dict[str, str] = field(factory=dict, init=False)
    _names: dict[str, str] = field(factory=dict, init=False)
    _sources: dict[str, str] = field(factory=dict, init=False)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all, sorted."""
        return tuple(sorted(self._sources))

    @property
    def sources(self) -> tuple[str, ...]:
        """The definitions of all, sorted by name."""
        return tuple(self._sources[name] for name in self.names)

    def name(self, title: str, schema: Mapping[str, Any], annotator: Annotator) -> str:
        """Return the name of the typed dictionary for an object, which is defined when it is first named."""
        identity = _identity(schema, annotator.definitions)
        result = self._results.get(title) if self.of_parameters else None
        if identity not in self._names:
            name = self._names[identity] = self._free(f"{title}Input" if result else title)
            if not self.of_parameters:
                self._results.setdefault(title, name)
            self._sources[name] = ""  # it may contain itself
            keys = {key: annotator.write(value) for key, value in schema["properties"].items()}
            required = set(schema.get("required", ()))
            self._sources[name] = _typed_dict(name, keys, required, _described(schema))
        name = self._names[identity]
        return f"{name} | {result}" if result and result != name else name

    def add(self, name: str, keys: Mapping[str, str], doc: str) -> None:
        """Define a typed dictionary of optional keys, given their annotations."""
        self._sources[name] = _typed_dict(name, keys, set(keys), doc, total=False)

    def _free(self, title: str) -> str:
        base = re.sub(r"\W+", "_", title, flags=re.ASCII).strip("_") or "Item"
        base = f"Item{base}" if base[0].isdigit() else base[0].upper() + base[1:]
        name, number = base, 2
        while name in self.taken:
            name, number = f"{base}{number}", number + 1
        self.taken.add(name)
        return name


def camel_case(name: str) -> str:
    """Return ``session_open`` as ``SessionOpen``."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def docstring(doc: str, indent: str) -> str:
    """Return a docstring literal. Text that could break out of triple quotes is written with `repr`."""
    if not doc.replace("\n", "").isprintable() or "\\" in doc or '"""' in doc or doc.endswith('"'):
        return f"{indent}{doc!r}"
    lines = [f"{indent}{line}".rstrip() for line in doc.splitlines()]
    closing = f"\n{indent}" if len(lines) > 1 else ""
    return indent + '"""' + "\n".join(lines).strip() + closing + '"""'


def _typed_dict(name: str, keys: Mapping[str, str], required: set[str], doc: str, *, total: bool = True) -> str:
    partly = "" if total else ", total=False"
    written = {key: kind if key in required else f"NotRequired[{kind}]" for key, kind in keys.items()}
    if all(_is_attribute(key, written.values()) for key in keys):
        lines = [docstring(doc, "    "), ""] if doc else []
        lines += [f"    {key}: {kind}" for key, kind in written.items()]
        return "\n".join([f"class {name}(TypedDict{partly}):", *(lines or ["    pass"])])
    items = ", ".join(f"{key!r}: {kind}" for key, kind in written.items())
    return f"{name} = TypedDict({name!r}, {{{items}}}{partly})"


def _is_attribute(key: str, annotations: Iterable[str]) -> bool:
    """Return whether a key can be written in a class, where it would hide a type with the same name."""
    if not key.isidentifier() or keyword.iskeyword(key) or key.startswith("__"):
        return False
    types = (_STRINGS.sub("", one) for one in annotations)
    return not any(re.search(rf"(?<![\w.]){re.escape(key)}\b", one) for one in types)


def _described(schema: Mapping[str, Any]) -> str:
    doc = str(schema.get("description", "")).strip()
    known = {key: value for key, value in schema["properties"].items() if isinstance(value, Mapping)}
    texts = {key: " ".join(str(value["description"]).split()) for key, value in known.items() if "description" in value}
    lines = [f"    {key}: {text}" for key, text in texts.items()]
    return "\n".join([*([doc, ""] if doc else []), "Keys:", *lines, ""]) if lines else doc


def _identity(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    """Return a text that equal objects have in common, with all objects that they contain."""
    reached: dict[str, Any] = {}
    waiting: list[Any] = [schema]
    while waiting:
        found = waiting.pop()
        if isinstance(found, Mapping):
            name = str(found.get("$ref", "")).rpartition("/")[2]
            if name in definitions and name not in reached:
                reached[name] = definitions[name]
                waiting.append(definitions[name])
            waiting += [value for key, value in found.items() if key != "$defs"]
        elif isinstance(found, list):
            waiting += found
    own = {key: value for key, value in schema.items() if key != "$defs"}
    return json.dumps([own, reached], sort_keys=True, default=repr)


def _union(options: Iterable[str]) -> str:
    unique = list(dict.fromkeys(options))
    return "Any" if "Any" in unique or not unique else " | ".join(unique)


def _literal(values: Iterable[Any]) -> str:
    known = list(values)
    if not known or not all(value is None or isinstance(value, str | int | bool) for value in known):
        return "Any"
    return f"Literal[{', '.join(repr(value) for value in known)}]"
