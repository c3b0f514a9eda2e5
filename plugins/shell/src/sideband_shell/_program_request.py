"""Checks a request, resolves its program and places, and builds the request to the sandbox."""

from __future__ import annotations

import os
from pathlib import Path

import anyio.to_thread
import attrs
from sideband.ops import Capability, OpContext
from sideband.workers import Place, ProgramLimits, ProgramRequest

from ._config import Config
from ._errors import ShellArguments, ShellDenied
from ._known_programs import runs_code, runs_others
from ._models import ProgramParams
from ._places import ResolvedPlaces, find_places
from ._programs import ShellProgram, find_program, safe_folders
from ._variables import environment_of

# The kernel limits one argument to 128 KiB, and all arguments and the environment to a quarter of the stack.
_LONGEST_ARGUMENT = 128 * 1024 - 1
_LONGEST_VECTOR = 1024 * 1024
_POINTER_BYTES = 8
_ANY_CODE = "any"


async def resolve_program(params: ProgramParams, ctx: OpContext) -> tuple[ShellProgram, ResolvedPlaces]:
    """Find the program and its places, and check that the grant covers the interpreter of a script."""
    program, places = await anyio.to_thread.run_sync(_find, params, ctx.config, ctx.home)
    _check_interpreters(params, program, ctx)
    return program, places


def _find(params: ProgramParams, config: Config, home: Path) -> tuple[ShellProgram, ResolvedPlaces]:
    program = find_program(params.binary, config.path, home)
    return program, find_places(params.places, params.cwd, home, maximum=config.max_places)


def _check_interpreters(params: ProgramParams, program: ShellProgram, ctx: OpContext) -> None:
    """Raise ``ShellDenied`` if an interpreter needs rights that the grant does not give to a script that it names."""
    scopes = list(params.scopes())
    for interpreter in program.interpreters:
        if not runs_others(interpreter):
            continue
        code, what = ("yes", "executes code") if runs_code(interpreter) else ("no", "runs other programs")
        for scope in scopes:
            needed = attrs.evolve(scope, code="yes" if scope.code == "yes" else code, runs="any")
            # Only a capability that names its programs in full leaves this field open to any value.
            named = attrs.evolve(scope, code=_ANY_CODE)
            if not (ctx.allows(needed) or ctx.allows(named)):
                problem = f"it is a script of `{interpreter}`, which {what}"
                # The scopes with a place or a variable include the program itself.
                exact = [attrs.evolve(one, code=None).fields() for one in scopes[1:] or scopes]
                options = [_granting(Capability.exactly("shell", one)) for one in exact]
                raise ShellDenied(params.binary, problem, hint=f"to run this script, grant it with {' '.join(options)}")


def _granting(capability: Capability) -> str:
    """Return the option that grants a capability, always in quotes: commands with several skills look for them."""
    quoted = str(capability).replace("'", "'\"'\"'")
    return f"--grant '{quoted}'"


def seconds_of(params: ProgramParams, config: Config) -> float:
    """Return the timeout, limited by the configuration."""
    return config.max_seconds if params.timeout is None else min(params.timeout, config.max_seconds)


def check_egress(params: ProgramParams, ctx: OpContext) -> None:
    """Raise ``EgressRefused`` if the request contains a known secret."""
    parts: dict[str, str | bytes] = {f"argument {number}": text for number, text in enumerate(params.args, 1)}
    parts |= {f"variable `{name}`": value for name, value in params.env.items()}
    parts |= {f"name of a variable {number}": name for number, name in enumerate(params.env, 1)}
    parts |= {"binary": params.binary, "working directory": params.cwd or ""}
    parts |= {f"place {number}": place for number, place in enumerate(params.places, 1)}
    if data := params.input_bytes:
        parts["input"] = data
    # Also check the arguments joined, because a secret may be split across them.
    parts["arguments"] = "".join(params.args)
    ctx.check_egress(None, parts)


def check_size(program: ShellProgram, params: ProgramParams) -> None:
    """Raise ``ShellArguments`` if the arguments and variables exceed the limits of the kernel."""
    words = [str(program.path), *params.args, *(f"{name}={value}" for name, value in params.env.items())]
    sizes = [len(os.fsencode(word)) + 1 for word in words]
    if max(sizes) > _LONGEST_ARGUMENT:
        raise ShellArguments("an argument or variable", max(sizes), _LONGEST_ARGUMENT)
    total = sum(sizes) + _POINTER_BYTES * len(sizes)
    if total > _LONGEST_VECTOR:
        raise ShellArguments("the arguments and variables together", total, _LONGEST_VECTOR)


def may_use_sockets(params: ProgramParams, ctx: OpContext) -> bool:
    """Return whether the grant gives unix sockets to the program, with each of its places."""
    return all(ctx.allows(attrs.evolve(scope, sockets="yes")) for scope in params.scopes())


def may_run_others(params: ProgramParams, ctx: OpContext) -> bool:
    """Return whether the grant lets the program run other programs."""
    return all(ctx.allows(attrs.evolve(scope, runs="any")) for scope in params.scopes())


def program_request(
    params: ProgramParams, program: ShellProgram, places: ResolvedPlaces, ctx: OpContext
) -> ProgramRequest:
    """Return the request to the sandbox."""
    config: Config = ctx.config
    return ProgramRequest(
        arguments=(str(program.path), *params.args),
        folder=places.folder,
        environment=environment_of(":".join(safe_folders(config.path)), config.environment, params.env),
        places=tuple(Place(path, mode != "read", mode == "execute") for path, mode in places.paths.items()),
        network=params.network,
        sockets=may_use_sockets(params, ctx),
        runs_others=may_run_others(params, ctx),
        limits=ProgramLimits(
            memory=config.memory_bytes,
            processes=config.max_processes,
            files=config.max_open_files,
            file_size=config.max_file_bytes,
            # The processor time of all cores until the timeout.
            cpu_seconds=int(seconds_of(params, config) * (os.cpu_count() or 1)) + 1,
        ),
    )
