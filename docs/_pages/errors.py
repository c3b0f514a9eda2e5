"""The page on errors: all errors of the default distribution and their codes, by package."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from sideband import SidebandError

from .docstrings import first_paragraph
from .sources import hints_of, named_codes
from .tables import paragraph, table

__all__ = ["errors_page"]

ROOT = Path(__file__).parents[2]
_LAYERS = ("core", "agent", "libs/*", "plugins/*", "contrib/*")
_SKILLS = ("sideband_demo",)  # runs in workers only


def errors_page() -> list[str]:
    """Return the lines of the page."""
    packages = {name: folder for name, folder in _packages() if name not in _SKILLS}
    for name in packages:
        _import_all(name)
    errors = sorted(_below(SidebandError), key=lambda error: (error.code, error.__name__))
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
    for name, folder in packages.items():
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


def _packages() -> Iterator[tuple[str, Path]]:
    for source in (source for layer in _LAYERS for source in sorted(ROOT.glob(f"{layer}/src"))):
        for folder in sorted(source.iterdir()):
            if (folder / "__init__.py").is_file():
                yield folder.name, folder


def _import_all(package: str) -> None:
    for module in pkgutil.walk_packages(import_module(package).__path__, f"{package}."):
        if not module.name.endswith(".__main__"):
            import_module(module.name)


def _below(error: type[SidebandError]) -> set[type[SidebandError]]:
    return {error}.union(*(_below(one) for one in error.__subclasses__()))
