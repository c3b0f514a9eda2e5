"""Skill manifests: SKILL.md, AgentOS's readme.md and skill.yaml, read into a common form."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from attrs import evolve, field, frozen
from sideband.loading import STRICTER, Resume
from sideband.ops import Capability, CapabilityInvalid
from sideband.suggestions import did_you_mean

from ._frontmatter import SkillDocument, read_document, read_mapping
from ._problems import Problems, shown
from ._provides import read_provides
from ._skill_files import Identity, read_text
from ._skill_names import FORMAT_NAME, MAXIMUM_MODEL_NAME, key_of

_FORMAT_KEYS = frozenset({"name", "description", "license", "compatibility", "metadata", "allowed-tools"})
_OWN_KEYS = frozenset({"capabilities", "connections", "isolation", "memory", "provides", "resume", "timeout"})
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
HIDDEN = "disable-model-invocation"
"""A key of other programs, accepted among the keys of the format and under ``metadata``."""
_YES, _NO = frozenset({"true", "yes", "on", "1"}), frozenset({"", "false", "no", "off", "0"})
_MAXIMUM_SHOWN_KEYS = 10
_MAXIMUM_NAME = 200
_MAXIMUM_KEY = 64
_MAXIMUM_CAPABILITIES = 100
_MAXIMUM_ALLOWED = 256
_MAXIMUM_DESCRIPTION = 1024
_MAXIMUM_TIMEOUT = 86_400.0
_MEMORY = re.compile(r"(?P<number>[0-9]{1,15})[ ]?(?P<unit>|[KMGT](?:i?B)?)", re.IGNORECASE)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_MINIMUM_MEMORY = 32 << 20
_MAXIMUM_MEMORY = 16 << 40
# Linear: a parenthesis that is never closed ends at the next one.
_PRE_APPROVED = re.compile(r"[^\s,(]+(?:\([^()]*\))?")


@frozen
class Manifest:
    """The parts of ``SkillSpec`` that come from the manifest."""

    name: str
    key: str
    description: str
    instructions: str
    agentos: bool = False
    capabilities: tuple[str, ...] = ()
    timeout: float | None = None
    memory: int | None = None
    alone: bool = False
    resume: Resume = "replay"
    provides: Mapping[str, str] = field(factory=dict)
    connections: tuple[str, ...] = ()
    allowed_tools: tuple[str, ...] = ()
    license: str | None = None
    compatibility: str | None = None
    metadata: Mapping[str, str] = field(factory=dict)


@frozen
class _Source:
    """The raw keys and values, their file, and the keys that its format defines."""

    file: str
    values: dict[str, Any]
    body: str
    known: frozenset[str]
    agentos: bool = False


def read_manifest(
    folder: Path, file: str, files: Mapping[str, Identity], problems: Problems, *, package: str = ""
) -> Manifest | None:
    """Read a manifest as far as possible; return ``None`` if the file is unreadable.

    Args:
        folder: the skill's folder.
        file: its manifest, from ``_manifest_search``.
        files: the identities of the skill's files; no other file is read.
        problems: receives the problems.
        package: the name of its entry point for a skill in an installed package, whose folder is a module; else empty.
    """
    text = read_text(folder, file, files[file], problems) if file in files else None
    if text is None:
        problems.fail("manifest.unreadable", f"cannot read the manifest `{file}`", file=file)
        return None
    source = _source(text, file, problems)
    if "skill.yaml" in files and not file.lower().endswith((".yaml", ".yml")):
        source = _with_skill_yaml(folder, files["skill.yaml"], source, problems)
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
        resume=_resume(source, metadata, problems),
        provides=read_provides(source.file, metadata, problems),
        connections=_connections(source, metadata, problems),
        allowed_tools=_allowed_tools(source, problems),
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
        problems.warn("manifest.name", f"`{file}` is read as `SKILL.md`", "rename it; other tools require upper case")
    return _Source(file, _or_from_text(document, file, problems), document.body, _FORMAT_KEYS)


def _or_from_text(document: SkillDocument, file: str, problems: Problems) -> dict[str, Any]:
    if document.values is None:
        problems.warn(
            "frontmatter.missing",
            f"`{file}` has no frontmatter; using the folder's name, and the first paragraph as description",
            "start it with the lines `---`, `name:`, `description:`, `---`",
            file=file,
        )
    return document.values or {}


def _with_skill_yaml(folder: Path, identity: Identity, source: _Source, problems: Problems) -> _Source:
    """Add the keys of a skill.yaml that SKILL.md does not have."""
    text = read_text(folder, "skill.yaml", identity, problems)
    more = read_mapping(text, problems, file="skill.yaml") if text is not None else {}
    both = sorted(key for key in more.keys() & source.values.keys() if more[key] != source.values[key])
    if both:
        problems.warn(
            "manifest.both",
            f"`{source.file}` and `skill.yaml` differ in {', '.join(both)}; using `{source.file}`",
            "define each key in one file only",
        )
    return evolve(source, values={**more, **source.values}, known=source.known | _YAML_KEYS)


def _check_keys(source: _Source, problems: Problems) -> None:
    """Report keys in the wrong place, and all unknown keys in one line."""
    unknown: list[str] = []
    for key in source.values:
        if key in source.known or key == HIDDEN:
            continue
        if key in _OWN_KEYS:
            problems.warn(
                "key.place",
                f"the key `{key}` is accepted here, but rejected by the format's validator",
                f"write it as `sideband.{key}` under `metadata`",
                file=source.file,
            )
        else:
            unknown.append(key)
    if unknown:
        named = ", ".join(f"{shown(key)}{_suggestion(key, source.known)}" for key in unknown[:_MAXIMUM_SHOWN_KEYS])
        more = f" and {len(unknown) - _MAXIMUM_SHOWN_KEYS:,} more" if len(unknown) > _MAXIMUM_SHOWN_KEYS else ""
        one = len(unknown) == 1
        problems.warn(
            "key.unknown",
            f"unknown {'key' if one else 'keys'} {named}{more}; {'it is' if one else 'they are'} kept as metadata",
            "move custom keys to `metadata`",
            file=source.file,
        )


@lru_cache(1_024)
def _suggestion(key: str, known: frozenset[str]) -> str:
    """Return a suggestion for an unknown key. Published skills share their unknown keys, and comparing is slow."""
    return did_you_mean(key, sorted(known)) if len(key) <= _MAXIMUM_KEY else ""


def _name(folder: Path, source: _Source, problems: Problems, *, package: str) -> str:
    given = _line(source.values.get("id"))[:_MAXIMUM_NAME] or _line(source.values.get("name"))[:_MAXIMUM_NAME]
    if not given:
        if source.values:
            used = "entry point" if package else "folder"
            problems.warn(
                "name.missing", f"`name` is missing; using the name of the {used}", "add `name:`", file=source.file
            )
        return _line(package or folder.name) or "skill"
    expected = package or folder.name
    # The source folder of a package is its module, which cannot contain hyphens.
    is_module = folder.name == f"sideband_{key_of(given)}"
    if not (source.agentos or given == expected or is_module or (package and key_of(given) == key_of(expected))):
        problems.warn(
            "name.folder",
            f"the name {shown(given)} differs from its {'entry point' if package else 'folder'} `{expected}`",
            f"rename the skill or the {'entry point' if package else 'folder'}",
            file=source.file,
        )
    return given


def _key(name: str, source: _Source, problems: Problems) -> str:
    key = key_of(name)
    if not (FORMAT_NAME.match(name) and key == name.replace("-", "_")):
        problems.warn(
            "name.characters",
            f"the name {shown(name)} has characters that the format does not allow; tools are named `{key}.…`",
            "use lower-case letters, digits and single hyphens, starting with a letter",
            file=source.file,
        )
    longest = MAXIMUM_MODEL_NAME - len("__x")
    if len(key) > longest:
        problems.warn(
            "name.long",
            f"the name {shown(name)} is too long: with a tool's name it exceeds {MAXIMUM_MODEL_NAME} characters",
            "shorten it",
        )
        key = key[:longest].rstrip("_")
    return key


def _description(source: _Source, problems: Problems) -> str:
    description = _line(source.values.get("description"))
    if not description:
        description = _first_paragraph(source.body)
        # without frontmatter, this was already reported
        if source.values:
            problems.warn(
                "description.missing",
                "`description` is missing; using the first paragraph of the text",
                "add `description:` with what the skill does and when to use it",
                file=source.file,
            )
    if len(description) > _MAXIMUM_DESCRIPTION:
        problems.warn(
            "description.long",
            f"the description has {len(description):,} characters; using the first {_MAXIMUM_DESCRIPTION:,}",
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
        problems.warn("metadata", f"`metadata` must be a mapping, got {shown(raw)}", file=source.file)
    unknown = {key: _text(value) for key, value in values.items() if key not in source.known and key not in _OWN_KEYS}
    for key in metadata:
        if key.startswith("sideband.") and key.removeprefix("sideband.") not in _OWN_KEYS:
            problems.warn(
                "metadata.unknown",
                f"unknown key `{key}`{did_you_mean(key, [f'sideband.{own}' for own in _OWN_KEYS])}",
                file=source.file,
            )
        elif key in _OWN_KEYS:
            problems.warn(
                "metadata.unknown",
                f"unknown key `{key}` under `metadata`",
                f"write `sideband.{key}`",
                file=source.file,
            )
    return _with_hidden({**unknown, **metadata}, source, problems)


def _with_hidden(metadata: dict[str, str], source: _Source, problems: Problems) -> dict[str, str]:
    """Write the value of ``disable-model-invocation`` as ``true`` or ``false``."""
    if HIDDEN not in metadata:
        return metadata
    text = metadata[HIDDEN].strip().lower()
    if text not in _YES | _NO:
        problems.warn(
            "metadata.hidden",
            f"`{HIDDEN}` must be `true` or `false`, got {shown(metadata[HIDDEN])}; using `true`, the strictest value",
            "write `true` to hide the skill from models, or remove the key",
            file=source.file,
        )
    return {**metadata, HIDDEN: "false" if text in _NO else "true"}


def _capabilities(source: _Source, metadata: Mapping[str, str], problems: Problems) -> tuple[str, ...]:
    requested: dict[str, None] = {}
    for text in [metadata.get("sideband.capabilities", ""), _text(source.values.get("capabilities"))]:
        for word in text.split():
            problems.meter.check()
            try:
                capability = str(Capability.parse(word))
            except CapabilityInvalid as error:
                problems.warn("capability", f"{error.message}; it is ignored", error.hint, file=source.file)
                continue
            requested[capability] = None
    if len(requested) > _MAXIMUM_CAPABILITIES:
        problems.fail(
            "capability.many",
            f"the skill requests {len(requested):,} capabilities, more than the limit of {_MAXIMUM_CAPABILITIES}",
            "combine them: values of a field are separated by `|`",
            file=source.file,
        )
    return tuple(requested)


def _timeout(source: _Source, metadata: Mapping[str, str], problems: Problems) -> float | None:
    text = metadata.get("sideband.timeout") or _text(source.values.get("timeout"))
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= _MAXIMUM_TIMEOUT:
        problems.warn(
            "timeout", f"the timeout must be a number of seconds up to a day, got {shown(text)}", file=source.file
        )
        return None
    return seconds


def _memory(source: _Source, metadata: Mapping[str, str], problems: Problems) -> int | None:
    text = metadata.get("sideband.memory") or _text(source.values.get("memory"))
    if not text:
        return None
    found = _MEMORY.fullmatch(text)
    size = int(found["number"]) * _UNITS[found["unit"][:1].upper()] if found else 0
    if not _MINIMUM_MEMORY <= size <= _MAXIMUM_MEMORY:
        problems.warn(
            "memory",
            f"`sideband.memory` must be a size from 32M to 16T, got {shown(text)}; using the policy's value",
            "write a number of bytes, or a size such as `512M` or `2G`",
            file=source.file,
        )
        return None
    return size


def _alone(source: _Source, metadata: Mapping[str, str], problems: Problems) -> bool:
    text = metadata.get("sideband.isolation") or _text(source.values.get("isolation"))
    if text and text != "call":
        problems.warn(
            "isolation",
            f"`sideband.isolation` must be `call`, got {shown(text)}; using `call`, the strictest value",
            "write `call` for one worker per call, or remove the key",
            file=source.file,
        )
    return bool(text)


def _resume(source: _Source, metadata: Mapping[str, str], problems: Problems) -> Resume:
    text = metadata.get("sideband.resume") or _text(source.values.get("resume"))
    for known in STRICTER:
        if text == known:
            return known
    if text:
        problems.warn(
            "resume",
            f"`sideband.resume` must be `replay`, `ask` or `never`, got {shown(text)}; using `never`, the strictest "
            "value",
            "write `ask` or `never` to be stricter than the policy, or remove the key",
            file=source.file,
        )
        return "never"
    return "replay"


def _connections(source: _Source, metadata: Mapping[str, str], problems: Problems) -> tuple[str, ...]:
    named = metadata.get("sideband.connections", "").split()
    declared = source.values.get("connections")
    more = list(declared) if isinstance(declared, Mapping) else _text(declared).split()
    connections = tuple(dict.fromkeys([*named, *more]))
    if connections:
        problems.warn(
            "connections.unused",
            f"`sideband.connections` is not supported yet, got {shown(' '.join(connections))}",
            "request what the skill needs in `sideband.capabilities`",
            file=source.file,
        )
    return connections


def _allowed_tools(source: _Source, problems: Problems) -> tuple[str, ...]:
    value = source.values.get("allowed-tools")
    if isinstance(value, list):
        found = [_text(item) for item in value if _text(item)]
    else:
        found = _PRE_APPROVED.findall(_text(value))
    if len(found) > _MAXIMUM_ALLOWED:
        problems.warn(
            "allowed_tools.many",
            f"`allowed-tools` has {len(found):,} entries; using the first {_MAXIMUM_ALLOWED}",
            "use patterns",
            file=source.file,
        )
    return tuple(found[:_MAXIMUM_ALLOWED])


def _line(value: Any) -> str:
    """Return a value as one line of printable text."""
    text = " ".join(_text(value).split())
    return text if text.isprintable() else "".join(filter(str.isprintable, text))


def _text(value: Any) -> str:
    """Return any value as text: lists as words, mappings as JSON."""
    match value:
        case None:
            return ""
        case str():
            return value.strip()
        case list() if all(isinstance(item, str) for item in value):
            return " ".join(value)
        case _:
            return json.dumps(value, ensure_ascii=False)
