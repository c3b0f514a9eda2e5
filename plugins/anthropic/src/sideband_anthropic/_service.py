"""The description of Anthropic's service for the model client."""

from __future__ import annotations

from sideband_model_client import KeyForm, ModelService

from ._version import __version__

_KEY = KeyForm("x-api-key")

ANTHROPIC = ModelService(
    official="https://api.anthropic.com",
    key_form=_KEY,
    user_agent=f"sideband-anthropic/{__version__}",
    address_variable="ANTHROPIC_BASE_URL",
    key_variables={"ANTHROPIC_API_KEY": _KEY, "ANTHROPIC_AUTH_TOKEN": KeyForm("authorization", "Bearer ")},
    version_path="/v1",
    hints={400: "correct what the message names; check `options` and `betas`, which are sent unchanged"},
)
