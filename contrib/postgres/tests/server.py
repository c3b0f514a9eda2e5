"""A PostgreSQL server, which tests start, stop and kill."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

BINARIES = next(
    (path.parent for path in sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))),
    Path(shutil.which("postgres") or "postgres").resolve().parent,
)
# The server refuses to run as root.
AS_USER = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}


@contextmanager
def folder_of_server():
    """Yield a new folder that belongs to the user of the server, who cannot enter those of pytest."""
    folder = Path(tempfile.mkdtemp(prefix="postgres-"))
    if AS_USER:
        shutil.chown(folder, "postgres", "postgres")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Server:
    """A server with a data folder of its own. Use it with ``with``. Benchmarks let it sync."""

    def __init__(self, folder, *, fsync="off"):
        self._folder, self._process, self._fsync = folder, None, fsync
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        options = ["-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8"]
        create = [BINARIES / "initdb", "-D", folder / "data", *options]
        subprocess.run(create, check=True, capture_output=True, cwd="/", **AS_USER)

    @property
    def address(self):
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop("immediate")

    def start(self):
        options = ["-c", f"fsync={self._fsync}", "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="]
        command = [BINARIES / "postgres", "-D", self._folder / "data", "-p", str(self.port), *options]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command, cwd="/", stdout=log, stderr=log, start_new_session=True, **AS_USER
            )
        until = time.monotonic() + 30
        is_ready = [BINARIES / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        while subprocess.run(is_ready, check=False).returncode:
            assert self._process.poll() is None, "the server has ended"
            assert time.monotonic() < until, "the server does not start"

    def stop(self, mode="fast"):
        """Stop the server: fast, or as if it crashed."""
        if self._process is not None:
            self._process.send_signal({"fast": signal.SIGINT, "immediate": signal.SIGQUIT}[mode])
            self._process.wait(60)
            self._process = None

    def restart(self, mode="immediate"):
        self.stop(mode)
        self.start()

    def pause(self):
        """Stop all processes of the server until ``go_on``, so that nothing answers."""
        self._signal(signal.SIGSTOP)

    def go_on(self):
        self._signal(signal.SIGCONT)

    def _signal(self, number):
        pid = self._process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for one in (pid, *map(int, children)):
            os.kill(one, number)
