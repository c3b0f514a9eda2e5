"""The prompt of a client as the input of an agent: a text, and attachments."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from acp.schema import (
    AudioContentBlock,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    ResourceContentBlock,
    TextContentBlock,
    TextResourceContents,
)
from sideband.messages import Attachment
from sideband.rendering import quoted, render, whole_characters
from sideband_agent import LARGEST_ATTACHMENT, AttachmentRefused, attachment_of

from ._errors import AcpPromptInvalid

Block = TextContentBlock | ImageContentBlock | AudioContentBlock | ResourceContentBlock | EmbeddedResourceContentBlock
_FILE = "file"
_LONGEST = 200


class PromptInput(NamedTuple):
    """What a user sends.

    Attributes:
        text: the text, followed by the texts that belong to it.
        attachments: images, recordings and files.
    """

    text: str
    attachments: Sequence[Attachment] = ()


def input_of(prompt: Sequence[Block], most: int) -> PromptInput:
    """Return the input that a prompt is.

    Args:
        prompt: the parts of the prompt.
        most: the maximum number of parts.

    Raises:
        AcpPromptInvalid: if a part cannot be used, or nothing is in it.
    """
    if len(prompt) > most:
        raise AcpPromptInvalid(f"the prompt has more than {most} parts", hint="send fewer files")
    said: list[str] = []
    context: list[str] = []
    attachments: list[Attachment] = []
    left = LARGEST_ATTACHMENT
    for part in prompt:
        match part:
            case TextContentBlock():
                said.append(part.text)
            case ResourceContentBlock():
                said.append(_mention(part.uri, part.name, said))
            case EmbeddedResourceContentBlock():
                name = _name_of(part.resource.uri)
                said.append(_mention(part.resource.uri, name, said))
                if isinstance(part.resource, TextResourceContents):
                    context.append(_wrapped(part.resource.uri, part.resource.text))
                    continue
                content, left = _decoded(part.resource.blob, left)
                found = _attached(name, content)
                context += [_wrapped(part.resource.uri, content.decode())] if found is None else []
                attachments += [] if found is None else [found]
            case ImageContentBlock() | AudioContentBlock():
                content, left = _decoded(part.data, left)
                found = _attached(part.type, content)
                if found is None or found.type != part.type:
                    raise AcpPromptInvalid(f"the {part.type} of the prompt is of another type", hint="send another one")
                attachments.append(found)
    text = whole_characters("\n\n".join(filter(None, ["".join(said), *context])))
    if not text.strip() and not attachments:
        raise AcpPromptInvalid("the prompt is empty", hint="enter text or attach a file")
    return PromptInput(text, attachments)


def _decoded(data: str, left: int) -> tuple[bytes, int]:
    try:
        content = b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise AcpPromptInvalid("a part of the prompt is not valid base64", hint="report this to the editor") from None
    if len(content) > left:
        limit = f"{LARGEST_ATTACHMENT >> 20} MiB"
        raise AcpPromptInvalid(f"the prompt exceeds the limit of {limit} for attachments", hint="attach less")
    return content, left - len(content)


def _attached(name: str, content: bytes) -> Attachment | None:
    try:
        return attachment_of(name, content)
    except AttachmentRefused as error:
        raise AcpPromptInvalid(error.message, hint=error.hint) from None


def _mention(uri: str, name: str, said: Sequence[str]) -> str:
    """Return how the text names a file or a page: by its path, which tools can read, or by its address."""
    space = " " if said and not said[-1][-1:].isspace() else ""
    parts = _split(uri)
    place = unquote(parts.path) if parts.scheme == _FILE else uri
    lines = f" ({unquote(parts.fragment)})" if parts.scheme == _FILE and parts.fragment else ""
    return f"{space}@{render(place or name)}{render(lines)}"


def _split(uri: str) -> SplitResult:
    try:
        return urlsplit(uri)
    except ValueError:
        raise AcpPromptInvalid(
            f"{quoted(uri[:_LONGEST])} is not an address", hint="report this to the editor"
        ) from None


def _name_of(uri: str) -> str:
    return PurePosixPath(unquote(_split(uri).path)).name or "file"


def _wrapped(uri: str, text: str) -> str:
    name = render(uri).replace('"', "%22").replace("<", "%3C").replace(">", "%3E")
    return f'<file name="{name}">\n{text.removesuffix(chr(10))}\n</file>'
