"""The options that every command with a host has, and the host that they describe."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sideband import UsageError

from .._terminal._printing import notice

if TYPE_CHECKING:
    from sideband import Host
    from sideband.settings import LoadedSettings


def add_json_option(parser: ArgumentParser) -> None:
    """``--json``."""
    parser.add_argument("--json", action="store_true", help="print data as JSON, errors too")


def add_host_options(parser: ArgumentParser) -> None:
    """The options that change the settings, and ``--json``."""
    add_json_option(parser)
    parser.add_argument(
        "--isolation",
        metavar="TIER",
        help="the weakest isolation to accept: full, no-namespaces or none; call: a worker of its own for each call, "
        "on full or, as in no-namespaces,call, on less",
    )
    parser.add_argument("--strict", action="store_true", help="fail if any plugin can't be used")
    parser.add_argument("--trust", action="store_true", help="trust this folder's sideband.toml as it is now")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting: policy.timeout=5")


def load(arguments: Namespace) -> LoadedSettings:
    """The settings that hold for this command line.

    Raises:
        ConfigurationError: a key, in whichever layer, has a value that can't be used.
    """
    from sideband.settings import default_home, load_settings, trust_project

    home = default_home()
    if arguments.trust:
        notice(f"trusting {trust_project(home, Path.cwd())}")
    settings = load_settings(home, project=Path.cwd(), environment=os.environ, flags=_flags(arguments))
    for text in settings.notices:
        notice(f"notice: {text}")
    return settings


def make_host(arguments: Namespace, **options: Any) -> Host:
    """The host for this command line; the caller enters it."""
    from sideband import Host

    return Host(settings=load(arguments), **options)


def _flags(arguments: Namespace) -> dict[str, Any]:
    from sideband.settings import merge, setting

    flags: dict[str, Any] = {}
    for word in arguments.set:
        key, equals, text = word.partition("=")
        if not equals:
            raise UsageError(f"--set {word} is not KEY=VALUE", hint="--set policy.timeout=5")
        merge(flags, setting(key.split("."), text))
    if arguments.isolation:
        merge(flags, {"policy": {"isolation": arguments.isolation}})
    if arguments.strict:
        merge(flags, {"policy": {"strict": True}})
    return flags
