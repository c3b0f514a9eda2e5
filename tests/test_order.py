"""The order in which the files of tests start."""

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_files_that_start_first_exist():
    files = runpy.run_path(str(ROOT / "conftest.py"))["LONG_FILES"]
    assert [file for file in files if not (ROOT / file).is_file()] == []
