"""Each file and command of the tutorials works in a new environment, without a network."""

import os
import subprocess
from pathlib import Path

import pytest


class Reader:
    """Follows the tutorials in one environment, which the first of them creates.

    The folder `wheels` has our packages. Packages are built without an environment of their own, which would need a
    network.
    """

    def __init__(self, root, index, folder):
        self.folder = folder
        (folder / "wheels").symlink_to(index)
        self.variables = {
            **{name: value for name, value in os.environ.items() if not name.startswith("SIDEBAND_")},
            "PATH": f"{root / '.venv' / 'uv' / 'bin'}:{os.environ['PATH']}",
            "SIDEBAND_HOME": str(folder / "home"),
            "UV_CONSTRAINT": str(root / "requirements" / "test.txt"),
            "UV_NO_BUILD_ISOLATION": "1",
            "PYTHONPYCACHEPREFIX": str(folder / "compiled"),
        }

    def run(self, command, folder):
        if command.startswith("source "):
            environment = (folder / command.split()[1]).parents[1]
            self.variables["PATH"] = f"{environment / 'bin'}:{self.variables['PATH']}"
            self.variables["VIRTUAL_ENV"] = str(environment)
            return self.run("uv pip install --quiet editables", folder)  # to build editable packages offline
        # uv finds its configuration and cache in the home folder; other programs have an empty one.
        variables = self.variables if command.startswith("uv ") else {**self.variables, "HOME": str(self.folder)}
        return subprocess.run(
            command, shell=True, cwd=folder, capture_output=True, text=True, check=False, env=variables,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip


@pytest.fixture(scope="module")
def reader(index, tmp_path_factory, follow):
    """A reader who has prepared the environment."""
    reader = Reader(Path(__file__).parents[2], index, tmp_path_factory.mktemp("tutorials"))
    follow("docs/tutorials/index.md", reader.folder, reader.run)
    return reader


LONG = pytest.mark.long  # what these do is also tested in `test_templates.py` and `test_distributions.py`


@pytest.mark.parametrize(
    "audience", [pytest.param("plugin", marks=LONG), "skill", pytest.param("distribution", marks=LONG)]
)
def test_tutorial_works_as_shown(reader, follow, audience):
    follow(f"docs/tutorials/{audience}.md", reader.folder, reader.run)
