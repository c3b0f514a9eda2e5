"""A Redis server, which tests start, stop and kill."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

# Another one, such as that of Valkey, can be tested too.
BINARY = os.environ.get("SIDEBAND_REDIS_SERVER") or shutil.which("redis-server") or "valkey-server"
# Each write is synced, which takes no time there.
IN_MEMORY = Path("/dev/shm")


@contextmanager
def folder_of_server(*, on_disk=False):
    """Yield a new folder for the data of a server."""
    parent = None if on_disk or not IN_MEMORY.is_dir() else IN_MEMORY
    with tempfile.TemporaryDirectory(prefix="redis-", dir=parent, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Server:
    """A server with a data folder of its own. Use it with ``with``."""

    def __init__(self, folder, **options):
        self._folder, self._process = folder, None
        self.port = free_port()
        self.options = {"appendonly": "yes", "appendfsync": "always", "save": "", **options}

    @property
    def address(self):
        return f"redis://127.0.0.1:{self.port}/0"

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.kill()

    def start(self):
        fixed = {"port": self.port, "bind": "127.0.0.1", "dir": self._folder, "daemonize": "no"}
        options = (self.options | fixed).items()
        words = []
        for name, value in options:
            words += [f"--{name.replace('_', '-')}", *(value if isinstance(value, tuple) else [str(value)])]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen([BINARY, *words], stdout=log, stderr=log, start_new_session=True)
        until = time.monotonic() + 30
        while not self.is_ready():
            assert self._process.poll() is None, (self._folder / "log").read_text()
            assert time.monotonic() < until, "the server does not start"
            time.sleep(0.01)

    def is_ready(self):
        try:
            return not self.send("PING").startswith(b"-LOADING")
        except OSError:
            return False

    def send(self, *words, user=""):
        """Send a command, and return the answer as it is."""
        with socket.create_connection(("127.0.0.1", self.port), 5) as connection:
            commands = ([("AUTH", *user.split(":"))] if user else []) + [words]
            for command in commands:
                parts = [str(one).encode() for one in command]
                sent = b"".join(b"$%d\r\n%s\r\n" % (len(one), one) for one in parts)
                connection.sendall(b"*%d\r\n%s" % (len(parts), sent))
                answer = connection.recv(65_536)
            return answer

    def stop(self):
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(60)
        self._process = None

    def kill(self):
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def restart(self):
        self.kill()
        self.start()

    def start_empty(self):
        """Start again without the data, as when a failover leads to another server."""
        self.kill()
        shutil.rmtree(self._folder / "appendonlydir")
        self.start()

    def pause(self):
        """Stop the process of the server until ``go_on``, so that nothing answers."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self._process.send_signal(signal.SIGCONT)
