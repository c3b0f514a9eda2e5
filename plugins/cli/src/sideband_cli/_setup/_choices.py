"""What the setup of a first start has chosen, and its settings."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import field, frozen
from sideband.command_line import load_options, run_async
from sideband.state import default_home

from .._settings._checks import check_file


@frozen
class Choices:
    """The answers to the questions of the setup.

    Attributes:
        model: the model, as `provider:model`; empty for none yet.
        services: more OpenAI-compatible services, by name.
        folders: more folders of skills.
    """

    model: str = ""
    services: Mapping[str, Mapping[str, Any]] = field(factory=dict)
    folders: tuple[str, ...] = ()

    def write(self, arguments: Namespace) -> Path:
        """Write the choices to the settings of the user, if they are valid, and return the file.

        Raises:
            ConfigurationError: if the settings are invalid.
            StateUnwritable: if the file cannot be written.
        """
        from sideband_settings_file import changed_settings

        loaded = load_options(arguments, tolerant=True)
        with changed_settings(default_home()) as file:
            if self.model:
                file.set(("agent", "model"), self.model)
            for name, table in self.services.items():
                file.set(("plugins", "openai", "services", name), table)
            if self.folders:
                before = file.get(("skills", "folders")) or []
                file.set(("skills", "folders"), list(dict.fromkeys([*before, *self.folders])))
            run_async(lambda: check_file(file, loaded, ["openai"] if self.services else []))
        return file.path


def folders_in(text: str) -> tuple[list[str], list[str]]:
    """Return the folders that a text names, separated by commas, and those of them that do not exist.

    A relative path is one of the working directory.
    """
    names = [one.strip() for one in text.split(",") if one.strip()]
    # `expanduser` of pathlib raises an exception for an unknown user.
    paths = [str(Path(os.path.expanduser(name)).absolute()) for name in names]  # noqa: PTH111
    return paths, [path for path in paths if not Path(path).is_dir()]
