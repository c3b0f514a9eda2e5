"""Locked packages: exactly what was resolved is installed, all or nothing."""

import subprocess
import sys
import zipfile

import anyio
import pytest
from sideband_skill_packages import EnvironmentFailed, PackageSource, install_locked, resolve

OWNER = "the test"
SCRIPT = """
import sys
from pathlib import Path
import anyio
from sideband_skill_packages import EnvironmentFailed, PackageSource, install_locked
home, wheels, lock = map(Path, sys.argv[1:])
try:
    anyio.run(install_locked, home / "target", lock.read_text(), "the test", PackageSource(wheels=wheels))
except EnvironmentFailed as error:
    print(error.code)
print(sorted(one.name for one in home.iterdir()))
"""


@pytest.fixture
def make_wheel(wheels):
    """Build a wheel of one module."""

    def make(name, version="1.0", needs=(), content="", size=0):
        info = f"{name}-{version}.dist-info"
        lines = "".join(f"Requires-Dist: {need}\n" for need in needs)
        files = {
            f"{name}.py": content,
            f"{name}.bin": "x" * size,
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{lines}",
            f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])
        with zipfile.ZipFile(wheels / f"{name}-{version}-py3-none-any.whl", "w") as archive:
            for path, text in files.items():
                archive.writestr(path, text)

    return make


@pytest.mark.anyio
async def test_exactly_what_was_locked_is_installed(tmp_path, wheels, make_wheel):
    make_wheel("first", needs=["second>=1"])
    make_wheel("second")
    source = PackageSource(wheels=wheels)
    lock = await resolve(tmp_path, ["first"], OWNER, source)
    assert lock.count("--hash=sha256:") == 2
    make_wheel("second", "2.0")
    await install_locked(tmp_path / "target", lock, OWNER, source)
    assert {one.name for one in (tmp_path / "target").glob("*.dist-info")} == {
        "first-1.0.dist-info",
        "second-1.0.dist-info",
    }
    assert {one.stat().st_mode & 0o222 for one in (tmp_path / "target").rglob("*") if one.is_file()} == {0}


@pytest.mark.anyio
async def test_changed_wheel_is_refused_and_leaves_nothing(tmp_path, wheels, make_wheel):
    make_wheel("first")
    lock = await resolve(tmp_path, ["first"], OWNER, PackageSource(wheels=wheels))
    make_wheel("first", content="evil = 1")
    with pytest.raises(EnvironmentFailed, match=r"of the test: .*ash mismatch"):
        await install_locked(tmp_path / "target", lock, OWNER, PackageSource(wheels=wheels))
    assert [one for one in tmp_path.iterdir() if one != wheels] == []


@pytest.mark.anyio
async def test_lock_without_a_hash_is_refused(tmp_path, wheels, make_wheel):
    make_wheel("first")
    with pytest.raises(EnvironmentFailed, match="--require-hashes"):
        await install_locked(tmp_path / "target", "first==1.0\n", OWNER, PackageSource(wheels=wheels))


@pytest.mark.anyio
async def test_package_without_a_wheel_is_not_built(tmp_path, wheels):
    (wheels / "first-1.0.tar.gz").write_bytes(b"")
    with pytest.raises(EnvironmentFailed, match="of the test"):
        await resolve(tmp_path, ["first"], OWNER, PackageSource(wheels=wheels))


def test_full_disk_is_reported_and_leaves_nothing(tmp_path, wheels, make_wheel):
    make_wheel("first", size=4 << 20)
    lock = tmp_path / "lock"
    lock.write_text(anyio.run(resolve, tmp_path / "other", ["first"], OWNER, PackageSource(wheels=wheels)))
    home = tmp_path / "small"
    home.mkdir()
    command = [sys.executable, "-c", SCRIPT, str(home), str(wheels), str(lock)]
    mounted = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o size=512k tmpfs "$0" && exec "$@"', str(home), *command]
    done = subprocess.run(mounted, capture_output=True, text=True, check=False)
    assert done.stdout.split("\n")[:2] == ["environment.disk", "[]"], done.stderr
