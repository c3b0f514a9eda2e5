"""How a script is started: by its interpreter, with what the script can import."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import PurePosixPath

from attrs import frozen

from ._errors import ScriptKindUnknown

# The folders of the script and of the skill come first, and packages last, so that they replace no module of Python.
# Programs that the script starts with the same interpreter can import the same.
_START = """
import os, runpy, site, sys
script, skill, packages = sys.argv[1:4]
sys.argv = [script, *sys.argv[4:]]
sys.path[:0] = dict.fromkeys([os.path.dirname(script), skill])
sys.path += [packages] * bool(packages)
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [skill, packages]))
site.setquit()
runpy.run_path(script, run_name="__main__")
"""
_PROGRAMS = {
    ".bash": "bash",
    ".cjs": "node",
    ".js": "node",
    ".mjs": "node",
    ".pl": "perl",
    ".rb": "ruby",
    ".sh": "bash",
}
_SYSTEM = ("/usr/", "/bin/", "/lib/")


@frozen
class Started:
    """A program that runs a script.

    Attributes:
        binary: the interpreter.
        arguments: its arguments.
        places: folders that it must be able to read, besides the skill.
    """

    binary: str
    arguments: tuple[str, ...]
    places: tuple[str, ...] = ()


def started(script: str, folder: str, environment: str | None, arguments: Sequence[str]) -> Started:
    """Return the program that runs a script of a skill.

    Args:
        script: the path of the script in the skill.
        folder: the folder of the skill.
        environment: the folder of its packages.
        arguments: the arguments of the script.

    Raises:
        ScriptKindUnknown: if no interpreter is known for it.
    """
    path, kind = f"{folder}/{script}", PurePosixPath(script).suffix.lower()
    if kind == ".py":
        own = ("-I", "-S", "-B", "-c", _START, path, folder, environment or "")
        prefix = os.path.realpath(sys.base_prefix)
        python = () if f"{prefix}/".startswith(_SYSTEM) else (prefix,)
        return Started(os.path.realpath(sys.executable), (*own, *arguments), (*python, *filter(None, [environment])))
    if kind not in _PROGRAMS:
        raise ScriptKindUnknown(script, sorted([".py", *_PROGRAMS]))
    return Started(_PROGRAMS[kind], (path, *arguments))
