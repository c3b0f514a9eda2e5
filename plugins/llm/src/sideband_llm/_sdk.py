"""Functions for skills in addition to the generated ones. Standard library only."""

# mypy: disable-error-code="import-not-found, misc"
# The types are generated with the functions, so they exist only beside them: `sideband sdk stubs` writes both.

from __future__ import annotations

from typing import TYPE_CHECKING

from sideband.skill import dispatch

if TYPE_CHECKING:
    from typing import Unpack

    from sideband_sdk.llm import GenerateOptions

__all__ = ["ask"]


async def ask(model: str, text: str, **options: Unpack[GenerateOptions]) -> str:
    """Call a model and return the text of its response. Takes the parameters of ``llm.generate`` except ``messages``.

    Example:
        summary = await llm.ask("openai:MODEL", f"Summarize in one sentence: {page}", max_tokens=200)
    """
    params = {"model": model, "messages": [{"role": "user", "content": text}], **options}
    message = await dispatch("llm.generate", params)
    return "".join(part["text"] for part in message["content"] if part["type"] == "text")
