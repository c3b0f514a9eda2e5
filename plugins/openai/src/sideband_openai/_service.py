"""The descriptions of OpenAI's service and compatible ones for the model client."""

from __future__ import annotations

from attrs import evolve
from sideband_model_client import KeyForm, ModelService, ServiceAddress

from ._config import OpenAIService
from ._version import __version__

_BEARER = KeyForm("authorization", "Bearer ")
_AZURE = KeyForm("api-key")
_OPENAI = ModelService(
    official="https://api.openai.com/v1",
    key_form=_BEARER,
    user_agent=f"sideband-openai/{__version__}",
    without_key="use a server on this machine, such as openai-ollama:MODEL",
)


def model_service(service: OpenAIService, *, environment: bool) -> ModelService:
    """Return the service for a configuration.

    Args:
        service: the configuration.
        environment: whether to read ``OPENAI_API_KEY`` and ``OPENAI_BASE_URL``.
    """
    form = _AZURE if service.api_version is not None else _BEARER
    if not environment:
        return evolve(_OPENAI, key_form=form)
    return evolve(_OPENAI, key_form=form, address_variable="OPENAI_BASE_URL", key_variables={"OPENAI_API_KEY": form})


def is_official(address: ServiceAddress) -> bool:
    """Return whether the address is OpenAI's own service."""
    return address.origin == "https://api.openai.com"
