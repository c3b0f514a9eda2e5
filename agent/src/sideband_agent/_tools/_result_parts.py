"""Convert a tool's result to message parts of bounded size that every provider accepts."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import Any

from sideband.active_skills import ALLOWED_KEY
from sideband.broker import Redaction, Unserializable
from sideband.messages import ImagePart, TextPart
from sideband.rendering import whole_characters
from sideband.tools import RESULT_LIMITS

_OURS = frozenset(
    {
        *("code", "coerced", "denied", "effect", "error_class", "hint", "ms", "output", "plugin"),
        *("repaired", "replay", "replayed", "unknown", "withheld_by"),
    }
)
_OF_SKILLS = frozenset({"effects", "isolation"})
_OF_PLUGINS = frozenset({ALLOWED_KEY})
_SIGNATURES = {
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/webp": (b"RIFF",),
}


def as_parts(content: Any) -> Sequence[TextPart | ImagePart]:
    """Convert the return value of a tool, or its replacement by a plugin, to message parts."""
    if isinstance(content, str):
        return [TextPart(text=content)]
    if isinstance(content, TextPart | ImagePart):
        return [content]
    if isinstance(content, list | tuple) and content:
        parts = [_as_part(one) for one in content]
        if None not in parts:
            return [part for part in parts if part is not None]
    return [TextPart(text=json.dumps(content, ensure_ascii=False, default=str))]


def redacted(content: Any, redactor: Redaction) -> Any:
    """Return the data that a tool or a plugin returned with secrets redacted as in results of skills.

    Texts are returned unchanged: they are redacted later.
    """
    if isinstance(content, str | TextPart | ImagePart):
        return content
    try:
        return redactor.data(content)
    except Unserializable:
        text = json.dumps(content, ensure_ascii=False, default=str)
        return redactor.data(json.loads(text, parse_constant=str))


def fitted_parts(content: Any) -> Sequence[TextPart | ImagePart]:
    """Return the parts of a result, with texts joined and invalid images replaced by a note."""
    given = as_parts(content)
    if len(given) == 1 and isinstance(given[0], TextPart) and given[0].text.isascii():
        return given
    parts: list[TextPart | ImagePart] = []
    images = 0
    texts: list[str] = []
    for part in given:
        if isinstance(part, TextPart):
            texts.append(part.text)
            continue
        images += 1
        problem = _problem(part) if images <= RESULT_LIMITS.images else f"the limit is {RESULT_LIMITS.images} images"
        if problem:
            texts.append(f"[image omitted: {problem}]")
            continue
        if texts:
            parts.append(TextPart(text=whole_characters("\n".join(texts))))
            texts = []
        parts.append(part)
    if texts or not parts:
        parts.append(TextPart(text=whole_characters("\n".join(texts))))
    return parts


def fitted_metadata(given: Mapping[str, Any], redactor: Redaction, *, source: str) -> dict[str, Any]:
    """Return the metadata of a result without the reserved names; empty if it is too large.

    Args:
        given: the metadata that the tool returned.
        redactor: removes secrets from it.
        source: the source of the tool. The host makes the metadata of the tools of skills; tools of plugins alone can
            say what the user has granted to be pre-approved.
    """
    if not given:
        return {}
    reserved = _OURS if source.startswith("skill ") else _OURS | _OF_SKILLS
    reserved = reserved if source.startswith("plugin ") else reserved | _OF_PLUGINS
    try:
        text = json.dumps({str(name): value for name, value in given.items() if name not in reserved}, default=str)
    except (ValueError, TypeError, RecursionError):
        return {}
    if len(text) > RESULT_LIMITS.metadata:
        return {}
    kept: dict[str, Any] = redactor.data(json.loads(text, parse_constant=str))
    return kept


def _as_part(value: Any) -> TextPart | ImagePart | None:
    if isinstance(value, TextPart | ImagePart):
        return value
    if isinstance(value, Mapping) and value.get("type") in ("text", "image"):
        kind = TextPart if value["type"] == "text" else ImagePart
        try:
            return kind.model_validate(dict(value))
        except ValueError:
            return None
    return None


def _problem(image: ImagePart) -> str:
    """Return why models would reject an image, or "". A rejected image would fail every later request too."""
    signatures = _SIGNATURES.get(image.media_type)
    if signatures is None:
        return f"{image.media_type} is not one of {', '.join(_SIGNATURES)}"
    if len(image.data) > RESULT_LIMITS.image // 3 * 4 + 4:
        return f"it exceeds the limit of {RESULT_LIMITS.image:,} bytes"
    try:
        content = b64decode(image.data, validate=True)
    except ValueError:
        return "it is not valid base64"
    return "" if content.startswith(signatures) else f"its content is not {image.media_type}"
