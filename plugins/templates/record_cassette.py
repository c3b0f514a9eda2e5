"""Record the cassette of the template for skills again, for example after its tools or the format have changed.

GitHub's answer is replaced by a fixed one, so that recording needs no network and each recording has the same effects.

Run: ``python plugins/templates/record_cassette.py``.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import attrs
import sideband_http.plugin
from sideband_templates import bake

TEMPLATE = Path(__file__).resolve().parents[2] / "cookiecutter-skill" / "{{cookiecutter.__distribution}}"
VERSION = "1.6.0"


async def answer(params: Any, _ctx: Any) -> dict[str, Any]:
    """Return what GitHub answers to a request for the latest release."""
    page = f"https://github.com/pytest-dev/pluggy/releases/tag/{VERSION}"
    data = {"tag_name": VERSION, "name": VERSION, "html_url": page, "draft": False, "prerelease": False}
    return {
        "status": 200,
        "ok": True,
        "url": params.url,
        "headers": {"content-type": "application/json; charset=utf-8"},
        "body": json.dumps(data),
        "bytes": None,
        "json": data,
        "body_length": len(json.dumps(data)),
        "content_encoding": None,
        "http_version": "HTTP/1.1",
        "redirects": [],
    }


def main() -> int:
    """Record the cassette and return the exit code of the tests."""
    with TemporaryDirectory() as folder:
        tests = bake("skill", {"name": "releases"}, Path(folder)) / "tests"
        command = [sys.executable, "-m", "pytest", "-q", "-p", Path(__file__).stem, "--sideband-record=all", str(tests)]
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
        code = subprocess.run(command, cwd=tests.parent, env=environment, check=False).returncode
        made = tests / "cassettes" / "test_releases"
        shutil.copytree(made, TEMPLATE / "tests" / "cassettes" / "test_{{cookiecutter.__key}}", dirs_exist_ok=True)
    return code


if __name__ == "__main__":
    sys.exit(main())

# The tests load this module as a plugin of pytest.
sideband_http.plugin.OPS = tuple(
    attrs.evolve(one, handler=answer) if one.name == "http.get" else one for one in sideband_http.plugin.OPS
)
