"""The list in the README of the files that a program can read, compared with the sandbox."""

import os
import re
import sys
from pathlib import Path

import pytest
from sideband_sandbox._programs import _plan

pytestmark = pytest.mark.anyio

PYTHON = os.path.realpath(sys.executable)
README = Path(__file__).parents[1] / "README.md"


def listed():
    """Return the paths on each line of the list, by the text before them."""
    section = README.read_text().split("## Files that a program can read", 1)[1]
    found = {}
    for line in re.search(r"```text\n(.*?)```", section, re.DOTALL)[1].splitlines():
        condition, _, paths = line.rpartition(":")
        found.setdefault(condition, []).extend(paths.split())
    return found


def test_readme_lists_the_files_of_the_sandbox():
    assert sorted(listed()[""]) == sorted((*_plan._PROGRAMS, *_plan._FACTS, *_plan._DEVICES))
    assert sorted(listed()["with network access"]) == sorted(_plan._FACTS_OF_NETWORK)


WALK = """
import os, sys
known = sys.argv[1].split()
def visit(folder):
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.path):
        if entry.path in known or entry.is_symlink(): continue
        if any(each.startswith(entry.path + "/") for each in known): visit(entry.path)
        else: print(entry.path)
visit("/")
"""


@pytest.mark.parametrize("network", [False, True])
async def test_program_sees_only_listed_files(run_python, python_places, network):
    conditions = ["", "on the tier full, its own", *["with network access"] * network]
    known = [path for condition in conditions for path in listed()[condition]]
    answer = await run_python(WALK, " ".join([*known, *python_places, PYTHON]), network=network)
    assert (answer["stdout"], answer["exit_code"]) == ("", 0), answer["stderr"]
