"""Verifies the isolation of programs: a probe program tries to break out, and its status in ``/proc`` is checked."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from attrs import frozen
from sideband.workers import Isolation, Place, ProgramLimits, ProgramRequest

from .._errors import ProgramNotStarted
from .._inside import PROGRAM_ATTEMPTS
from .._machine._cgroups import Cgroups
from .._machine._inspection import Machine
from .._machine._interpreter import Interpreter
from .._machine._processes import fresh_uid
from .._machine._temporary import make_folder
from .._proofs import PREFIX, kernel_status, problem_of, proofs_of
from ._filter import NUMBERS
from ._plan import ProgramVariant, program_plan
from ._process import IsolatedProgram, own_folder, start_program, temporary_folder

_SECONDS = 30.0
_LONGEST_REPORT = 1 << 20
_PROCESSES = 16


@frozen
class ProgramPlatform:
    """The machine and interpreter that all programs use.

    Args:
        machine: the features of the machine.
        python: the interpreter that carries out the plans.
        interpreter: the files and folders of that interpreter.
        cgroups: where control groups can be created, if they can.
    """

    machine: Machine
    python: Path
    interpreter: Interpreter
    cgroups: Cgroups | None


@frozen
class _ProgramStage:
    """Folders and unix sockets that the probe program tries to access."""

    folder: Path
    abstract: str

    def path(self, name: str) -> Path:
        return self.folder / name


async def prove_programs(platform: ProgramPlatform, isolation: Isolation, variant: ProgramVariant) -> tuple[str, ...]:
    """Run a program that tries to break out.

    Args:
        platform: the machine and the interpreter.
        isolation: the tier that the variant provides.
        variant: the way to isolate programs.

    Returns:
        The attempts that failed, one sentence each.

    Raises:
        ProgramNotStarted: if the program cannot be started, or an attempt succeeded.
    """
    manager = _stage()
    stage = await anyio.to_thread.run_sync(manager.__enter__)
    try:
        program = await _start(platform, isolation, variant, stage)
        try:
            with anyio.move_on_after(_SECONDS) as trying:
                report, status = await _converse(program, _facts(platform, variant, stage))
            if trying.cancelled_caught:
                raise ProgramNotStarted("the probe program or its child process did not exit")
        finally:
            await program.close()
    except (OSError, ValueError, KeyError) as error:
        raise ProgramNotStarted(f"the probe program failed: {error}") from error
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(manager.__exit__, None, None, None)
    return _verdict(report, status, namespaces=variant.namespaces)


@contextmanager
def _stage() -> Iterator[_ProgramStage]:
    temporary = make_folder(PREFIX)
    folder = temporary.path
    try:
        for name, mode in (("", 0o755), ("readable", 0o755), ("writable", 0o777), ("open", 0o777), ("private", 0o755)):
            (folder / name).mkdir(exist_ok=True)
            (folder / name).chmod(mode)
        shutil.copyfile(PROGRAM_ATTEMPTS, folder / "readable" / PROGRAM_ATTEMPTS.name)
        (folder / "private" / "secret").write_text("secret", encoding="ascii")
        for file in (folder / "readable" / PROGRAM_ATTEMPTS.name, folder / "private" / "secret"):
            file.chmod(0o644)
        stage = _ProgramStage(folder, f"sideband-{secrets.token_hex(8)}")
        paths = [stage.path("service"), *(stage.path(name) / "service" for name in ("readable", "writable"))]
        with ExitStack() as services:
            for address in (*map(str, paths), f"\0{stage.abstract}"):
                services.enter_context(_service(address))
            for path in paths:
                path.chmod(0o777)
            yield stage
    finally:
        temporary.remove()


@contextmanager
def _service(address: str) -> Iterator[None]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(address)
        listening.listen()
        yield


async def _start(
    platform: ProgramPlatform, isolation: Isolation, variant: ProgramVariant, stage: _ProgramStage
) -> IsolatedProgram:
    # A limit that counts the threads of all the user's programs must leave room for those that start meanwhile.
    limits = ProgramLimits(processes=_PROCESSES) if _limits_processes(platform, variant) else ProgramLimits()
    script = stage.path("readable") / PROGRAM_ATTEMPTS.name
    request = ProgramRequest(
        arguments=(str(platform.python.resolve()), "-I", "-S", "-B", str(script)),
        folder=stage.path("readable"),
        places=(
            Place(stage.path("readable")),
            Place(stage.path("writable"), writable=True),
            *(Place(path) for path in interpreter_places(platform.interpreter)),
        ),
        limits=limits,
    )
    uid = fresh_uid()
    async with temporary_folder(uid if variant.own_user and not variant.namespaces else None) as temporary:
        plan = await anyio.to_thread.run_sync(
            partial(program_plan, platform.machine, variant, request, uid=uid, temporary=own_folder(temporary))
        )
        program = await start_program(platform.python, plan, isolation, platform.cgroups, limits)
        program.own(temporary)
        return program


def interpreter_places(interpreter: Interpreter) -> Iterable[Path]:
    """Return the paths that the interpreter needs outside of ``/usr``."""
    paths = {Path(path).resolve() for path in (*interpreter.folders, *interpreter.archives, *interpreter.libraries)}
    outside = {path for path in paths if not path.is_relative_to("/usr")}
    return [path for path in sorted(outside) if not any(other in path.parents for other in outside)]


def _facts(platform: ProgramPlatform, variant: ProgramVariant, stage: _ProgramStage) -> dict[str, Any]:
    return {
        "host": os.getpid(),
        "secret": str(stage.path("private") / "secret"),
        "readable": str(stage.path("readable")),
        "writable": str(stage.path("writable")),
        "open": str(stage.path("open")),
        "file": PROGRAM_ATTEMPTS.name,
        "service": str(stage.path("service")),
        "abstract": stage.abstract,
        "numbers": NUMBERS[platform.machine.architecture.machine],
        "namespaces": variant.namespaces,
        "process_limit": _limits_processes(platform, variant),
        "processes": _PROCESSES,
    }


def _limits_processes(platform: ProgramPlatform, variant: ProgramVariant) -> bool:
    """Return whether the program's own processes are limited, rather than all processes of the host's user."""
    # The kernel does not limit the processes of root, not even in a user namespace.
    ordinary_user = variant.user_namespace and os.geteuid() != 0
    return variant.own_user or ordinary_user or platform.cgroups is not None


async def _converse(program: IsolatedProgram, facts: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    await anyio.wait_writable(program.stdin)
    os.write(program.stdin, json.dumps(facts).encode() + b"\n")
    report = await _read(program.stdout, until=b"\n")
    if not report:
        code = await program.wait()
        stderr = (await _read(program.stderr)).decode(errors="replace")
        raise ProgramNotStarted(f"the probe program exited with code {code}: {stderr[-500:]}")
    status = await anyio.to_thread.run_sync(kernel_status, program.pid)
    program.end_input()
    await program.wait()
    # End-of-file proves that the process left behind, which keeps the output open, has been killed.
    await _read(program.stdout)
    return json.loads(report), status


async def _read(descriptor: int, until: bytes = b"") -> bytes:
    """Read up to these bytes, or to the end."""
    read = b""
    while not until or until not in read:
        await anyio.wait_readable(descriptor)
        part = os.read(descriptor, 65_536)
        if not part or len(read) > _LONGEST_REPORT:
            break
        read += part
    return read


def _verdict(report: Mapping[str, Any], status: Mapping[str, str], *, namespaces: bool) -> tuple[str, ...]:
    problem = problem_of("program", report, status, namespaces=namespaces)
    if problem:
        raise ProgramNotStarted(problem)
    return (*proofs_of(report), "could not leave a process behind")
