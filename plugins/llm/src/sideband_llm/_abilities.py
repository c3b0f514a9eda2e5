"""Whether a model can do what a request asks for, as far as its provider says."""

from __future__ import annotations

from sideband.messages import AssistantMessage, ImagePart
from sideband.providers import ModelInfo, ModelRequest

from ._errors import ModelUnable
from ._model_names import ModelName


def ability(info: ModelInfo, name: str) -> bool | None:
    """Whether a model can deal with ``images``, ``thinking`` or ``tools``; ``None`` if its provider doesn't say."""
    return bool(getattr(info, name)) if name in info.model_fields_set else None


def check_abilities(name: ModelName, request: ModelRequest, info: ModelInfo | None) -> None:
    """Refuse what the model can't do. What its provider says nothing about is left to the model.

    Raises:
        ModelUnable: it can't deal with images, with thinking, or with tools.
    """
    if info is None:
        return
    if _has_images(request) and ability(info, "images") is False:
        raise ModelUnable(str(name), "images", "use a model that can, or leave the images out")
    if request.thinking not in (None, "off") and ability(info, "thinking") is False:
        raise ModelUnable(str(name), "thinking", "leave `thinking` out, or use a model that thinks")
    if request.tools and request.tool_choice != "none" and ability(info, "tools") is False:
        raise ModelUnable(str(name), "tools", "use a model that can call tools, or send none")


def _has_images(request: ModelRequest) -> bool:
    return any(
        isinstance(part, ImagePart)
        for message in request.messages
        if not isinstance(message, AssistantMessage)
        for part in message.content
    )
