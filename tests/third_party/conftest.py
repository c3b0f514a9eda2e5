"""An independent package, its releases as wheels, and the environment in which a user installs them."""

import json
import os
import re
import shutil
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import pytest

collect_ignore = ["sideband-tides"]  # its tests run in its own environment

SOURCE = Path(__file__).parent / "sideband-tides"
COMMAND = Path(sys.executable).with_name("sideband")
BUILD = "import sys; from hatchling.build import build_wheel; build_wheel(sys.argv[1])"


@pytest.fixture(scope="session")
def release(tmp_path_factory):
    """Return a function that builds a version of the package, with changes of its sources."""

    def build(version, **changes):
        folder = tmp_path_factory.mktemp("release")
        shutil.copytree(SOURCE, folder / "source", ignore=shutil.ignore_patterns("__pycache__"))
        manifest = folder / "source" / "pyproject.toml"
        manifest.write_text(manifest.read_text().replace('version = "1.0.0"', f'version = "{version}"'))
        for name, (old, new) in changes.items():
            path = folder / "source" / "src" / "sideband_tides" / f"{name}.py"
            assert old in path.read_text()
            path.write_text(path.read_text().replace(old, new))
        subprocess.run(
            [sys.executable, "-c", BUILD, folder], cwd=folder / "source", check=True, capture_output=True, text=True
        )
        return next(folder.glob("*.whl"))

    return build


@pytest.fixture(scope="session")
def first(release):
    """The wheel of version 1.0.0."""
    return release("1.0.0")


@pytest.fixture(scope="session")
def second(release):
    """The wheel of version 1.1.0, whose family has another right of its own."""
    return release("1.1.0", ops=("uses=[right]", 'uses=[right, "secrets:name=tides"]'))


@pytest.fixture(scope="module")
def service():
    """The tide service: its address, and the paths that were requested."""
    requested = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            requested.append(self.path)
            content = json.dumps({"times": ["2026-05-01T04:10", "2026-05-01T16:32"]}).encode()
            self.send_response(200 if self.path == "/dover" else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=[0.01])
    thread.start()
    yield SimpleNamespace(url=f"http://127.0.0.1:{server.server_port}", requested=requested)
    server.shutdown()
    thread.join()
    server.server_close()


class Team:
    """A team that locks the package with what it needs, in a folder with `sideband.toml`, and the environment `env`."""

    def __init__(self, folder, service):
        self.folder, self._service = folder, service
        (folder / "wheels").mkdir()

    def choose(self, index, *packages):
        """Write `sideband.toml` with these packages."""
        ours = ("sideband-cassettes", "sideband-cli", "sideband-dist", "sideband-http", "sideband-sandbox",
                "sideband-secrets", "sideband-skills", "sideband-store-sqlite")  # fmt: skip
        lines = "".join(f'{name} = "*"\n' for name in sorted((*ours, *packages)))
        settings = (
            f'[plugins.tides]\nurl = "{self._service.url}"\nstations = ["dover"]\n'
            '[grants]\n"plugin:tides" = ["http:host=127.0.0.1,method=GET"]\ntide-report = ["tides"]\n'
        )
        (self.folder / "sideband.toml").write_text(
            f'[dist]\nname = "harbor"\nwheels = ["{index}", "wheels"]\n[dist.packages]\n{lines}'
            + (settings if packages else "")
        )

    def dist(self, *words, code=0):
        """Run `sideband dist` of the tools, which are outside the locked environment, and return its data."""
        return self._run([COMMAND, "dist", *words, "--json"], code)

    def sideband(self, *words, code=0):
        """Run a command of the locked environment, and return its data."""
        return self._run([self.folder / "env" / "bin" / "sideband", *words, "--json"], code)

    def _run(self, words, code):
        passed = {name: value for name, value in os.environ.items() if name.startswith(("PATH", "UV_", "PIP_", "SSL_"))}
        cache = passed.get("UV_CACHE_DIR", str(Path("~/.cache/uv").expanduser()))
        variables = {**passed, "UV_CACHE_DIR": cache, "HOME": str(self.folder), "SIDEBAND_HOME": f"{self.folder}/home"}
        done = subprocess.run(
            list(map(str, words)), cwd=self.folder, env=variables, capture_output=True, text=True, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def team(index, first, service, tmp_path_factory):
    """A team whose environment has the first version."""
    team = Team(tmp_path_factory.mktemp("team"), service)
    (team.folder / "wheels" / first.name).hardlink_to(first)
    team.choose(index, "sideband-tides")
    team.dist("lock")
    team.dist("sync", "--environment", "env")
    return team


@pytest.fixture
def user(environment, service, tmp_path):
    """A user with a home: ``user.sideband(words)`` runs the command, and ``user.data(words)`` also parses its JSON."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "sideband.toml").write_text(
        f'[plugins.tides]\nurl = "{service.url}"\nstations = ["dover"]\nclosed = ["wick"]\n'
        '[grants]\n"plugin:tides" = ["http:host=127.0.0.1,method=GET"]\ntide-report = ["tides"]\n'
    )

    def sideband(*words, code=0):
        done = environment.run("sideband", *map(str, words), SIDEBAND_HOME=str(home))
        assert done.returncode == code, done.stdout + done.stderr
        return re.sub(r"\s+", " ", done.stdout + done.stderr)

    def data(*words, code=0):
        done = environment.run("sideband", *map(str, words), "--json", SIDEBAND_HOME=str(home))
        assert done.returncode == code, done.stdout + done.stderr
        return json.loads(done.stdout)

    return SimpleNamespace(sideband=sideband, data=data, home=home)
