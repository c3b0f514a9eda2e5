"""Model servers that may run on this machine, on their default ports."""

from __future__ import annotations

from collections.abc import Iterator

from ._config import OpenAIService
from ._provider import OpenAIProvider

_PORTS = {"ollama": 11_434, "vllm": 8_000, "llamacpp": 8_080, "lmstudio": 1_234}
_CONNECT_SECONDS = 0.5


def guessed_providers() -> Iterator[OpenAIProvider]:
    """Yield a provider for each of them. A server is contacted only when its models are listed or used."""
    for name, port in _PORTS.items():
        service = OpenAIService(base_url=f"http://127.0.0.1:{port}/v1", connect_timeout=_CONNECT_SECONDS)
        yield OpenAIProvider(f"openai-{name}", service, is_guessed=True)
