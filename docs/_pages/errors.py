"""The page on errors: all errors of the default distribution and their codes, by package."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from sideband import SidebandError

from .docstrings import first_paragraph
from .packages import modules, packages
from .sources import hints_of, named_codes
from .tables import paragraph, table

__all__ = ["errors_page"]


def errors_page() -> list[str]:
    """Return the lines of the page."""
    folders = packages()
    for name in folders:
        list(modules(name))
    # A class that a test derived may still exist, but is not in its module, or its module has ended.
    below = _below(SidebandError)
    defined = [one for one in below if getattr(sys.modules.get(one.__module__), one.__name__, None) is one]
    errors = sorted(defined, key=lambda error: (error.code, error.__name__))
    lines = [
        "# Errors",
        "",
        *paragraph(
            "All errors are subclasses of `SidebandError`. `code` is stable and identifies the error in programs. "
            "`message` describes what happened, `hint` how to fix it, and `as_dict()` returns all fields as JSON "
            "data, which `--json` prints as `error`."
        ),
        "",
        *paragraph(
            "*Exit code* is the exit code of a command that fails with the error. *Retryable* is the default of "
            "`retryable`: whether the same request may succeed later. A class that is shown with a module can be "
            "imported from there. Words in capitals are placeholders. If *hint* is empty, the hint depends on the "
            "individual error."
        ),
    ]
    for name, folder in folders.items():
        found = [error for error in errors if error.__module__.partition(".")[0] == name]
        if found:
            lines += ["", f"## {name}", "", *_of_package(found, folder)]
    return lines


def _of_package(errors: list[type[SidebandError]], folder: Path) -> Iterator[str]:
    yield from table(
        ["code", "class", "exit code", "retryable", "meaning", "hint"],
        [
            [
                f"`{error.code}`",
                f"`{_importable(error)}`",
                str(error.exit_code),
                "yes" if error.retryable else "",
                first_paragraph(error.__doc__),
                "; or: ".join(hints_of(error)),
            ]
            for error in errors
        ],
    )
    names, codes = {error.__name__ for error in errors}, {error.code for error in errors}
    special = sorted({(code, name) for code, name in named_codes(folder) if name in names and code not in codes})
    if special:
        listed = ", ".join(f"`{code}` (`{name}`)" for code, name in special)
        yield from ["", *paragraph(f"More specific codes of these classes: {listed}.")]


def _importable(error: type[SidebandError]) -> str:
    """Return the qualified name of an error class, or only its name if it is not public."""
    parts = error.__module__.split(".")
    public = ".".join(parts[: next((n for n, part in enumerate(parts) if part.startswith("_")), len(parts))])
    is_public = error.__name__ in getattr(import_module(public), "__all__", ())
    return f"{public}.{error.__name__}" if is_public else error.__name__


def _below(error: type[SidebandError]) -> set[type[SidebandError]]:
    return {error}.union(*(_below(one) for one in error.__subclasses__()))
