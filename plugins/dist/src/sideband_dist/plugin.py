"""``sideband dist init|lock|check|sync|export|diff``: assemble, lock, check and ship the plugins of a team."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from sideband.command_line import add_json_option, joined, notice, print_data
from sideband.commands import Command
from sideband.errors import UsageError
from sideband.exit_codes import ExitCode

__all__ = ["sideband_commands"]

_FORMATS = ("requirements", "pylock", "dockerfile", "cyclonedx")


def sideband_commands() -> Command:
    """Register the command."""
    return Command("dist", "assemble, lock, check and ship exact plugins", _configure, _run)


def _configure(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    init = actions.add_parser("init", help="write a commented sideband.toml with the packages that are installed")
    init.add_argument("--name", help="the name of the distribution (default: that of the folder)")
    init.add_argument("--force", action="store_true", help="replace a file that exists")
    lock = actions.add_parser("lock", help="write sideband.lock; runs code of the packages in sideband.toml")
    lock.add_argument("--upgrade", action="store_true", help="choose the newest versions, not those of the last lock")
    check = actions.add_parser("check", help="compare an environment with the lock; exit code 5 if they differ")
    sync = actions.add_parser("sync", help="install exactly what is locked, and the lock, into an environment")
    sync.add_argument("--python", metavar="PROGRAM", help="the Python of the environment")
    sync.add_argument(
        "--wheels", action="append", default=[], type=Path, metavar="FOLDER", help="a folder with more wheels"
    )
    export = actions.add_parser("export", help="write the lock in the format of another tool")
    export.add_argument("--format", required=True, choices=_FORMATS, metavar="FORMAT", help=", ".join(_FORMATS))
    export.add_argument("--output", type=Path, metavar="FILE", help="the file to write (default: standard output)")
    diff = actions.add_parser("diff", help="show what differs between two locks, or a lock and an environment")
    diff.add_argument("old", type=Path, metavar="OLD", help="a lock, or the folder of an environment")
    diff.add_argument("new", type=Path, metavar="NEW", nargs="?", help="the other lock (default: that of --file)")
    for action in (check, sync):
        action.add_argument(
            "--environment", type=Path, default=None if action is sync else Path(sys.prefix), required=action is sync,
            metavar="FOLDER", help="the virtual environment" + ("" if action is sync else " (default: this one)"),
        )  # fmt: skip
    for action in (lock, sync):
        action.add_argument("--offline", action="store_true", help="download nothing: use folders and the cache of uv")
        action.add_argument(
            "--no-build-isolation", action="store_true", help="build local packages with what is installed here"
        )
    for action in (init, lock, check, sync, export, diff):
        action.add_argument(
            "--file", type=Path, default=Path("sideband.toml"), metavar="FILE",
            help="the sideband.toml of the distribution; sideband.lock is beside it (default: here)",
        )  # fmt: skip
        add_json_option(action)


def _run(arguments: Namespace) -> ExitCode:
    # Slow imports are delayed, since listing the commands must be fast.
    actions = {"init": _init, "lock": _lock, "check": _check, "sync": _sync, "export": _export, "diff": _diff}
    return actions[arguments.action](arguments)


def _init(arguments: Namespace) -> ExitCode:
    from sideband.plugins import find_entry_points  # noqa: PLC0415  as above

    from ._files import write_text  # noqa: PLC0415  as above
    from ._initial import initial_manifest  # noqa: PLC0415  as above

    file: Path = arguments.file
    if file.exists() and not arguments.force:
        raise UsageError(f"{file} exists", hint="name another one with --file, or replace it with --force")
    points = find_entry_points()
    write_text(file, initial_manifest(arguments.name or file.absolute().parent.name, points))
    packages = sorted({one.distribution for one in points})
    text = (
        f"wrote {file} with {len(packages)} packages; remove those that you do not need, and run `sideband dist lock`"
    )
    print_data(arguments, {"file": str(file), "packages": packages}, text)
    return ExitCode.SUCCESS


def _lock(arguments: Namespace) -> ExitCode:
    from ._diffing import difference_text, differences  # noqa: PLC0415  as above
    from ._errors import DistInvalid  # noqa: PLC0415  as above
    from ._files import lock_beside, lock_text, read_dist_lock, read_manifest, write_text  # noqa: PLC0415  as above
    from ._locking import LockOptions, make_lock  # noqa: PLC0415  as above

    manifest, file = read_manifest(arguments.file), lock_beside(arguments.file)
    options = LockOptions(arguments.upgrade, arguments.offline, not arguments.no_build_isolation)
    notice(f"resolving {len(manifest.dist.packages)} packages, and installing them into a temporary environment")
    lock = make_lock(manifest, file, options)
    changes = None
    if file.exists():
        try:
            changes = differences(read_dist_lock(file), lock)
        except DistInvalid as error:
            notice(f"notice: {error.message}; it is replaced")
    write_text(file, lock_text(lock))
    lines = [f"wrote {file}: {len(lock.plugins)} plugins, {len(lock.packages)} packages"]
    shown = [one for one in changes or () if not one["change"].startswith("file ")]
    lines += map(difference_text, shown)
    data = {"file": str(file), "plugins": [f"{one.kind}.{one.name}" for one in lock.plugins]}
    data["packages"] = [f"{one.name}=={one.version}" for one in lock.packages]
    print_data(arguments, {**data, "changes": changes}, joined(lines))
    return ExitCode.SUCCESS


def _check(arguments: Namespace) -> ExitCode:
    from ._checking import environment_differences  # noqa: PLC0415  as above
    from ._errors import DistChanged, DistInvalid  # noqa: PLC0415  as above
    from ._files import lock_beside, read_dist_lock, read_manifest  # noqa: PLC0415  as above

    placed = arguments.environment / "sideband.lock"
    if arguments.file.exists():
        file = lock_beside(arguments.file)
        lock, manifest = read_dist_lock(file), read_manifest(arguments.file)
        if manifest.digest != lock.manifest:
            problem = "it was made from another sideband.toml: what was changed since is not locked"
            raise DistInvalid(file, problem, hint="lock it again with `sideband dist lock`")
    else:
        file, lock = placed, read_dist_lock(placed)
    if found := list(environment_differences(lock, arguments.environment)):
        raise DistChanged(arguments.environment, found)
    text = f"{arguments.environment} equals {file}: {len(lock.plugins)} plugins, {len(lock.packages)} packages"
    data = {"environment": str(arguments.environment), "lock": str(file), "differences": []}
    print_data(arguments, data, text)
    return ExitCode.SUCCESS


def _sync(arguments: Namespace) -> ExitCode:
    from ._files import lock_beside, read_dist_lock, read_manifest  # noqa: PLC0415  as above
    from ._syncing import SyncOptions, sync  # noqa: PLC0415  as above

    lock = read_dist_lock(lock_beside(arguments.file))
    manifest = read_manifest(arguments.file) if arguments.file.exists() else None
    if manifest is not None and manifest.digest != lock.manifest:
        notice(f"notice: {arguments.file} was changed since it was locked; `sideband dist lock` locks the changes")
    options = SyncOptions(
        arguments.python, tuple(arguments.wheels), arguments.offline, not arguments.no_build_isolation
    )
    sync(lock, arguments.environment, manifest, arguments.file.absolute().parent, options)
    text = f"installed {len(lock.packages)} packages into {arguments.environment}, which is locked"
    data = {
        "environment": str(arguments.environment),
        "packages": [f"{one.name}=={one.version}" for one in lock.packages],
    }
    print_data(arguments, data, text)
    return ExitCode.SUCCESS


def _export(arguments: Namespace) -> ExitCode:
    from ._exporting import FORMATS  # noqa: PLC0415  as above
    from ._files import lock_beside, read_dist_lock, write_text  # noqa: PLC0415  as above

    text = FORMATS[arguments.format](read_dist_lock(lock_beside(arguments.file)))
    if arguments.output is None:
        print_data(arguments, {"format": arguments.format, "text": text}, text.rstrip("\n"))
        return ExitCode.SUCCESS
    write_text(arguments.output, text)
    data = {"format": arguments.format, "file": str(arguments.output)}
    print_data(arguments, data, f"wrote {arguments.output}")
    return ExitCode.SUCCESS


def _diff(arguments: Namespace) -> ExitCode:
    from ._checking import environment_differences  # noqa: PLC0415  as above
    from ._diffing import difference_text, differences  # noqa: PLC0415  as above
    from ._files import lock_beside, read_dist_lock  # noqa: PLC0415  as above

    new = read_dist_lock(arguments.new or lock_beside(arguments.file))
    if arguments.old.is_dir():
        found = list(environment_differences(new, arguments.old))
        print_data(arguments, found, joined(found) or "no differences")
        return ExitCode.SUCCESS
    changes = differences(read_dist_lock(arguments.old), new)
    print_data(arguments, changes, joined(map(difference_text, changes)) or "no differences")
    return ExitCode.SUCCESS
