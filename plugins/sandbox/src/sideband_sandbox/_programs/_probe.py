"""Proves the walls of commands: a throw-away one tries to break out, and the kernel is asked what that has become."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
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
from ._process import IsolatedProgram, start_program, temporary_folder

_SECONDS = 30.0
_LONGEST_REPORT = 1 << 20
_PROCESSES = 16


@frozen
class ProgramGround:
    """What is the same for every way to lock commands down.

    Args:
        machine: what can be used.
        python: the interpreter that carries out the plans.
        interpreter: what it is made of.
        cgroups: where the kernel counts, if it does.
    """

    machine: Machine
    python: Path
    interpreter: Interpreter
    cgroups: Cgroups | None


@frozen
class _ProgramStage:
    """Folders and services that stand for those of the machine."""

    folder: Path
    abstract: str

    def path(self, name: str) -> Path:
        return self.folder / name


async def prove_programs(ground: ProgramGround, isolation: Isolation, variant: ProgramVariant) -> tuple[str, ...]:
    """Run a command that tries what none must be able to do.

    Args:
        ground: what there is.
        isolation: the tier that the variant is worth.
        variant: how commands are locked down.

    Returns:
        What it tried in vain, one sentence each.

    Raises:
        ProgramNotStarted: it could not be started, or could do something; says what.
    """
    manager = _stage()
    stage = await anyio.to_thread.run_sync(manager.__enter__)
    try:
        command = await _start(ground, isolation, variant, stage)
        try:
            with anyio.move_on_after(_SECONDS) as trying:
                report, status = await _converse(command, _facts(ground, variant, stage))
            if trying.cancelled_caught:
                raise ProgramNotStarted("the throw-away command, or what it left behind, did not end")
        finally:
            await command.close()
    except (OSError, ValueError, KeyError) as error:
        raise ProgramNotStarted(f"the throw-away command went wrong: {error}") from error
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(manager.__exit__, None, None, None)
    return _verdict(report, status)


@contextmanager
def _stage() -> Iterator[_ProgramStage]:
    folder = make_folder(PREFIX).resolve()
    try:
        for name, mode in (("", 0o755), ("readable", 0o755), ("writable", 0o777), ("open", 0o777), ("private", 0o755)):
            (folder / name).mkdir(exist_ok=True)
            (folder / name).chmod(mode)
        shutil.copyfile(PROGRAM_ATTEMPTS, folder / "readable" / PROGRAM_ATTEMPTS.name)
        (folder / "private" / "secret").write_text("nobody's business", encoding="ascii")
        for file in (folder / "readable" / PROGRAM_ATTEMPTS.name, folder / "private" / "secret"):
            file.chmod(0o644)
        stage = _ProgramStage(folder, f"sideband-{secrets.token_hex(8)}")
        with _service(str(stage.path("service"))), _service(f"\0{stage.abstract}"):
            stage.path("service").chmod(0o777)
            yield stage
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _service(address: str) -> Iterator[None]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(address)
        listening.listen()
        yield


async def _start(
    ground: ProgramGround, isolation: Isolation, variant: ProgramVariant, stage: _ProgramStage
) -> IsolatedProgram:
    limits = ProgramLimits(processes=_PROCESSES)
    program = stage.path("readable") / PROGRAM_ATTEMPTS.name
    request = ProgramRequest(
        arguments=(str(ground.python.resolve()), "-I", "-S", "-B", str(program)),
        folder=stage.path("readable"),
        places=(
            Place(stage.path("readable")),
            Place(stage.path("writable"), writable=True),
            *(Place(path) for path in interpreter_places(ground.interpreter)),
        ),
        limits=limits,
    )
    uid = fresh_uid()
    async with temporary_folder(uid if variant.own_user and not variant.namespaces else None) as temporary:
        plan = await anyio.to_thread.run_sync(
            partial(program_plan, ground.machine, variant, request, uid=uid, temporary=temporary)
        )
        command = await start_program(ground.python, plan, isolation, ground.cgroups, limits)
        command.own(temporary)
        return command


def interpreter_places(interpreter: Interpreter) -> Iterable[Path]:
    """What the interpreter needs and does not lie among the machine's programs."""
    paths = {Path(path).resolve() for path in (*interpreter.folders, *interpreter.archives, *interpreter.libraries)}
    outside = {path for path in paths if not path.is_relative_to("/usr")}
    return [path for path in sorted(outside) if not any(other in path.parents for other in outside)]


def _facts(ground: ProgramGround, variant: ProgramVariant, stage: _ProgramStage) -> dict[str, Any]:
    return {
        "host": os.getpid(),
        "secret": str(stage.path("private") / "secret"),
        "readable": str(stage.path("readable")),
        "writable": str(stage.path("writable")),
        "open": str(stage.path("open")),
        "file": PROGRAM_ATTEMPTS.name,
        "service": str(stage.path("service")),
        "abstract": stage.abstract,
        "numbers": NUMBERS[ground.machine.architecture.machine],
        "namespaces": variant.namespaces,
        "process_limit": variant.own_user or variant.user_namespace or ground.cgroups is not None,
        "processes": _PROCESSES,
    }


async def _converse(command: IsolatedProgram, facts: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    await anyio.wait_writable(command.stdin)
    os.write(command.stdin, json.dumps(facts).encode() + b"\n")
    report = await _read(command.stdout, until=b"\n")
    status = await anyio.to_thread.run_sync(kernel_status, command.pid)
    command.end_input()
    code = await command.wait()
    # The end comes once nobody holds the other side any more: what it has left behind is gone too.
    await _read(command.stdout)
    if not report:
        words = await _read(command.stderr)
        raise ProgramNotStarted(f"the throw-away command ended with {code}: {words.decode(errors='replace')[-500:]}")
    return json.loads(report), status


async def _read(descriptor: int, until: bytes = b"") -> bytes:
    """All up to these bytes, or to the end."""
    read = b""
    while not until or until not in read:
        await anyio.wait_readable(descriptor)
        part = os.read(descriptor, 65_536)
        if not part or len(read) > _LONGEST_REPORT:
            break
        read += part
    return read


def _verdict(report: Mapping[str, Any], status: Mapping[str, str]) -> tuple[str, ...]:
    problem = problem_of("command", report, status)
    if problem:
        raise ProgramNotStarted(problem)
    return (*proofs_of(report), "could not leave a process behind")
