"""Checks a request, finds what it names, and makes the command that the sandbox starts."""

from __future__ import annotations

import os
from pathlib import Path

from sideband.ops import OpContext
from sideband.workers import Place, ProgramLimits, ProgramRequest

from ._config import Config
from ._errors import ShellArguments
from ._models import ShellRunParams
from ._places import Grounds, find_places
from ._programs import ShellProgram, find_program, safe_folders
from ._variables import environment_of

# The kernel takes 128 KiB as one argument, and a quarter of the stack for all of them and the environment.
_LONGEST_ARGUMENT = 128 * 1024 - 1
_LONGEST_VECTOR = 1024 * 1024
_BYTES_OF_A_POINTER = 8


def resolve_program(params: ShellRunParams, config: Config, home: Path) -> tuple[ShellProgram, Grounds]:
    """Find the program and the places. It blocks on the file system."""
    program = find_program(params.binary, config.path, home)
    return program, find_places(params.places, params.cwd, home, most=config.max_places)


def seconds_of(params: ShellRunParams, config: Config) -> float:
    """How long it may run."""
    return min(params.timeout, config.max_seconds)


def check_egress(params: ShellRunParams, ctx: OpContext) -> None:
    """Let no known secret into a command."""
    parts: dict[str, str | bytes] = {f"argument {number}": text for number, text in enumerate(params.args, 1)}
    parts |= {f"variable `{name}`": value for name, value in params.env.items()}
    parts |= {f"name of a variable {number}": name for number, name in enumerate(params.env, 1)}
    parts |= {"binary": params.binary, "working directory": params.cwd or ""}
    parts |= {f"place {number}": place for number, place in enumerate(params.places, 1)}
    if data := params.input_bytes:
        parts["input"] = data
    # All of them as one, too: a secret may be cut in two.
    parts["arguments"] = "".join(params.args)
    ctx.check_egress(None, parts)


def check_size(program: ShellProgram, params: ShellRunParams) -> None:
    """Refuse what the kernel would not take. Raises ``ShellArguments``."""
    words = [str(program.path), *params.args, *(f"{name}={value}" for name, value in params.env.items())]
    sizes = [len(os.fsencode(word)) + 1 for word in words]
    if max(sizes) > _LONGEST_ARGUMENT:
        raise ShellArguments("an argument", max(sizes), _LONGEST_ARGUMENT)
    whole = sum(sizes) + _BYTES_OF_A_POINTER * len(sizes)
    if whole > _LONGEST_VECTOR:
        raise ShellArguments("a vector", whole, _LONGEST_VECTOR)


def program_request(params: ShellRunParams, program: ShellProgram, grounds: Grounds, config: Config) -> ProgramRequest:
    """What the sandbox is asked to start."""
    return ProgramRequest(
        arguments=(str(program.path), *params.args),
        folder=grounds.folder,
        environment=environment_of(":".join(safe_folders(config.path)), config.environment, params.env),
        places=tuple(Place(path, writable=mode == "write") for path, mode in grounds.paths.items()),
        network=params.network,
        limits=ProgramLimits(
            memory=config.memory_bytes,
            processes=config.max_processes,
            files=config.max_open_files,
            file_size=config.max_file_bytes,
            # Whatever it computes on all cores until its time is over.
            cpu_seconds=int(seconds_of(params, config) * (os.cpu_count() or 1)) + 1,
        ),
    )
