"""Parsing of Python in a limited process, whose trees are received as data."""

from __future__ import annotations

import ast
import io
import os
import pickle
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from attrs import define, field

from . import _parser_process
from ._meter import LimitReached, Meter
from ._parser_process import ANSWER, INVALID, NODES, REQUEST

_SCRIPT = Path(_parser_process.__file__)
# milliseconds between two checks whether loading was cancelled
_PATIENCE = 50
_CHUNK = 1 << 20
_CONSTANTS = {"Ellipsis": Ellipsis, "complex": complex}


class InvalidPython(ValueError):
    """The text is not valid Python. The message contains the line and the reason."""


class _TreeReader(pickle.Unpickler):
    """Reads syntax trees and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        """Return a class of syntax nodes, or a type of constants."""
        found = getattr(ast, name, None) if module == "ast" else None
        if isinstance(found, type) and issubclass(found, ast.AST):
            return found
        if module == "builtins" and name in _CONSTANTS:
            return _CONSTANTS[name]
        raise pickle.UnpicklingError(f"`{module}.{name}` is not a syntax node")


@define
class PythonParser:
    """Parses text in another process, which is started on first use and restarted after it has exceeded a limit.

    Args:
        meter: the limits, and what is used.
    """

    meter: Meter
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop()

    def parse(self, text: str) -> ast.Module:
        """Return the syntax tree.

        Raises:
            InvalidPython: if the text is not valid Python.
            LimitReached: if parsing needs more time, memory or nodes than the current skill has left.
        """
        self.meter.check()
        content = text.encode("utf-8", "surrogatepass")
        self._send(REQUEST.pack(len(content), self.meter.seconds_left, self.meter.nodes_left) + content)
        kind, seconds, nodes, length = ANSWER.unpack(self._receive(ANSWER.size))
        answer = self._receive(length)
        self.meter.add_parsed(seconds, nodes)
        if kind == INVALID:
            raise InvalidPython(answer.decode())
        if kind == NODES:
            limit = self.meter.limits.nodes
            raise LimitReached("nodes", f"its Python files have more than {limit:,} syntax nodes")
        tree = _TreeReader(io.BytesIO(answer)).load()
        if not isinstance(tree, ast.Module):
            raise pickle.UnpicklingError("expected a module")
        return tree

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._process = subprocess.Popen(  # noqa: S603 - the command is fixed
                [sys.executable, "-I", "-S", "-W", "ignore", str(_SCRIPT), str(self.meter.limits.memory)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={},
                cwd="/",
                # Ctrl+C is for the host, which may continue
                process_group=0,
            )
        return self._process

    def _send(self, request: bytes) -> None:
        stream = self._started().stdin
        if stream is not None:
            # a process that has ended is noticed when its answer is read
            with suppress(BrokenPipeError):
                stream.write(request)
                stream.flush()

    def _receive(self, length: int) -> bytes:
        return b"".join(self._chunks(length))

    def _chunks(self, length: int) -> Iterator[bytes]:
        stream = self._started().stdout
        waiting = select.poll()
        if stream is not None:
            waiting.register(stream, select.POLLIN)
        while length and stream is not None:
            while not waiting.poll(_PATIENCE):
                self.meter.check()
            # not `read`, whose buffer would hide bytes from `poll`
            chunk = os.read(stream.fileno(), min(length, _CHUNK))
            if not chunk:
                raise self._ended()
            length -= len(chunk)
            yield chunk

    def _ended(self) -> LimitReached:
        """Return the limit that ended the process."""
        code = self._stop(kill=False)
        if code == -signal.SIGXCPU:
            self.meter.add_parsed(self.meter.seconds_left, 0)
            return LimitReached("seconds", f"parsing takes more than {self.meter.limits.seconds:g} s of processor time")
        return LimitReached("memory", f"parsing takes more than {self.meter.limits.memory >> 20:,} MiB of memory")

    def _stop(self, *, kill: bool = True) -> int | None:
        process, self._process = self._process, None
        if process is None:
            return None
        if kill:
            process.kill()
        if process.stdout is not None:
            process.stdout.close()
        with suppress(BrokenPipeError):
            if process.stdin is not None:
                process.stdin.close()
        return process.wait()
