"""What a model sees of the result of a call."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from sideband.messages import ImagePart, TextPart
from sideband.tools import ToolOutput

_BEGINNINGS = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}
IMAGES = frozenset(_BEGINNINGS)
"""The media types that models see."""
_LARGEST_IMAGE = 5_000_000


def output_of(found: Mapping[str, Any]) -> ToolOutput:
    """Return the result of a call for a model. Parts that it cannot see are described."""
    parts = [part_of(one) for one in found["content"]]
    if not parts and found["structured"] is not None:
        return ToolOutput(found["structured"], is_error=found["is_error"])
    if all(isinstance(one, TextPart) for one in parts):
        text = "\n".join(one.text for one in parts if isinstance(one, TextPart))
        return ToolOutput(text or "[no output]", is_error=found["is_error"])
    return ToolOutput(parts, is_error=found["is_error"])


def is_image(data: str, media_type: str) -> bool:
    """Return whether data in Base64 is such an image, of a size that providers take.

    A provider refuses a conversation with any other one, now and later.
    """
    if len(data) > _LARGEST_IMAGE:
        return False
    try:
        raw = base64.b64decode(data, validate=True)
    except ValueError:
        return False
    return raw.startswith(_BEGINNINGS[media_type])


def part_of(one: Mapping[str, Any]) -> TextPart | ImagePart:
    """Return a part of a result, as a model sees it."""
    match one.get("type"):
        case "text":
            return TextPart(text=one["text"])
        case "image" if one["mimeType"] in IMAGES and is_image(one["data"], one["mimeType"]):
            return ImagePart(data=one["data"], media_type=one["mimeType"])
        case "resource_link":
            return TextPart(text=f"[resource {one['uri']}: {one.get('description') or one.get('name') or ''}]")
        case "resource" if "text" in one["resource"]:
            return TextPart(text=f"[resource {one['resource']['uri']}]\n{one['resource']['text']}")
        case "resource":
            return TextPart(text=f"[resource {one['resource']['uri']} is not text]")
        case kind:
            size = len(json.dumps(one))
            return TextPart(text=f"[a part of the type `{kind}` with {size:,} characters is not shown]")
