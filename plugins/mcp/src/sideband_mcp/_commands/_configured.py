"""The servers in the settings file of the user."""

from __future__ import annotations

from pydantic import ValidationError
from sideband.errors import ConfigurationError
from sideband.validation import problem_text
from sideband_settings_file import SettingsFile

from .._config import Config

_PLUGIN = ("plugins", "mcp")
SERVERS = (*_PLUGIN, "servers")
"""The path of the tables of the servers."""


def check_configuration(file: SettingsFile) -> None:
    """Check the table of the plugin.

    Raises:
        ConfigurationError: if it is invalid.
    """
    try:
        Config.model_validate(file.get(_PLUGIN) or {})
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, (*_PLUGIN, *first["loc"])))
        raise ConfigurationError(key, problem_text(first), source=str(file.path)) from None
