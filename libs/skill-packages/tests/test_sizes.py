"""A small wheel that unpacks to a large size is stopped while it is unpacked, and leaves nothing."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from sideband.loading import SkillSpec
from sideband_skill_packages import EnvironmentFailed, PackageSource, install
from sideband_skill_packages._limits import PackageLimits

pytestmark = pytest.mark.anyio

MEBIBYTE = 1024 * 1024


@pytest.fixture
def make_large(wheels):
    """Build a wheel with files of zeros, which are compressed to a thousandth of their size."""

    def make(*sizes, name="large", needs=()):
        information = f"{name}-1.0.dist-info"
        lines = "".join(f"Requires-Dist: {need}\n" for need in needs)
        texts = {
            f"{name}/__init__.py": "",
            f"{information}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{lines}",
            f"{information}/WHEEL": "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        files = {f"{name}/data-{number}.bin": size for number, size in enumerate(sizes)}
        texts[f"{information}/RECORD"] = "".join(f"{path},,\n" for path in [*texts, *files, f"{information}/RECORD"])
        path = wheels / f"{name}-1.0-py3-none-any.whl"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
            for inner, text in texts.items():
                archive.writestr(inner, text)
            for inner, size in files.items():
                with archive.open(inner, "w") as file:
                    for _ in range(size // MEBIBYTE):
                        file.write(bytes(MEBIBYTE))
        return path

    return make


def skill(*requirements):
    return SkillSpec("needy", "needy", "x", Path(__file__).parent, requirements=requirements)


def size_of(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


async def refused(environments, source, *requirements):
    with pytest.raises(EnvironmentFailed) as caught:
        await install(environments, skill(*requirements), source)
    assert caught.value.code == "environment.size"
    assert list(environments.folder.iterdir()) == []
    return caught.value


@pytest.mark.parametrize("sizes", [[600 * MEBIBYTE], [8 * MEBIBYTE] * 75], ids=["one file", "many files"])
async def test_small_wheel_of_600_megabytes_is_refused_and_leaves_nothing(
    environments, make_large, wheels, cache, sizes
):
    wheel = make_large(*sizes)
    assert wheel.stat().st_size < MEBIBYTE
    before = size_of(cache)
    error = await refused(environments, PackageSource(wheels=wheels), "large")
    assert "exceed the limit of" in error.message
    assert size_of(cache) == before


SCRIPT = """
import sys
from pathlib import Path
import anyio
from sideband.environments import Environments
from sideband.loading import SkillSpec
from sideband_skill_packages import EnvironmentFailed, PackageSource, install
home, wheels = map(Path, sys.argv[1:])
skill = SkillSpec("needy", "needy", "x", home, requirements=("large",))
try:
    anyio.run(install, Environments(home), skill, PackageSource(wheels=wheels))
except EnvironmentFailed as error:
    print(error.code)
"""


def test_package_is_stopped_before_it_is_unpacked(tmp_path, make_large, wheels):
    make_large(*[8 * MEBIBYTE] * 75)
    home = tmp_path / "small"
    home.mkdir()
    command = [sys.executable, "-c", SCRIPT, str(home), str(wheels)]
    mounted = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o size=560m tmpfs "$0" && exec "$@"', str(home), *command]
    done = subprocess.run(mounted, capture_output=True, text=True, check=False)
    assert done.stdout == "environment.size\n", done.stderr  # a full disk is `environment.disk`


async def test_package_that_is_unpacked_at_once_is_checked_afterwards(environments, make_large, wheels, monkeypatch):
    make_large(2 * MEBIBYTE)
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_FIND_LINKS", str(wheels))
    await refused(environments, PackageSource(max_bytes=MEBIBYTE), "large")


async def test_large_dependency_is_refused(environments, make_large, wheels):
    make_large(*[8 * MEBIBYTE] * 40, name="inner")
    make_large(name="outer", needs=["inner"])
    await refused(environments, PackageSource(wheels=wheels), "outer")


async def test_packages_that_are_large_only_together_are_refused(environments, make_large, wheels):
    names = [f"part{number}" for number in range(6)]
    for name in names:
        make_large(*[8 * MEBIBYTE] * 3, name=name)
    await refused(environments, PackageSource(wheels=wheels), *names)


async def test_limit_of_the_caller_applies_to_an_index_and_the_cache_keeps_no_partial_package(
    environments, make_large, wheels, cache, monkeypatch
):
    make_large(*[4 * MEBIBYTE] * 60)
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_FIND_LINKS", str(wheels))
    await refused(environments, PackageSource(max_bytes=8 * MEBIBYTE), "large")
    assert [path.name for path in cache.glob("**/.tmp*") if size_of(path)] == []


async def test_large_package_is_installed_if_its_wheel_is_large_too(environments, make_large, wheels):
    make_large(48 * MEBIBYTE)
    (wheels / "ballast.bin").write_bytes(bytes(MEBIBYTE))
    found = await install(environments, skill("large"), PackageSource(wheels=wheels))
    assert (found.path / "large/data-0.bin").stat().st_size == 48 * MEBIBYTE


async def test_package_up_to_the_minimum_is_installed_whatever_its_ratio(environments, make_large, wheels):
    make_large(30 * MEBIBYTE)
    found = await install(environments, skill("large"), PackageSource(wheels=wheels))
    assert found.packages == {"large": "1.0"}


@pytest.mark.parametrize(("size", "files"), [(10, 100), (1_000, 3)], ids=["size", "files"])
def test_installed_folder_is_checked_too(tmp_path, size, files):
    (tmp_path / "inner").mkdir()
    for number in range(4):
        (tmp_path / "inner" / f"{number}.py").write_text("pass")
    with pytest.raises(EnvironmentFailed, match="exceed the limit"):
        PackageLimits(size, files).check(tmp_path, "needy")
    PackageLimits(1_000, 100).check(tmp_path, "needy")
