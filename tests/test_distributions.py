"""The example distributions of the documentation, locked, installed and run with the wheels of the workspace."""

import contextlib
import functools
import hashlib
import http.server
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import tomllib
from pathlib import Path

import pytest
from sideband_dist._exporting import FORMATS
from sideband_dist._files import read_dist_lock

EXAMPLES = Path(__file__).parents[1] / "docs" / "distributions"
PRIVATE = "https://packages.acme.example/pip"
PACKAGES = ("sideband-cli", "sideband-core", "sideband-crypto", "sideband-dist", "sideband-guard-limits",
            "sideband-project-instructions", "sideband-settings-file", "sideband-skill-packages",
            "sideband-store-sqlite")  # fmt: skip


@pytest.fixture(scope="module")
def private_index(index, tmp_path_factory):
    """The URL of a package index on this machine that has the wheels of the workspace."""
    root = tmp_path_factory.mktemp("private")
    for wheel in index.glob("*.whl"):
        name = wheel.name.partition("-")[0].replace("_", "-")
        if name in PACKAGES:
            folder = root / "simple" / name
            folder.mkdir(parents=True)
            (folder / wheel.name).hardlink_to(wheel)
            digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
            (folder / "index.html").write_text(f'<a href="{wheel.name}#sha256={digest}">{wheel.name}</a>')

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *words):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=root)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/simple"
        server.shutdown()
        thread.join()


class Distribution:
    """An example distribution in a folder of its own, which has an environment `env` once it is installed."""

    def __init__(self, folder):
        self.folder = folder
        self.environment = folder / "env"

    def dist(self, *words, expect=0):
        """Run `sideband dist` of the tools, which are outside the locked environment."""
        done = run(
            [Path(sys.executable).with_name("sideband"), "dist", *words], self.folder, self.folder / "tools-home"
        )
        assert done.returncode == expect, done.stdout + done.stderr
        return done

    def run(self, program, *words, folder=None, **environment):
        """Run a program of the locked environment."""
        path = self.environment / "bin" / program
        return run([path, *words], folder or self.folder, self.folder / "home", **environment)

    def site(self):
        (found,) = self.environment.glob("lib/python3.*/site-packages")
        return found


def run(command, folder, home, **environment):
    variables = {"PATH": os.environ["PATH"], "HOME": str(home), "SIDEBAND_HOME": str(home), **environment}
    kept = {name: os.environ[name] for name in ("UV_CACHE_DIR", "XDG_CACHE_HOME") if name in os.environ}
    kept.setdefault("UV_CACHE_DIR", str(Path("~/.cache/uv").expanduser()))
    indexes = {name: value for name, value in os.environ.items() if name.startswith(("UV_", "PIP_", "SSL_", "HTTP"))}
    return subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False, cwd=folder,
        stdin=subprocess.DEVNULL, env={**indexes, **kept, **variables},
    )  # fmt: skip


@pytest.fixture(scope="module")
def minimal(index, tmp_path_factory):
    """The locked-down distribution, installed from a folder of wheels."""
    folder = tmp_path_factory.mktemp("minimal")
    text = (EXAMPLES / "minimal" / "sideband.toml").read_text()
    (folder / "sideband.toml").write_text(text.replace("[dist]\n", f'[dist]\nwheels = ["{index}"]\n', 1))
    distribution = Distribution(folder)
    distribution.dist("lock")
    distribution.dist("sync", "--environment", "env")
    return distribution


@pytest.fixture(scope="module")
def team(private_index, tmp_path_factory):
    """The distribution of a team, with a private plugin and a private index."""
    folder = tmp_path_factory.mktemp("team")
    shutil.copytree(EXAMPLES / "team", folder, dirs_exist_ok=True)
    text = (folder / "sideband.toml").read_text()
    assert PRIVATE in text
    (folder / "sideband.toml").write_text(text.replace(PRIVATE, private_index))
    distribution = Distribution(folder)
    distribution.dist("lock", "--no-build-isolation")
    distribution.dist("sync", "--environment", "env", "--no-build-isolation")
    return distribution


@pytest.fixture
def changed(minimal):
    """The locked-down distribution, to change files of, which are restored."""
    with contextlib.ExitStack() as stack:

        def change(path, text):
            file = minimal.site() / path
            content = file.read_bytes() if file.exists() else None
            stack.callback(lambda: file.unlink() if content is None else file.write_bytes(content))
            file.unlink(missing_ok=True)  # the file may be a link into the cache of uv
            if text is not None:
                file.parent.mkdir(exist_ok=True)
                file.write_text(text)
            return hashlib.sha256(content or b"").hexdigest()

        yield change


def test_page_shows_the_example():
    page = (EXAMPLES.parent / "distributions.md").read_text()
    shown = re.search(r"```toml\n(.*?)```", page, re.DOTALL)[1]
    assert tomllib.loads(shown) == tomllib.loads((EXAMPLES / "minimal" / "sideband.toml").read_text())


def error_of(done):
    assert done.returncode == 5, done.stdout + done.stderr
    return json.loads(done.stdout)["error"]


def test_locked_down_distribution_runs_and_has_no_more_than_was_locked(minimal):
    done = minimal.run("sideband", "op", "crypto.hash", "data=abc")
    assert done.returncode == 0, done.stderr
    listed = json.loads(minimal.run("sideband", "plugins", "list", "--json").stdout)
    usable = {f"{one['kind']}.{one['name']}" for one in listed if one["state"] != "denied"}
    assert {label for label in usable if not label.startswith(("command.", "skill."))} == {
        "guard.guard-limits", "op.crypto", "store.sqlite",
    }  # fmt: skip
    assert all(one["locked"] for one in listed if one["state"] != "denied")
    reasons = {one["name"]: one["reason"] for one in listed if one["state"] == "denied"}
    assert reasons == {"demo": "it is for demonstrations"}


def test_environment_equals_its_lock(minimal):
    assert "equals" in minimal.dist("check", "--environment", "env").stdout


EMBEDDING = """
import json, sys
from pathlib import Path
import anyio
from sideband import Host
async def main():
    async with Host() as host:
        print(json.dumps({one.label: [one.state.value, one.decided_by] for one in host.plugins.records}))
        print(await host.op("crypto.hash", {"data": "abc"}))
anyio.run(main)
assert "sideband_http" not in sys.modules and "evil" not in sys.modules, "imported"
"""


def test_what_is_installed_in_addition_is_never_imported(minimal, wheels, tmp_path):
    """By none of: options, variables, another folder, and a program that opens a host."""
    site = minimal.site()
    with contextlib.ExitStack() as stack:
        for name in ("sideband_extra", "sideband_extra-1.0.dist-info"):
            (site / name).mkdir()
            stack.callback(shutil.rmtree, site / name)
        (site / "sideband_extra" / "__init__.py").write_text("import sys; sys.modules['evil'] = sys")
        info = site / "sideband_extra-1.0.dist-info"
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: sideband-extra\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(
            "[sideband.v1.guard]\nextra = sideband_extra\n[sideband.v1.hook]\nextra = sideband_extra\n"
        )
        shutil.copytree(info, tmp_path / "other-1.0.dist-info")
        (tmp_path / "other-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
        (tmp_path / "sideband.toml").write_text('[policy]\nonly = ["*"]\nstrict = false\nguards = []\n')
        variables = {"PYTHONPATH": str(tmp_path), "SIDEBAND_POLICY__ONLY": '["*"]', "SIDEBAND_POLICY__GUARDS": "[]"}
        done = minimal.run("python", "-c", EMBEDDING, folder=tmp_path, **variables)
        assert done.returncode == 0, done.stderr
        states = json.loads(done.stdout.splitlines()[0])
        assert states["hook.extra"] == states["guard.extra"] == ["denied", "lock"]
        words = (
            "op",
            "crypto.hash",
            "data=abc",
            "--trust",
            "--set",
            'policy.only=["*"]',
            "--set",
            "policy.strict=false",
        )
        done = minimal.run("sideband", *words, folder=tmp_path, **variables)
        assert done.returncode == 0, done.stderr
        assert "this environment is locked" in done.stderr
        found = error_of(minimal.dist("check", "--environment", "env", "--json", expect=5))["differences"]
        assert found == ["sideband-extra 1.0 is installed, but not in the lock"]


def test_changed_file_is_refused_by_name_with_both_hashes(minimal, changed):
    words = ("op", "crypto.hash", "data=abc", "--set", "policy.strict=false")
    before = changed("sideband_crypto/plugin.py", "import sys\nsys.exit('imported')\n")
    error = error_of(minimal.run("sideband", *words, "--json"))
    assert error["code"] == "plugin.drifted"
    after = hashlib.sha256(b"import sys\nsys.exit('imported')\n").hexdigest()
    for part in ("sideband-crypto", "sideband_crypto/plugin.py has changed", before, after):
        assert part in error["message"]


@pytest.mark.parametrize("path", ["sideband_guard_limits/plugin.py", "sideband_guard_limits-0.1.0.dist-info/METADATA"])
def test_host_does_not_start_without_its_guard(minimal, changed, path):
    changed(path, None)
    error = error_of(minimal.run("sideband", "op", "crypto.hash", "data=abc", "--json"))
    assert error["code"] == "plugin.guard"
    assert "`guard-limits`" in error["message"]


def test_check_names_each_difference(minimal, changed):
    changed("sideband_crypto/plugin.py", "changed")
    changed("sideband_crypto/_extra.py", "")
    changed("sideband_store_sqlite/plugin.py", None)
    error = error_of(minimal.dist("check", "--environment", "env", "--json", expect=5))
    assert error["code"] == "dist.changed"
    assert [re.sub("[0-9a-f]{64}", "HASH", one) for one in error["differences"]] == [
        "sideband-crypto 0.1.0: sideband_crypto/plugin.py has changed: its SHA-256 is HASH, and the lock has HASH",
        "sideband-crypto 0.1.0: sideband_crypto/_extra.py is not in the lock",
        "sideband-store-sqlite 0.1.0: sideband_store_sqlite/plugin.py is missing",
    ]


def test_sync_replaces_a_changed_environment_and_a_killed_one_changes_nothing(minimal):
    file = minimal.site() / "sideband_crypto" / "plugin.py"
    content = file.read_text()
    file.unlink()
    command = [Path(sys.executable).with_name("sideband"), "dist", "sync", "--environment", "env"]
    home = minimal.folder / "tools-home"
    process = subprocess.Popen(
        command, cwd=minimal.folder, stderr=subprocess.DEVNULL, start_new_session=True,
        env={**os.environ, "SIDEBAND_HOME": str(home)},
    )  # fmt: skip
    while not list(minimal.folder.glob(".env.new-*/environment")) and process.poll() is None:
        pass
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert process.returncode == -signal.SIGKILL
    assert not file.exists()
    assert minimal.run("sideband", "plugins", "list").returncode == 0
    minimal.dist("sync", "--environment", "env")
    assert file.read_text() == content
    assert not list(minimal.folder.glob(".env.*"))
    minimal.dist("check", "--environment", "env")


def test_distribution_of_a_team_runs_its_private_guard_which_no_option_changes(team):
    assert team.run("sideband", "op", "crypto.hash", "data=abc").returncode == 0
    options = ("--set", "plugins.acme-audit.forbidden=[]")
    done = team.run("sideband", "op", "crypto.random", "length=2", *options)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "has not been reviewed" in done.stderr
    assert "ignored `plugins.acme-audit.forbidden`" in done.stderr
    done = team.run("sideband", "op", "crypto.hash", "data=abc", "--set", 'policy.deny={"acme-audit"="unwanted"}')
    assert done.returncode == 5, done.stdout + done.stderr
    assert "the required guard `acme-audit` is denied: unwanted" in done.stderr
    assert team.run("sideband", "dist", "check").returncode == 0


def test_lock_of_a_team_names_ops_levels_and_its_private_package(team):
    lock = tomllib.loads((team.folder / "sideband.lock").read_text())
    plugins = {f"{one['kind']}.{one['name']}": one for one in lock["plugins"]}
    assert plugins["op.crypto"]["ops"]["crypto.hash"].startswith("SAFE")
    assert plugins["guard.acme-audit"]["order"] == 1
    (package,) = (one for one in lock["packages"] if one["name"] == "acme-audit")
    assert (package["path"], package["version"]) == ("acme-audit", "1.2.0")
    assert lock["settings"]["plugins"] == {"acme-audit": {"forbidden": ["crypto.random"]}}


def test_locking_again_changes_nothing(team):
    before = (team.folder / "sideband.lock").read_text()
    data = json.loads(team.dist("lock", "--no-build-isolation", "--json").stdout)
    assert data["changes"] == []
    assert (team.folder / "sideband.lock").read_text() == before


def test_changed_source_of_a_private_package_is_not_installed(team):
    file = team.folder / "acme-audit" / "src" / "acme_audit" / "__init__.py"
    content = file.read_text()
    file.write_text(content + "# changed\n")
    try:
        words = ("sync", "--environment", "env", "--no-build-isolation", "--json")
        error = error_of(team.dist(*words, expect=5))
    finally:
        file.write_text(content)
    assert error["code"] == "dist.invalid"
    assert "acme-audit" in error["message"]
    assert team.run("sideband", "dist", "check").returncode == 0


def hosts(text):
    return set(re.findall(r"\w+://([^/\s\"':]+)", text))


def test_no_registry_is_named_that_the_team_did_not_name(minimal, team):
    found = []
    for distribution in (minimal, team):
        file = distribution.folder / "sideband.lock"
        lock = read_dist_lock(file)
        found.append("\n".join([file.read_text(), *(export(lock) for export in FORMATS.values())]))
    assert hosts(found[0]) == {"cyclonedx.org"}
    assert hosts(found[1]) == {"cyclonedx.org", "127.0.0.1"}
    assert not re.search(r"pypi\.org|pythonhosted", "".join(found))


def test_check_of_the_exported_dockerfile_reports_a_changed_file(minimal, changed):
    text = minimal.dist("export", "--format", "dockerfile").stdout
    program = re.search(r'python -I -c "(.*)"', text)[1]
    assert minimal.run("python", "-I", "-c", program).returncode == 0
    changed("sideband_crypto/plugin.py", "changed")
    done = minimal.run("python", "-I", "-c", program)
    assert done.returncode == 1
    assert "sideband_crypto/plugin.py has changed" in done.stderr


def test_exported_pylock_has_the_hashes_of_the_wheels(minimal, index):
    text = minimal.dist("export", "--format", "pylock").stdout
    from packaging.pylock import Pylock

    pylock = Pylock.from_dict(tomllib.loads(text))
    pylock.validate()
    ours = [str(one.name) for one in pylock.packages if one.name.startswith("sideband-")]
    assert set(ours) == {one for one in PACKAGES if one != "sideband-dist"}
    for package in pylock.packages:
        for wheel in package.wheels:
            if (index / wheel.name).exists():
                assert hashlib.sha256((index / wheel.name).read_bytes()).hexdigest() == wheel.hashes["sha256"]
