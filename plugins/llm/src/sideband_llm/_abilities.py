"""Checks whether a model supports what a request needs, according to its provider."""

from __future__ import annotations

from sideband.messages import AssistantMessage, ImagePart
from sideband.providers import ModelInfo, ModelRequest

from ._errors import ModelUnable
from ._model_names import ModelName


def ability(info: ModelInfo, name: str) -> bool | None:
    """Return whether a model supports ``images``, ``thinking`` or ``tools``, or ``None`` if that is unknown."""
    return bool(getattr(info, name)) if name in info.model_fields_set else None


def check_abilities(name: ModelName, request: ModelRequest, info: ModelInfo | None) -> None:
    """Check that the model supports what the request needs. Unknown abilities pass.

    Raises:
        ModelUnable: if the model does not support images, thinking or tools.
    """
    if info is None:
        return
    if _has_images(request) and ability(info, "images") is False:
        raise ModelUnable(str(name), "images", "remove the images, or use a model that supports them")
    if request.thinking not in (None, "off") and ability(info, "thinking") is False:
        raise ModelUnable(str(name), "thinking", "remove `thinking`, or use a model that supports it")
    if request.tools and request.tool_choice != "none" and ability(info, "tools") is False:
        raise ModelUnable(str(name), "tools", "remove the tools, or use a model that supports them")


def _has_images(request: ModelRequest) -> bool:
    return any(
        isinstance(part, ImagePart)
        for message in request.messages
        if not isinstance(message, AssistantMessage)
        for part in message.content
    )
