"""Change the settings file of the user. Comments and formatting are kept."""

from ._file import SETTINGS_FILE, SettingsFile, changed_settings, read_text, settings_path
from ._version import __version__

__all__ = ["SETTINGS_FILE", "SettingsFile", "__version__", "changed_settings", "read_text", "settings_path"]
