"""``sideband init``: set up a model, its key and folders of skills with a few questions."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from sideband.command_line import add_host_options, load_options, print_data
from sideband.commands import Command
from sideband.exit_codes import ExitCode

from .._dialogs._questions import has_terminal

__all__ = ["sideband_commands"]


def sideband_commands() -> Command:
    """Register the command."""
    return Command("init", "set up a model, its key and folders of skills", _configure, _run)


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument("--yes", action="store_true", help="ask nothing: accept the default of each question")
    add_host_options(parser)


def _run(arguments: Namespace) -> ExitCode:
    from sideband.state import default_home
    from sideband_settings_file import settings_path

    from .._errors import ModelUnconfigured, SetupImpossible
    from .._setup._dialog import Dialog
    from .._setup._services import services_of
    from .._setup._survey import survey

    settings = load_options(arguments, tolerant=True)
    if not arguments.yes and not has_terminal():
        found = survey(arguments, [one for one in services_of(settings.settings.plugins) if one.is_local]).local
        model = f"{found[0].service.provider}:{found[0].models[0]}" if found else ""
        raise SetupImpossible(settings_path(default_home()), model)
    choices = Dialog(arguments, settings, not arguments.yes).run()
    if not choices.model and arguments.yes:
        raise ModelUnconfigured
    file = choices.write(arguments) if choices.model or choices.folders else None
    data = {
        "file": file and str(file),
        "model": choices.model or None,
        "services": {name: dict(table) for name, table in choices.services.items()},
        "skill_folders": list(choices.folders),
    }
    lines = [f"wrote {file}"] if file else ["nothing was written"]
    if choices.model:
        lines += [f"the model is {choices.model}", 'try it: sideband chat, or sideband run "Hello"']
    print_data(arguments, data, "\n".join(lines))
    return ExitCode.SUCCESS
