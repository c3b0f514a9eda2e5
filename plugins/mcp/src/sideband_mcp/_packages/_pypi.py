"""The programs of installed packages of PyPI."""

from __future__ import annotations

from importlib.metadata import distributions
from pathlib import Path

from packaging.utils import canonicalize_name

# It runs without site-packages of the host: what it finds is the standard library and its own folder.
START = """
import functools, importlib, sys
folder, module, name, *sys.argv = sys.argv[1:]
sys.path.append(folder)
sys.exit(functools.reduce(getattr, name.split("."), importlib.import_module(module))())
"""


def pypi_program(folder: Path, name: str, program: str) -> tuple[str, str, str]:
    """Return the module, the function and the name of a program of an installed package.

    Raises:
        ValueError: if the package has no such program.
    """
    package = canonicalize_name(name.partition("[")[0])
    all_of = {
        one.name: (canonicalize_name(each.metadata["Name"]), one)
        for each in distributions(path=[str(folder)])
        for one in each.entry_points
        if one.group == "console_scripts"
    }
    own = sorted(one for one, (owner, _) in all_of.items() if owner == package)
    wanted = program or (own[0] if len(own) == 1 else package)
    if wanted not in all_of:
        known = ", ".join(f"`{one}`" for one in own) or "no programs"
        raise ValueError(f"the package `{package}` has no program `{wanted}`: it has {known}")
    found = all_of[wanted][1]
    return found.module, found.attr, wanted
