"""Installation with a real uv and real wheels: all or nothing, without running package code."""

import os
import resource
import signal
import socket
import stat
import subprocess
import sys
import tarfile
import threading
import zipfile
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import anyio
import pytest
from sideband.environments import EnvironmentMissing, Environments
from sideband.loading import SkillError, SkillSpec
from sideband_skill_packages import EnvironmentFailed, InstallerMissing, PackageSource, install

pytestmark = pytest.mark.anyio

HERE = Path(__file__)


@pytest.fixture
def make_wheel(wheels):
    """Build a wheel of one module and optional further files."""

    def make(name="tiny", version="1.0", files=None, *, tag="py3-none-any", needs=()):
        information = f"{name}-{version}.dist-info"
        content = {f"{name}.py": f"VERSION = {version!r}\n", **(files or {})}
        lines = "".join(f"Requires-Dist: {need}\n" for need in needs)
        content[f"{information}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{lines}"
        content[f"{information}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tag}\n"
        content[f"{information}/RECORD"] = "".join(f"{path},,\n" for path in [*content, f"{information}/RECORD"])
        with zipfile.ZipFile(wheels / f"{name}-{version}-{tag}.whl", "w") as archive:
            for path, text in content.items():
                archive.writestr(path, text)

    return make


@pytest.fixture
def make_source(tmp_path, wheels):
    """Make a source distribution whose build creates a marker file, which is returned."""

    def make(name="sourced", version="1.0"):
        folder = tmp_path / f"{name}-{version}"
        folder.mkdir()
        trace = tmp_path / "built"
        (folder / "PKG-INFO").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (folder / "pyproject.toml").write_text(
            f"[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n"
            f"[project]\nname = '{name}'\nversion = '{version}'\n"
        )
        (folder / "backend.py").write_text(
            "import pathlib, zipfile\n"
            "def build_wheel(folder, settings=None, metadata=None):\n"
            f"    pathlib.Path({str(trace)!r}).touch()\n"
            f"    file, info = '{name}-{version}-py3-none-any.whl', '{name}-{version}.dist-info'\n"
            "    with zipfile.ZipFile(pathlib.Path(folder, file), 'w') as archive:\n"
            f"        archive.writestr('{name}.py', '')\n"
            "        archive.writestr(f'{info}/METADATA', pathlib.Path('PKG-INFO').read_text())\n"
            "        archive.writestr(f'{info}/WHEEL', 'Wheel-Version: 1.0\\nGenerator: t\\n'\n"
            "            'Root-Is-Purelib: true\\nTag: py3-none-any\\n')\n"
            f"        archive.writestr(f'{{info}}/RECORD', '{name}.py,,\\n')\n"
            "    return file\n"
        )
        with tarfile.open(wheels / f"{name}-{version}.tar.gz", "w:gz") as archive:
            archive.add(folder, folder.name)
        return trace

    return make


@pytest.fixture
def fake_uv(tmp_path, monkeypatch):
    """Replace uv by a script, for behavior that the real one does not show. ``$4`` is the target folder."""

    def make(script):
        program = tmp_path / "programs" / "uv"
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setitem(sys.modules, "uv", None)
        monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}/usr/bin{os.pathsep}/bin")

    return make


@pytest.fixture
def silent_index(monkeypatch):
    """An index that accepts a request and never answers; ``wait`` returns once a request has arrived."""
    server = socket.create_server(("127.0.0.1", 0))
    arrived = threading.Event()
    connections = []

    def serve():
        while True:
            try:
                connection = server.accept()[0]
            except OSError:
                return
            connections.append(connection)
            arrived.set()

    thread = threading.Thread(target=serve)
    thread.start()
    monkeypatch.setenv("UV_DEFAULT_INDEX", f"http://127.0.0.1:{server.getsockname()[1]}/")

    class Index:
        wait = staticmethod(partial(arrived.wait, 30))
        received_a_request = staticmethod(arrived.is_set)

        @staticmethod
        def client_disconnected():
            """Wait for the client to disconnect; return ``True`` then."""
            connection = connections[0]
            connection.settimeout(30)
            while connection.recv(65_536):
                pass
            return True

    yield Index()
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    for connection in connections:
        connection.close()
    thread.join()


def skill(*requirements, **options):
    return SkillSpec("needy", "needy", "x", HERE.parent, requirements=requirements, **options)


def installed(environments):
    return sorted(path.name for path in environments.folder.iterdir()) if environments.folder.exists() else []


async def failed(environments, source, *requirements):
    """Return the error of an installation that must fail and leave nothing."""
    with pytest.raises(EnvironmentFailed) as caught:
        await install(environments, skill(*requirements), source)
    assert installed(environments) == []
    return caught.value


async def test_requirements_are_installed_with_their_dependencies(environments, make_wheel, wheels):
    make_wheel("tiny", "1.0")
    make_wheel("tiny", "2.0")
    make_wheel("upper", needs=["tiny>=1"])
    found = await install(environments, skill("upper", "tiny<2"), PackageSource(wheels=wheels))
    assert found.packages == {"tiny": "1.0", "upper": "1.0"}
    assert found.requirements == ("tiny<2", "upper")
    assert (found.path / "tiny.py").read_text() == "VERSION = '1.0'\n"
    assert environments.require(skill("tiny<2", "upper")) == found.path
    assert environments.find(skill("upper", "tiny <2")) == found
    assert installed(environments) == [found.path.name]


async def test_packages_are_listed_by_normalized_names(environments, make_wheel, wheels):
    make_wheel("odd_one", "1.0.post1")
    found = await install(environments, skill("Odd.One"), PackageSource(wheels=wheels))
    assert found.packages == {"odd-one": "1.0.post1"}


async def test_package_with_two_dist_info_folders_is_rejected(environments, make_wheel, wheels):
    make_wheel(files={"other-2.dist-info/METADATA": "Name: other"})
    error = await failed(environments, PackageSource(wheels=wheels), "tiny")
    assert "Multiple .dist-info" in error.message


async def test_skill_without_requirements_needs_neither_an_environment_nor_uv(environments, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere")
    assert await install(environments, skill()) is None
    assert environments.require(skill()) is None
    assert installed(environments) == []


async def test_existing_environment_is_not_changed(environments, make_wheel, wheels):
    make_wheel()
    first = await install(environments, skill("tiny"), PackageSource(wheels=wheels))
    make_wheel(version="2.0")
    lines = []
    assert await install(environments, skill("tiny"), PackageSource(wheels=wheels, on_progress=lines.append)) == first
    assert lines == []


async def test_requirement_whose_marker_does_not_match_gives_an_empty_environment(environments, wheels):
    found = await install(environments, skill("tiny; python_version < '3'"), PackageSource(wheels=wheels))
    assert found.packages == {}
    assert environments.require(skill("tiny; python_version < '3'")) == found.path


async def test_packages_of_the_host_do_not_count_as_installed(environments, make_wheel, wheels):
    make_wheel("attrs", "999.0")
    found = await install(environments, skill("attrs"), PackageSource(wheels=wheels))
    assert found.packages == {"attrs": "999.0"}


async def test_each_line_of_uv_is_reported(environments, make_wheel, wheels):
    make_wheel()
    lines = []
    await install(environments, skill("tiny"), PackageSource(wheels=wheels, on_progress=lines.append))
    assert "+ tiny==1.0" in lines
    assert all(line == line.strip() for line in lines)


async def test_installed_files_are_read_only_for_all_users(environments, make_wheel, wheels):
    make_wheel(files={"inner/__init__.py": "", "inner/data.txt": "x"})
    before = os.umask(0o077)
    try:
        found = await install(environments, skill("tiny"), PackageSource(wheels=wheels))
    finally:
        os.umask(before)
    modes = {path.is_dir(): set() for path in found.path.rglob("*")}
    for path in [found.path, *found.path.rglob("*")]:
        modes[path.is_dir()].add(stat.S_IMODE(path.stat().st_mode))
    assert modes == {True: {0o755}, False: {0o444}}


async def test_installed_files_are_not_links_into_the_cache(environments, make_wheel, wheels):
    make_wheel()
    found = await install(environments, skill("tiny"), PackageSource(wheels=wheels))
    assert {path.stat().st_nlink for path in found.path.rglob("*.py")} == {1}


async def test_programs_and_pth_files_are_removed(environments, make_wheel, wheels):
    make_wheel(files={"tiny.pth": "import os\n", "tiny-1.0.data/scripts/tool": "#!python\n"})
    found = await install(environments, skill("tiny"), PackageSource(wheels=wheels))
    names = {path.name for path in found.path.iterdir()}
    assert not names & {"bin", "tiny.pth", ".lock"}
    assert "tiny.py" in names


async def test_modules_are_compiled_to_bytecode(environments, make_wheel, wheels):
    make_wheel(files={"odd.py": "def"})
    found = await install(environments, skill("tiny"), PackageSource(wheels=wheels))
    assert [path.name.partition(".")[0] for path in (found.path / "__pycache__").iterdir()] == ["tiny"]


async def test_installed_link_is_rejected(environments, fake_uv):
    fake_uv('mkdir "$4/inner" && ln -s /etc/passwd "$4/inner/data"')
    error = await failed(environments, None, "tiny")
    assert error.code == "environment.content"
    assert "`inner/data`" in error.message


@pytest.fixture
def unusable(make_wheel, make_source, wheels):
    """A source of packages that cannot be installed, each for another reason; and the marker file of a build."""
    make_wheel()
    make_wheel("foreign", tag="cp311-cp311-win_amd64")
    make_wheel("leading", needs=[f"tiny @ file://{wheels}/tiny-1.0-py3-none-any.whl"])
    return PackageSource(wheels=wheels), make_source()


@pytest.mark.parametrize(
    ("requirement", "code", "problem"),
    [
        ("absent", "packages", "absent was not found"),
        ("tiny>=7", "packages", "only tiny"),
        ("foreign", "packages", "no wheels with a matching"),
        ("leading", "packages", "URL dependency"),
        ("sourced", "build", "building from source is disabled"),
    ],
)
async def test_failed_requirement_is_named_and_leaves_nothing(environments, unusable, requirement, code, problem):
    source, trace = unusable
    error = await failed(environments, source, requirement)
    assert error.code == f"environment.{code}"
    assert problem in error.message
    assert error.hint
    assert not trace.exists()


async def test_build_option_builds_a_source_distribution(environments, make_source, wheels):
    trace = make_source()
    found = await install(environments, skill("sourced"), PackageSource(wheels=wheels, build=True))
    assert found.packages == {"sourced": "1.0"}
    assert trace.exists()


async def test_unreachable_index_is_named_without_its_password(environments, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    monkeypatch.setenv("UV_DEFAULT_INDEX", f"http://user:canary@127.0.0.1:{port}/")
    error = await failed(environments, None, "tiny")
    assert error.code == "environment.network"
    assert f"127.0.0.1:{port}" in error.message
    assert "canary" not in str(error.as_dict())
    assert "--wheels" in error.hint


async def test_offline_source_sends_no_request(environments, silent_index):
    error = await failed(environments, PackageSource(offline=True), "never-fetched")
    assert error.code == "environment.network"
    assert not silent_index.received_a_request()


async def test_folder_of_wheels_sends_no_request(environments, wheels, silent_index):
    error = await failed(environments, PackageSource(wheels=wheels), "tiny")
    assert error.code == "environment.packages"
    assert not silent_index.received_a_request()


async def test_missing_uv_is_reported_with_an_install_hint(environments, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "uv", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InstallerMissing) as caught:
        await install(environments, skill("tiny"))
    assert caught.value.hint == "pip install uv"
    assert installed(environments) == []


@pytest.mark.parametrize("path", [".", "", "here:."])
async def test_uv_in_the_working_directory_is_not_started(environments, fake_uv, monkeypatch, tmp_path, path):
    fake_uv(f"touch {tmp_path}/started")
    monkeypatch.chdir(tmp_path / "programs")
    monkeypatch.setenv("PATH", path)
    with pytest.raises(InstallerMissing):
        await install(environments, skill("tiny"))
    assert not (tmp_path / "started").exists()


async def test_uv_on_the_path_is_used_without_the_package(environments, fake_uv):
    fake_uv('echo done >&2; touch "$4/tiny.py"')
    found = await install(environments, skill("tiny"))
    assert (found.path / "tiny.py").exists()


async def test_settings_of_the_working_directory_are_ignored(environments, make_wheel, wheels, monkeypatch, tmp_path):
    make_wheel()
    (tmp_path / "uv.toml").write_text("not TOML: uv would reject it")
    environments.folder.mkdir(parents=True)
    (environments.folder / "uv.toml").write_text("not TOML")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UV_WORKING_DIR", str(tmp_path))
    found = await install(environments, skill("tiny"), PackageSource(wheels=Path("wheels")))
    assert found.packages == {"tiny": "1.0"}


@pytest.mark.parametrize("text", ["tiny @ https://example.test/tiny.whl", "tiny @ file:///tmp/tiny.whl"])
async def test_url_requirement_is_rejected(environments, text):
    with pytest.raises(SkillError, match="needy"):
        await install(environments, skill(text))


@pytest.mark.parametrize("text", ["-e .", "--index-url=x", "./tiny", "git+https://example.test/tiny", "", "tiny tiny"])
async def test_invalid_requirement_is_rejected_before_uv_runs(environments, text):
    with pytest.raises(SkillError, match="needy"):
        await install(environments, skill(text))
    assert installed(environments) == []


async def test_skill_for_another_version_of_python_is_rejected(environments):
    with pytest.raises(SkillError, match="<3"):
        await install(environments, skill("tiny", requires_python="<3"))


async def test_python_version_with_thousands_of_digits_is_rejected(environments):
    with pytest.raises(SkillError, match="999"):
        await install(environments, skill("tiny", requires_python=">=" + "9" * 5_000))


async def test_output_without_newlines_is_bounded(environments, fake_uv):
    fake_uv("head -c 3000000 /dev/zero | tr '\\0' '\\377' >&2; echo >&2; kill -9 $$")
    lines = []
    error = await failed(environments, PackageSource(on_progress=lines.append), "tiny")
    assert error.code == "environment.failed"
    assert len(error.message) < 5_000
    assert len(lines[0]) < 100_000


async def test_silent_uv_that_is_killed_is_reported_with_its_signal(environments, fake_uv):
    fake_uv("kill -9 $$")
    assert "signal 9" in (await failed(environments, None, "tiny")).message


async def test_processes_started_by_uv_end_with_it(environments, fake_uv, tmp_path):
    fake_uv(f"sleep 1000 2>/dev/null & echo $! > {tmp_path}/pid; exit 3")
    await failed(environments, None, "tiny")
    pid = int((tmp_path / "pid").read_text())
    with anyio.fail_after(30):
        while _runs(pid):  # noqa: ASYNC110 - no event for the end of another process
            await anyio.sleep(0.01)


def _runs(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_cancellation_ends_uv_and_leaves_nothing(environments, silent_index):
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(install, environments, skill("tiny"))
        assert await anyio.to_thread.run_sync(silent_index.wait)
        tasks.cancel_scope.cancel()
    assert installed(environments) == []
    assert await anyio.to_thread.run_sync(silent_index.client_disconnected)


async def test_folder_that_is_not_writable_is_named(environments):
    environments.folder.parent.mkdir()
    environments.folder.write_text("a file")
    with pytest.raises(EnvironmentFailed) as caught:
        await install(environments, skill("tiny"))
    assert caught.value.code == "environment.unwritable"
    assert str(environments.folder) in caught.value.message


def _install(home, wheels):
    """Install in a separate process, as another host would."""
    source = PackageSource(wheels=wheels)
    return anyio.run(install, Environments(home), skill("tiny"), source).path.name


def test_concurrent_installations_of_several_hosts_agree(tmp_path, make_wheel, wheels):
    make_wheel(files={f"data/{number}.txt": "x" for number in range(50)})
    with ProcessPoolExecutor(3, mp_context=get_context("spawn")) as processes:
        names = set(processes.map(_install, [tmp_path / "home"] * 3, [wheels] * 3))
    assert installed(Environments(tmp_path / "home")) == [names.pop()]
    assert not names


SCRIPT = """
import sys
from pathlib import Path
import anyio
from sideband.environments import Environments
from sideband.loading import SkillSpec
from sideband_skill_packages import PackageSource, install

home, wheels = sys.argv[1:]
skill = SkillSpec("needy", "needy", "x", Path(), requirements=("tiny",))
source = PackageSource(wheels=Path(wheels) if wheels else None)
try:
    anyio.run(install, Environments(Path(home)), skill, source)
except Exception as error:
    print(error.code)
    print([path.name for path in Path(home, "envs").iterdir()])
"""


async def test_leftovers_of_a_killed_host_are_removed_by_the_next_installation(
    environments, silent_index, make_wheel, wheels
):
    async with await anyio.open_process([sys.executable, "-c", SCRIPT, environments.folder.parent, ""]) as host:
        assert await anyio.to_thread.run_sync(silent_index.wait)
        host.send_signal(signal.SIGKILL)
    with anyio.fail_after(10):  # long before uv's own timeout
        assert await anyio.to_thread.run_sync(silent_index.client_disconnected, abandon_on_cancel=True)
    (leftover,) = environments.folder.iterdir()
    with pytest.raises(EnvironmentMissing):
        environments.require(skill("tiny"))
    make_wheel()
    environment = await install(environments, skill("tiny"), PackageSource(wheels=wheels))
    assert not leftover.exists()
    assert installed(environments) == [environment.path.name]


def test_full_disk_is_reported_and_leaves_nothing(tmp_path, make_wheel, wheels):
    make_wheel(files={"data.bin": os.urandom(1 << 20).hex()})
    home = tmp_path / "small"
    home.mkdir()
    command = [sys.executable, "-c", SCRIPT, str(home), str(wheels)]
    mounted = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o size=512k tmpfs "$0" && exec "$@"', str(home), *command]
    done = subprocess.run(mounted, capture_output=True, text=True, check=False)
    assert done.stdout.split("\n")[:2] == ["environment.disk", "[]"], done.stderr


def test_file_size_limit_is_reported_and_leaves_nothing(tmp_path, make_wheel, wheels):
    make_wheel(files={"data.bin": os.urandom(1 << 20).hex()})
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, tmp_path / "home", wheels],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)),
    )
    assert done.stdout.split("\n")[:2] == ["environment.failed", "[]"], done.stderr
