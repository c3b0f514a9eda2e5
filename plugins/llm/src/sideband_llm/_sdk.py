"""Functions for skills in addition to the generated ones. Standard library only."""

from typing import Any

from sideband.skill import dispatch

__all__ = ["ask"]


async def ask(model: str, text: str, **options: Any) -> str:
    """Call a model and return the text of its response. Takes the parameters of ``llm.generate`` except ``messages``.

    Example:
        summary = await llm.ask("openai:MODEL", f"Summarize in one sentence: {page}", max_tokens=200)
    """
    params = {"model": model, "messages": [{"role": "user", "content": text}], **options}
    message = await dispatch("llm.generate", params)
    return "".join(part["text"] for part in message["content"] if part["type"] == "text")
