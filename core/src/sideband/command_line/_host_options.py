"""The options shared by all commands with a host, and the host that they configure."""

from __future__ import annotations

import os
from argparse import SUPPRESS, ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ._output import notice

if TYPE_CHECKING:
    from ..host import Host
    from ..plugins import PluginPolicy
    from ..settings import LoadedSettings


def add_json_option(parser: ArgumentParser, *, listed: bool = True) -> None:
    """Add ``--json``, hidden from the help unless ``listed``."""
    help_text = "print data and errors as JSON" if listed else SUPPRESS
    parser.add_argument("--json", action="store_true", help=help_text)


def add_output_options(parser: ArgumentParser, *, quiet: str, verbose: str) -> None:
    """Add ``-q`` and ``-v``, whose effects the command describes."""
    amount = parser.add_mutually_exclusive_group()
    amount.add_argument("-q", "--quiet", action="store_true", help=quiet)
    amount.add_argument("-v", "--verbose", action="store_true", help=verbose)


def add_host_options(parser: ArgumentParser, *, json: bool = True) -> None:
    """Add the options that change settings, and ``--json``.

    Args:
        parser: the parser of the command.
        json: whether the help lists ``--json``; a command that does not support it rejects it with a hint.
    """
    add_json_option(parser, listed=json)
    parser.add_argument(
        "--isolation",
        metavar="TIER",
        help="the weakest isolation tier to accept: full (default), no-namespaces, seatbelt-untested, none; append "
        "`,call` to run each call in its own worker, as in no-namespaces,call",
    )
    parser.add_argument("--strict", action="store_true", help="fail if any plugin is unusable")
    parser.add_argument(
        "--trust",
        action="store_true",
        help="trust this folder: the current content of its sideband.toml, and its instructions",
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="override a setting, such as policy.timeout=5"
    )


def load_options(arguments: Namespace, *, tolerant: bool = False) -> LoadedSettings:
    """Load the settings for this command line.

    Args:
        arguments: the parsed options.
        tolerant: whether to omit and list invalid values instead of raising.

    Raises:
        ConfigurationError: if a key has an invalid value, in any layer.
    """
    from ..settings import load_settings, trust_project
    from ..state import default_home

    home = default_home()
    if arguments.trust:
        file = trust_project(home, Path.cwd())
        notice(f"trusting {file if file.exists() else file.parent}")
    # Unlike `Path.home`, this accepts a user without a home directory, and returns `~`. Relative to the working
    # directory, that would be a folder of a project that is not trusted.
    user = Path(os.path.expanduser("~"))  # noqa: PTH111
    settings = load_settings(
        home,
        user=user if user.is_absolute() else None,
        project=Path.cwd(),
        environment=os.environ,
        flags=_flags(arguments),
        tolerant=tolerant,
    )
    for text in settings.notices:
        notice(f"notice: {text}")
    return settings


def unchanged_policy(arguments: Namespace, home: Path) -> PluginPolicy | None:
    """Return the policy to list plugins with, if it is known without reading the configuration, which takes longer."""
    from ..settings import known_plugin_policy

    if arguments.trust or arguments.set or arguments.isolation or arguments.strict:
        return None
    return known_plugin_policy(home, Path.cwd(), os.environ)


def make_host(arguments: Namespace, **options: Any) -> Host:
    """Create the host for this command line. The caller must enter it."""
    from ..host import Host

    settings = load_options(arguments)
    if "skill_dirs" in options:
        _report_untrusted(settings)
    return Host(settings=settings, **_shared, **options)


_shared: dict[str, Any] = {}


@contextmanager
def hosts_with(**options: Any) -> Iterator[None]:
    """Give options to each host that ``make_host`` creates in a block, for a command that runs another command.

    Example:
        >>> with hosts_with(on_hook=print):
        ...     run(["op", "crypto.random", "length=2"])
    """
    before = dict(_shared)
    _shared.update(options)
    try:
        yield
    finally:
        _shared.clear()
        _shared.update(before)


def _report_untrusted(settings: LoadedSettings) -> None:
    """Report skills of the project that are not used, to commands that use skills."""
    folders = settings.skill_folders.untrusted
    if folders:
        names = ", ".join(map(str, folders))
        notice(f"notice: ignored the skills in {names}: the project is not trusted; add --trust to use them")


def _flags(arguments: Namespace) -> dict[str, Any]:
    from ..settings import merge, setting

    flags: dict[str, Any] = {}
    for word in arguments.set:
        key, equals, text = word.partition("=")
        if not equals:
            raise UsageError(
                f"--set expects KEY=VALUE, got `{word}`", hint="write, for example, --set policy.timeout=5"
            )
        merge(flags, setting(key.split("."), text))
    if arguments.isolation:
        merge(flags, {"policy": {"isolation": arguments.isolation}})
    if arguments.strict:
        merge(flags, {"policy": {"strict": True}})
    return flags
