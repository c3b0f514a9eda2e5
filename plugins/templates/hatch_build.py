"""Add the templates to the packages that are built: they are in the root of the repository."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Templates(BuildHookInterface[Any]):
    """Adds the template folders of the repository, or those of the source distribution that is built from."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the folders, except to an editable installation, which uses those of the repository."""
        if version == "editable":
            return
        root = Path(self.root)
        templates = sorted(root.glob("cookiecutter-*")) or sorted(root.parents[1].glob("cookiecutter-*"))
        target = "sideband_templates/" if self.target_name == "wheel" else ""
        build_data["force_include"] |= {str(folder): f"{target}{folder.name}" for folder in templates}
