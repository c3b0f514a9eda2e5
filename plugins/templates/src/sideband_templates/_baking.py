"""Making a project from a template, as cookiecutter does it, without running any code of the template."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from jinja2 import FileSystemLoader

from ._errors import TargetExists, TargetUnwritable
from ._templates import Template, make_environment


def bake(name: str, answers: Mapping[str, str], parent: Path) -> Path:
    """Make a project from a template, completely or not at all.

    Args:
        name: the name of the template: ``skill``, ``plugin`` or ``distribution``.
        answers: the answers to its questions. Others have their defaults.
        parent: the folder in which the folder of the project is made.

    Returns:
        The folder of the project.

    Raises:
        AnswerRefused: if an answer is invalid.
        QuestionUnknown: if the template has no question with that name.
        TargetExists: if the folder of the project exists.
        TargetUnwritable: if the folder of the project cannot be written.

    Example:
        >>> bake("plugin", {"name": "weather", "kind": "op"}, Path("."))  # doctest: +SKIP
        PosixPath('sideband-weather')
    """
    template = Template.read(name)
    context = {"cookiecutter": template.answers(answers)}
    (root,) = (one for one in template.folder.iterdir() if "cookiecutter" in one.name and one.is_dir())
    target = parent / make_environment().from_string(root.name).render(context)
    if target.is_symlink() or target.exists():
        raise TargetExists(target)
    try:
        with TemporaryDirectory(dir=parent, prefix=".sideband-new-") as temporary:
            made = Path(temporary) / target.name
            _write(root, made, context)
            made.rename(target)
    except OSError as error:
        raise TargetUnwritable(parent, error) from error
    return target


def _write(root: Path, target: Path, context: Mapping[str, Mapping[str, str]]) -> None:
    environment = make_environment()
    environment.loader = FileSystemLoader([root, root.parent / "templates"])
    target.mkdir()
    for source in _files(root):
        path = source.relative_to(root).as_posix()
        name = environment.from_string(path).render(context)
        if name.endswith("/"):
            continue  # the file is for other answers
        file = target / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(environment.get_template(path).render(context), encoding="utf-8", newline="\n")
        shutil.copymode(source, file)


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            # Installers compile the Python files of packages.
            yield from () if path.name == "__pycache__" else _files(path)
        else:
            yield path
