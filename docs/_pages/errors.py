"""All errors of the default distribution, by package, with their codes."""

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
_SKILLS = ("sideband_demo",)  # run in workers only


def errors_page() -> list[str]:
    """The lines of the page."""
    packages = {name: folder for name, folder in _packages() if name not in _SKILLS}
    for name in packages:
        _import_all(name)
    errors = sorted(_below(SidebandError), key=lambda error: (error.code, error.__name__))
    lines = [
        "# Errors",
        "",
        *paragraph(
            "All errors are `SidebandError`. `code` is stable, so that programs can tell errors apart; `message` says "
            "what happened, `hint` what to do, and `as_dict()` is all of it as data. `--json` prints that as `error`."
        ),
        "",
        *paragraph(
            "*Exit* is what a command ends with. *Again* says whether the same request may succeed later, if the error "
            "itself does not know better. A class with a module can be imported from there. Words in capitals stand "
            "for what is known when it happens. Where nothing stands under *what to do*, the error itself says it."
        ),
    ]
    for name, folder in packages.items():
        found = [error for error in errors if error.__module__.partition(".")[0] == name]
        if found:
            lines += ["", f"## {name}", "", *_of_package(found, folder)]
    return lines


def _of_package(errors: list[type[SidebandError]], folder: Path) -> Iterator[str]:
    yield from table(
        ["code", "class", "exit", "again", "what it means", "what to do"],
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
    """The name that it is imported by; its own alone if it is not meant to be imported."""
    parts = error.__module__.split(".")
    public = ".".join(parts[: next((n for n, part in enumerate(parts) if part.startswith("_")), len(parts))])
    is_there = error.__name__ in getattr(import_module(public), "__all__", ())
    return f"{public}.{error.__name__}" if is_there else error.__name__


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
