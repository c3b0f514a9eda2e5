"""What a skill says about itself: SKILL.md, AgentOS's readme.md, and skill.yaml, in one form."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from attrs import evolve, field, frozen
from sideband.ops import Capability, CapabilityInvalid
from sideband.suggestions import did_you_mean

from ._frontmatter import SkillDocument, read_document, read_mapping
from ._problems import Problems, shown
from ._skill_files import read_text
from ._skill_names import FORMAT_NAME, MAXIMUM_MODEL_NAME, key_of

_FORMAT_KEYS = frozenset({"name", "description", "license", "compatibility", "metadata", "allowed-tools"})
_OWN_KEYS = frozenset({"capabilities", "connections", "isolation", "memory", "timeout"})
_AGENTOS_KEYS = frozenset(
    {
        "accounts",
        "capabilities",
        "color",
        "connections",
        "description",
        "id",
        "name",
        "operations",
        "privacy_url",
        "product",
        "sources",
        "terms_url",
        "test",
        "tools",
        "website",
    }
)
_YAML_KEYS = frozenset({"id", "name", "description", "scenarios", "activation", "instructions"})
_MAXIMUM_NAME = 200
_MAXIMUM_DESCRIPTION = 1024
_MAXIMUM_TIMEOUT = 86_400.0
_MEMORY = re.compile(r"(?P<number>[0-9]{1,15})[ ]?(?P<unit>|[KMGT](?:i?B)?)", re.IGNORECASE)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_LEAST_MEMORY = 32 << 20
_MOST_MEMORY = 16 << 40
_PRE_APPROVED = re.compile(r"[^\s,(]+(?:\([^)]*\))?")


@frozen
class Manifest:
    """The parts of ``SkillSpec`` that come from what the skill says about itself."""

    name: str
    key: str
    description: str
    instructions: str
    agentos: bool = False
    capabilities: tuple[str, ...] = ()
    timeout: float | None = None
    memory: int | None = None
    alone: bool = False
    connections: tuple[str, ...] = ()
    allowed_tools: tuple[str, ...] = ()
    license: str | None = None
    compatibility: str | None = None
    metadata: Mapping[str, str] = field(factory=dict)


@frozen
class _Source:
    """The raw keys and values, where they stand, and which keys that form knows."""

    file: str
    values: dict[str, Any]
    body: str
    known: frozenset[str]
    agentos: bool = False


def manifest_file(folder: Path) -> str | None:
    """The file that makes this folder a skill: SKILL.md, then skill.yaml, then a readme.md in the AgentOS form."""
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return None
    names = sorted(entry.name for entry in entries if not entry.is_dir(follow_symlinks=False))
    for wanted in ("SKILL.md", "skill.md", "skill.yaml", "skill.yml"):
        found = [name for name in names if name == wanted] or [name for name in names if name.lower() == wanted.lower()]
        if found:
            return found[0]
    # a readme is opened to be told apart, so it must be the folder's own; others are only named here
    readmes = [entry for entry in entries if entry.name.lower() == "readme.md" and entry.is_file(follow_symlinks=False)]
    return next((entry.name for entry in readmes if _is_agentos(folder, entry.name)), None)


def _is_agentos(folder: Path, name: str) -> bool:
    """Whether a readme is a skill's: most are just text."""
    unheard = Problems(source=str(folder))
    text = read_text(folder, name, unheard)
    values = read_document(text, unheard, file=name).values if text is not None else None
    return values is not None and bool(values.get("id") or values.get("name"))


def read_manifest(
    folder: Path, file: str, files: Collection[str], problems: Problems, *, package: str = ""
) -> Manifest | None:
    """Understand as much as there is, or ``None`` if the file can't be read at all.

    Args:
        folder: the skill's folder.
        file: its manifest, as ``manifest_file`` says.
        files: what belongs to the skill; nothing else is read.
        problems: takes what is odd.
        package: the entry point that an installed package declares it under, if it is one; its folder is a module.
    """
    text = read_text(folder, file, problems) if file in files else None
    if text is None:
        problems.fail("manifest.unreadable", f"`{file}` can't be read, so nothing is known about the skill", file=file)
        return None
    source = _source(text, file, problems)
    if "skill.yaml" in files and not file.lower().endswith((".yaml", ".yml")):
        source = _with_skill_yaml(folder, source, problems)
    _check_keys(source, problems)
    values = source.values
    name = _name(folder, source, problems, package=package)
    metadata = _metadata(source, values, problems)
    return Manifest(
        name=name,
        key=_key(name, source, problems),
        description=_description(source, problems),
        instructions=source.body,
        agentos=source.agentos,
        capabilities=_capabilities(source, metadata, problems),
        timeout=_timeout(source, metadata, problems),
        memory=_memory(source, metadata, problems),
        alone=_alone(source, metadata, problems),
        connections=_connections(source, metadata, problems),
        allowed_tools=_allowed_tools(values.get("allowed-tools")),
        license=_text(values.get("license")) or None,
        compatibility=_text(values.get("compatibility")) or None,
        metadata=metadata,
    )


def _source(text: str, file: str, problems: Problems) -> _Source:
    if file.lower().endswith((".yaml", ".yml")):
        values = read_mapping(text, problems, file=file)
        return _Source(file, values, _text(values.get("instructions")), _FORMAT_KEYS | _YAML_KEYS)
    document = read_document(text, problems, file=file)
    if file.lower() == "readme.md":
        return _Source(file, document.values or {}, document.body, _AGENTOS_KEYS, agentos=True)
    if file != "SKILL.md":
        problems.warn("manifest.name", f"`{file}` is read as `SKILL.md`", "rename it; other tools need the capitals")
    return _Source(file, _or_from_text(document, file, problems), document.body, _FORMAT_KEYS)


def _or_from_text(document: SkillDocument, file: str, problems: Problems) -> dict[str, Any]:
    if document.values is None:
        problems.warn(
            "frontmatter.missing",
            f"`{file}` has no frontmatter; the name is the folder's and the description the first paragraph",
            "begin it with `---`, `name:`, `description:`, `---`",
            file=file,
        )
    return document.values or {}


def _with_skill_yaml(folder: Path, source: _Source, problems: Problems) -> _Source:
    """Fill in from a skill.yaml beside SKILL.md what is not said there."""
    text = read_text(folder, "skill.yaml", problems)
    more = read_mapping(text, problems, file="skill.yaml") if text is not None else {}
    both = sorted(key for key in more.keys() & source.values.keys() if more[key] != source.values[key])
    if both:
        problems.warn(
            "manifest.both",
            f"`{source.file}` and `skill.yaml` differ on {', '.join(both)}; `{source.file}` counts",
            "say it in one place",
        )
    return evolve(source, values={**more, **source.values}, known=source.known | _YAML_KEYS)


def _check_keys(source: _Source, problems: Problems) -> None:
    for key in source.values:
        if key in source.known:
            continue
        if key in _OWN_KEYS:
            problems.warn(
                "key.place",
                f"the key `{key}` is read here, but the format's validator refuses it",
                f"write it as `sideband.{key}` under `metadata`",
                file=source.file,
            )
            continue
        problems.warn(
            "key.unknown",
            f"the key {shown(key)} is unknown{did_you_mean(key, source.known)}; it is kept as metadata",
            "put keys of your own under `metadata`",
            file=source.file,
        )


def _name(folder: Path, source: _Source, problems: Problems, *, package: str) -> str:
    given = _line(source.values.get("id"))[:_MAXIMUM_NAME] or _line(source.values.get("name"))[:_MAXIMUM_NAME]
    if not given:
        if source.values:
            problems.warn("name.missing", "it has no `name`; the folder's is used", "add `name:`", file=source.file)
        return folder.name
    expected = package or folder.name
    if not (source.agentos or given == expected or (package and key_of(given) == key_of(expected))):
        problems.warn(
            "name.folder",
            f"the name {shown(given)} is not {'its entry point' if package else 'the folder'}'s, `{expected}`",
            f"name the {'entry point' if package else 'folder'} like the skill",
            file=source.file,
        )
    return given


def _key(name: str, source: _Source, problems: Problems) -> str:
    key = key_of(name)
    if not (FORMAT_NAME.match(name) and key == name.replace("-", "_")):
        problems.warn(
            "name.characters",
            f"the name {shown(name)} has other characters than the format allows; tools are called `{key}.…`",
            "use lower-case letters, digits and single hyphens, and begin with a letter",
            file=source.file,
        )
    longest = MAXIMUM_MODEL_NAME - len("__x")
    if len(key) > longest:
        problems.warn(
            "name.long", f"the name {shown(name)} leaves no room for a tool's name in 64 characters", "shorten it"
        )
        key = key[:longest].rstrip("_")
    return key


def _description(source: _Source, problems: Problems) -> str:
    description = _line(source.values.get("description"))
    if not description:
        description = _first_paragraph(source.body)
        # without any frontmatter, that has been said already
        if source.values:
            problems.warn(
                "description.missing",
                "the description is empty; the first paragraph of the text is used",
                "add `description:`, what it does and when to use it",
                file=source.file,
            )
    if len(description) > _MAXIMUM_DESCRIPTION:
        problems.warn(
            "description.long",
            f"the description has {len(description):,} characters; the first {_MAXIMUM_DESCRIPTION:,} are used",
            "move details into the text below",
            file=source.file,
        )
        description = description[: _MAXIMUM_DESCRIPTION - 1].rstrip() + "…"
    return description


def _first_paragraph(body: str) -> str:
    for paragraph in re.split(r"\n[ \t]*\n", body):
        lines = [line.strip() for line in paragraph.splitlines() if not line.lstrip().startswith(("#", "```", "---"))]
        text = _line(" ".join(lines))
        if text:
            return text
    return ""


def _metadata(source: _Source, values: Mapping[str, Any], problems: Problems) -> dict[str, str]:
    raw = values.get("metadata", {})
    metadata: dict[str, str] = {}
    if isinstance(raw, Mapping):
        for key, value in raw.items():
            if key == "sideband" and isinstance(value, Mapping):
                metadata |= {f"sideband.{inner}": _text(what) for inner, what in value.items()}
            else:
                metadata[key] = _text(value)
    elif raw:
        problems.warn("metadata", f"`metadata` is {shown(raw)} and not keys with values", file=source.file)
    unknown = {key: _text(value) for key, value in values.items() if key not in source.known and key not in _OWN_KEYS}
    for key in metadata:
        if key.startswith("sideband.") and key.removeprefix("sideband.") not in _OWN_KEYS:
            problems.warn(
                "metadata.unknown",
                f"`{key}` means nothing{did_you_mean(key, [f'sideband.{own}' for own in _OWN_KEYS])}",
                file=source.file,
            )
        elif key in _OWN_KEYS:
            problems.warn(
                "metadata.unknown", f"`{key}` under `metadata` means nothing; write `sideband.{key}`", file=source.file
            )
    return {**unknown, **metadata}


def _capabilities(source: _Source, metadata: Mapping[str, str], problems: Problems) -> tuple[str, ...]:
    asked: list[str] = []
    for text in [metadata.get("sideband.capabilities", ""), _text(source.values.get("capabilities"))]:
        for word in text.split():
            try:
                capability = str(Capability.parse(word))
            except CapabilityInvalid as error:
                problems.warn("capability", f"{error.message}; it is not asked for", error.hint, file=source.file)
                continue
            if capability not in asked:
                asked.append(capability)
    return tuple(asked)


def _timeout(source: _Source, metadata: Mapping[str, str], problems: Problems) -> float | None:
    text = metadata.get("sideband.timeout") or _text(source.values.get("timeout"))
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= _MAXIMUM_TIMEOUT:
        problems.warn("timeout", f"the timeout {shown(text)} is no number of seconds up to a day", file=source.file)
        return None
    return seconds


def _memory(source: _Source, metadata: Mapping[str, str], problems: Problems) -> int | None:
    text = metadata.get("sideband.memory") or _text(source.values.get("memory"))
    if not text:
        return None
    found = _MEMORY.fullmatch(text)
    size = int(found["number"]) * _UNITS[found["unit"][:1].upper()] if found else 0
    if not _LEAST_MEMORY <= size <= _MOST_MEMORY:
        problems.warn(
            "memory",
            f"the memory {shown(text)} (`sideband.memory`) is no number of bytes from 32M to 16T; the policy's counts",
            "write bytes, or `512M`, `2G`",
            file=source.file,
        )
        return None
    return size


def _alone(source: _Source, metadata: Mapping[str, str], problems: Problems) -> bool:
    text = metadata.get("sideband.isolation") or _text(source.values.get("isolation"))
    if text and text != "call":
        problems.warn(
            "isolation",
            f"the isolation {shown(text)} (`sideband.isolation`) means nothing; it is taken for the strictest, `call`",
            "write `call` for a worker of its own for each call, or leave it out",
            file=source.file,
        )
    return bool(text)


def _connections(source: _Source, metadata: Mapping[str, str], problems: Problems) -> tuple[str, ...]:
    named = metadata.get("sideband.connections", "").split()
    declared = source.values.get("connections")
    more = list(declared) if isinstance(declared, Mapping) else _text(declared).split()
    connections = tuple(dict.fromkeys([*named, *more]))
    if connections:
        problems.warn(
            "connections.unused",
            f"the connections {shown(' '.join(connections))} (`sideband.connections`) are not used yet",
            "ask for what the skill needs under `sideband.capabilities`",
            file=source.file,
        )
    return connections


def _allowed_tools(value: Any) -> tuple[str, ...]:
    if isinstance(value, list):
        return tuple(_text(item) for item in value if _text(item))
    return tuple(_PRE_APPROVED.findall(_text(value)))


def _line(value: Any) -> str:
    """A value as one line that does nothing to a terminal."""
    return "".join(character for character in " ".join(_text(value).split()) if character.isprintable())


def _text(value: Any) -> str:
    """Any value as the text it stands for: lists as words, mappings as JSON."""
    match value:
        case None:
            return ""
        case str():
            return value.strip()
        case list() if all(isinstance(item, str) for item in value):
            return " ".join(value)
        case _:
            return json.dumps(value, ensure_ascii=False)
