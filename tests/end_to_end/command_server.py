"""A server that runs the command line in forked processes, which saves the half second of imports in each test.

Each command is a process with its own arguments, environment, working directory and standard streams, as if the
executable ``sideband`` had been started. What only a new interpreter shows is tested with the executable itself.
"""

import atexit
import contextlib
import gc
import importlib
import io
import json
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

COMMAND = Path(sys.executable).with_name("sideband")
# The modules that these commands import are imported once, before any command is forked.
WARM_UP = (
    ("op", "sql.execute", "sql=CREATE TABLE t (a)", "db=t.db"),
    ("call", "demo.harvest", "pages=0", "--yes", "--isolation", "none"),
    ("chat", "--model", "scripted:test"),
    ("audit", "verify"),
    ("audit", "why", "nothing"),
    ("secrets", "list"),
    ("doctor",),
)


class CommandServer:
    """The client side of the server, which runs until ``close`` or the end of this process."""

    def __init__(self, folder):
        self._address = str(folder / "server")
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self._address)
        listener.listen()
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(listener.fileno())], pass_fds=[listener.fileno()], stdin=subprocess.PIPE
        )
        listener.close()

    def start(self, words, *, streams, folder, environment, terminal=False):
        """Start a command and return its ``Command``.

        Args:
            words: the arguments.
            streams: the file descriptors of its standard streams.
            folder: the working directory.
            environment: all environment variables.
            terminal: whether standard input becomes the controlling terminal of a new session.
        """
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(120)
        connection.connect(self._address)
        request = {"words": words, "folder": str(folder), "environment": environment, "terminal": terminal}
        data = json.dumps(request).encode()
        socket.send_fds(connection, [len(data).to_bytes(4, "big")], streams)
        connection.sendall(data)
        return Command(connection)

    def run(self, words, *, stdin, folder, environment, timeout=120):
        """Run a command to its end, like ``subprocess.run``. With ``stdin=None``, its input is ``/dev/null``."""
        (inside, writer), (out, out_inside), (err, err_inside) = (os.pipe() for _ in range(3))
        if stdin is None:
            os.close(inside)
            inside, stdin = os.open(os.devnull, os.O_RDONLY), ""
        with contextlib.ExitStack() as ends:
            for descriptor in (inside, out_inside, err_inside):
                ends.callback(os.close, descriptor)
            command = self.start(
                words, streams=[inside, out_inside, err_inside], folder=folder, environment=environment
            )
        os.set_blocking(writer, False)
        assert os.write(writer, stdin.encode()) == len(stdin.encode()), "the input does not fit into a pipe"
        os.close(writer)
        output = _read_all([out, err], time.monotonic() + timeout)
        return subprocess.CompletedProcess([COMMAND, *words], command.wait(timeout), *output)

    def close(self):
        """Stop the server."""
        self._process.stdin.close()
        self._process.wait()


class Command:
    """A running command, with the interface of ``subprocess.Popen``."""

    def __init__(self, connection):
        self._connection = connection
        self.pid = self._receive()
        self.returncode = None

    def poll(self):
        """Return the exit code, or ``None`` if the command is running."""
        with contextlib.suppress(BlockingIOError, subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout=120):
        """Wait for the end and return the exit code."""
        if self.returncode is None:
            self._connection.settimeout(timeout)
            try:
                self.returncode = self._receive()
            except TimeoutError:
                raise subprocess.TimeoutExpired(str(COMMAND), timeout) from None
            self._connection.close()
        return self.returncode

    def _receive(self):
        data = self._connection.recv(4)
        assert len(data) == 4, "the command server has failed"
        return int.from_bytes(data, "big", signed=True)

    def send_signal(self, number):
        """Send a signal to the command."""
        os.kill(self.pid, number)

    def kill(self):
        """Kill the command."""
        self.send_signal(signal.SIGKILL)


def _read_all(descriptors, until):
    output = dict.fromkeys(descriptors, b"")
    with selectors.DefaultSelector() as selector:
        for descriptor in descriptors:
            selector.register(descriptor, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(until - time.monotonic())
            assert ready, f"timeout after this output: {output}"
            for key, _ in ready:
                chunk = os.read(key.fd, 65_536)
                output[key.fd] += chunk
                if not chunk:
                    selector.unregister(key.fd)
                    os.close(key.fd)
    return [io.TextIOWrapper(io.BytesIO(data), "utf-8").read() for data in output.values()]


def serve(descriptor):
    """Fork a monitor for each request, which forks the command and reports its exit code. Neither returns."""
    listener = socket.socket(fileno=descriptor)
    _import_all()
    gc.freeze()  # a collection in a forked process would copy all memory
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # monitors need not be waited for
    while 0 not in select.select([listener, 0], [], [])[0]:  # standard input ends with the process that runs the tests
        connection, _ = listener.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listener.close()
            _monitor(connection)
        connection.close()


def _import_all():
    """Import the modules that commands use. The commands themselves run in a forked process, since they use threads."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _run_warm_up()
        with os.fdopen(writer, "w") as stream:
            json.dump(list(sys.modules), stream)  # in the order of their imports
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        names = json.load(stream)
    os.waitpid(child, 0)
    for name in [*names, "prompt_toolkit.shortcuts", "prompt_toolkit.output.vt100", "prompt_toolkit.input.vt100"]:
        if name != "__main__":
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
    _build_models()


def _build_models():
    """Build the models that are built at their first use otherwise, by each command again."""
    from pydantic import BaseModel, PydanticUserError

    left = BaseModel.__subclasses__()
    while left:
        model = left.pop()
        left += model.__subclasses__()
        with contextlib.suppress(PydanticUserError):
            model.model_rebuild()  # does nothing if it is built


def _run_warm_up():
    from sideband.__main__ import main

    with tempfile.TemporaryDirectory() as folder, Path(os.devnull).open("r+") as null:
        for descriptor in range(3):
            os.dup2(null.fileno(), descriptor)
        os.chdir(folder)
        os.environ.update(HOME=folder, SIDEBAND_HOME=f"{folder}/home")
        for words in WARM_UP:
            with contextlib.suppress(SystemExit):
                main(list(words))


def _monitor(connection):
    length, streams, _, _ = socket.recv_fds(connection, 4, 3)
    data = b""
    while len(data) < int.from_bytes(length, "big"):
        data += connection.recv(65_536)
    child = os.fork()
    if child == 0:
        connection.close()
        _run_command(streams, **json.loads(data))
    for descriptor in streams:
        os.close(descriptor)
    connection.sendall(child.to_bytes(4, "big"))
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(OSError):  # the test may not wait for the exit code
        connection.sendall(os.waitstatus_to_exitcode(status).to_bytes(4, "big", signed=True))
    os._exit(0)


def _run_command(streams, *, words, folder, environment, terminal):
    # As a shell does for a command in the foreground. A test run in the background ignores interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    if terminal:
        import fcntl
        import termios

        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    encoding = environment.get("PYTHONIOENCODING", "utf-8")
    sys.stdin = os.fdopen(0, encoding=encoding, errors="surrogateescape")
    sys.stdout = os.fdopen(1, "w", encoding=encoding, errors="surrogateescape" if encoding == "utf-8" else "strict")
    sys.stderr = os.fdopen(2, "w", encoding=encoding, errors="backslashreplace")
    sys.path[:0] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    importlib.invalidate_caches()
    sys.argv = [str(COMMAND), *words]
    from sideband.__main__ import main

    try:
        code = main()
    except SystemExit as ending:
        code = ending.code
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(int(code or 0))  # without the clean-up of all modules, which takes longer than most commands


if __name__ == "__main__":
    sys.path[0] = str(COMMAND.parent)
    sys.exit(serve(int(sys.argv[1])))
