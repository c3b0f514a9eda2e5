"""Verifies the tier of macOS with a probe worker.

UNTESTED: no part of this has run on macOS. Tests on other systems only check that the tier is not claimed if an attempt
succeeds. Hence its name.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from sideband.workers import Isolation, Probe

from ._profile import SANDBOX_EXEC, SeatbeltInterpreter, seatbelt_profile, seatbelt_wrapper

_ATTEMPTS = Path(__file__).with_name("_attempts.py")
_SECONDS = 20.0

_GAPS = (
    "this tier was never tested on macOS by its authors; only the listed proofs were verified",
    "kernel bugs and processor side channels are not prevented",
    "a worker can list the root folder, and learn whether the folders above its own exist",
    "only the host's watchdog limits memory and threads",
)
_NO_ISOLATION = "a worker can do everything that the host's user can do"

_INSPECTION = """
import ctypes, importlib, json, os, sys, warnings
warnings.simplefilter("ignore")
folders = sorted({os.path.realpath(path) for path in sys.path if os.path.isabs(path) and os.path.isdir(path)})
for name in sorted(name for folder in folders for name in os.listdir(folder) if name.endswith(".so")):
    module = name.partition(".")[0]
    if not module.startswith(("_test", "_xx", "xx", "_tkinter", "_ctypes_test")):
        try:
            importlib.import_module(module)
        except Exception:
            pass
linker = ctypes.CDLL(None)
images = []
if hasattr(linker, "_dyld_image_count"):
    linker._dyld_get_image_name.restype = ctypes.c_char_p
    images = [os.fsdecode(linker._dyld_get_image_name(index)) for index in range(linker._dyld_image_count())]
archives = [path for path in sys.path if path.endswith(".zip") and os.path.isfile(path)]
settings = os.path.join(os.path.dirname(os.path.dirname(sys.executable)), "pyvenv.cfg")
files = [*archives, *images, *([settings] if os.path.isfile(settings) else [])]
print(json.dumps({"programs": [sys.executable, sys._base_executable, *images[:1]], "folders": folders, "files": files}))
"""


async def prove_seatbelt(
    python: Path, *, sandbox_exec: Path = SANDBOX_EXEC
) -> tuple[Probe, SeatbeltInterpreter | None]:
    """Run a probe worker that tries to break out.

    Args:
        python: the interpreter of the workers.
        sandbox_exec: the program that applies a profile.

    Returns:
        The probe, whose tier is ``SEATBELT_UNTESTED`` only if all attempts failed and ordinary work succeeded; and
        the interpreter, or ``None`` if the tier is ``NONE``.
    """
    try:
        interpreter = await _inspect(python)
        # Another host may remove folders with the prefix of another plugin as leftovers.
        with tempfile.TemporaryDirectory(prefix="sideband-seatbelt-") as name:
            report = await _attempt(interpreter, Path(name), sandbox_exec)
    except (OSError, ValueError, TimeoutError) as error:
        return no_isolation(f"{sandbox_exec.name}: {error}"), None
    succeeded = [name for name, problem in report["must_fail"].items() if problem is None]
    if succeeded:
        return no_isolation(f"{sandbox_exec.name}: a worker could {', '.join(succeeded)}"), None
    broken = {name: problem for name, problem in report["must_work"].items() if problem is not None}
    for name, problem in broken.items():
        return no_isolation(f"{sandbox_exec.name}: a worker could not {name} ({problem})"), None
    proofs = tuple(f"could not {name}" for name in report["must_fail"])
    return Probe(Isolation.SEATBELT_UNTESTED, proofs, _GAPS), interpreter


def no_isolation(*hints: str) -> Probe:
    """Return the probe of a machine without a verified tier."""
    return Probe(Isolation.NONE, gaps=(_NO_ISOLATION,), hints=hints)


async def _inspect(python: Path) -> SeatbeltInterpreter:
    command = [str(python), "-I", "-S", "-c", _INSPECTION]
    with anyio.fail_after(_SECONDS):
        answer = await anyio.run_process(command, check=False, env={}, stderr=subprocess.PIPE)
    if answer.returncode != 0:
        raise ValueError(f"{python} failed: {answer.stderr.decode(errors='replace').strip()[-300:]}")
    facts = json.loads(answer.stdout)
    return SeatbeltInterpreter(**{name: tuple(paths) for name, paths in facts.items()})


async def _attempt(interpreter: SeatbeltInterpreter, staging: Path, sandbox_exec: Path) -> Mapping[str, Any]:
    folder, snapshot = await anyio.to_thread.run_sync(_make_snapshot, staging)
    own = [snapshot, _ATTEMPTS]
    profile = await anyio.to_thread.run_sync(seatbelt_profile, interpreter, own)
    with _open_sockets(folder) as addresses:
        facts = {"host": os.getpid(), "snapshot": str(snapshot), "open": str(folder / "open"), **addresses}
        wrapper = seatbelt_wrapper(profile, sandbox_exec)
        return await _run([*wrapper, interpreter.programs[0], "-I", "-S", "-B", str(_ATTEMPTS), json.dumps(facts)])


def _make_snapshot(staging: Path) -> tuple[Path, Path]:
    """Return the real path of the folder, and the snapshot of a sample skill in it."""
    folder = staging.resolve()
    snapshot = folder / "snapshot"
    snapshot.mkdir()
    (snapshot / "skill.py").write_text("answer = 42\n", encoding="ascii")
    (folder / "open").mkdir()
    return folder, snapshot


@contextlib.contextmanager
def _open_sockets(folder: Path) -> Iterator[dict[str, Any]]:
    """Open sockets of the host, so that only the profile can make a connection fail. Yield their addresses."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams,
        socket.socket(socket.AF_UNIX) as local,
    ):
        datagrams.bind(("127.0.0.1", 0))
        local.bind(str(folder / "open" / "socket"))
        local.listen()
        yield {"server": server.getsockname()[1], "datagrams": datagrams.getsockname()[1], "local": local.getsockname()}


async def _run(command: Sequence[str]) -> Mapping[str, Any]:
    with anyio.fail_after(_SECONDS):
        done = await anyio.run_process(command, check=False, env={}, cwd="/", stderr=subprocess.PIPE)
    if done.returncode != 0:
        stderr = done.stderr.decode(errors="replace").strip()[-300:]
        raise ValueError(stderr or f"the probe worker exited with code {done.returncode}")
    report: Mapping[str, Any] = json.loads(done.stdout)
    return report
