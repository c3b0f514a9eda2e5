"""Checks whether a model supports what a request needs, according to its provider."""

from __future__ import annotations

from sideband.messages import AssistantMessage, AudioPart, FilePart, ImagePart, ImageUrlPart
from sideband.providers import ModelInfo, ModelRequest

from ._errors import ModelUnable
from ._model_names import ModelName

_NEEDS: dict[str, tuple[type, ...]] = {
    "images": (ImagePart, ImageUrlPart),
    "files": (FilePart,),
    "audio": (AudioPart,),
}


def ability(info: ModelInfo, name: str) -> bool | None:
    """Return whether a model has an ability, such as ``images`` or ``tools``, or ``None`` if that is unknown."""
    return bool(getattr(info, name)) if name in info.model_fields_set else None


def check_abilities(name: ModelName, request: ModelRequest, info: ModelInfo | None) -> None:
    """Check that the model supports what the request needs. Unknown abilities pass.

    Raises:
        ModelUnable: if the model does not support one of them.
    """
    if info is None:
        return
    for name_of_ability, kinds in _NEEDS.items():
        if ability(info, name_of_ability) is False and _has(request, kinds):
            hint = f"remove the {name_of_ability}, or use a model that supports {name_of_ability}"
            raise ModelUnable(str(name), name_of_ability, hint)
    if request.thinking not in (None, "off") and ability(info, "thinking") is False:
        raise ModelUnable(str(name), "thinking", "remove `thinking`, or use a model that supports it")
    if request.tools and request.tool_choice != "none" and ability(info, "tools") is False:
        raise ModelUnable(str(name), "tools", "remove the tools, or use a model that supports them")


def _has(request: ModelRequest, kinds: tuple[type, ...]) -> bool:
    return any(
        isinstance(part, kinds) and not (isinstance(part, FilePart) and part.media_type.startswith("text/"))
        for message in request.messages
        if not isinstance(message, AssistantMessage)
        for part in message.content
    )
