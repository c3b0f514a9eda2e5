import hashlib
import tomllib

import pytest
from sideband_dist import DistInvalid, DistLock
from sideband_dist._checking import environment_differences
from sideband_dist._files import lock_text, write_text
from sideband_dist._installed import installed_packages, package_folders
from sideband_dist._locking import lock_for
from sideband_dist._syncing import _replace


def sha(text):
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def environment(tmp_path):
    """An environment with two packages, one of which has wheels for several platforms."""
    site = tmp_path / "env" / "lib" / "python3.11" / "site-packages"
    site.mkdir(parents=True)
    for name, requires in (("acme_geo", "Acme.Watch>=1; extra == 'all'"), ("acme_watch", "absent")):
        (site / f"{name}.py").write_text(name)
        info = site / f"{name}-1.0.dist-info"
        info.mkdir()
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\nRequires-Dist: {requires}\n"
        (info / "METADATA").write_text(metadata)
        (info / "INSTALLER").write_text("uv")
        paths = [f"{name}.py", f"__pycache__/{name}.pyc", *(f"{info.name}/{one}" for one in ("METADATA", "INSTALLER"))]
        (info / "RECORD").write_text("".join(f"{path},,\n" for path in (*paths, f"../../../bin/{name}")))
    return tmp_path / "env"


@pytest.fixture
def lock(environment):
    packages = []
    for name, wheel in (("acme_geo", "py3-none-any"), ("acme_watch", "cp311-cp311-macosx_11_0_arm64")):
        info = next(environment.glob(f"lib/*/site-packages/{name}-1.0.dist-info"))
        files = {f"{info.name}/METADATA": sha((info / "METADATA").read_text()), f"{name}.py": sha(name)}
        if name == "acme_watch":
            files[f"{name}.py"] = sha("that of another platform")
        text = "".join(f"{digest}  {path}\n" for path, digest in sorted(files.items()))
        wheels = f"{'0' * 64}  {name}-1.0-{wheel}.whl\n"
        packages.append({"name": name.replace("_", "-"), "version": "1.0", "wheels": wheels, "files": text})
    return DistLock.model_validate({"manifest": "0" * 64, "plugins": [], "packages": packages})


def test_files_that_differ_between_environments_are_not_locked(environment):
    found = installed_packages(package_folders(environment))
    assert found["acme-geo"].paths == ("acme_geo-1.0.dist-info/METADATA", "acme_geo.py")
    assert found["acme-geo"].requires == ("acme-watch",)


def test_files_of_another_platform_are_replaced_and_those_of_all_platforms_are_not(environment, lock):
    placed = lock_for(lock, environment)
    assert placed.packages[0] == lock.packages[0]
    assert sha("acme_watch") in placed.packages[1].files
    write_text(environment / "sideband.lock", lock_text(placed))
    assert list(environment_differences(placed, environment)) == []
    differences = list(environment_differences(lock, environment))
    assert [one.partition(" has changed")[0] for one in differences] == ["acme-watch 1.0: acme_watch.py"]


def test_lock_that_is_missing_or_another_one_is_a_difference(environment, lock):
    placed = lock_for(lock, environment)
    (found,) = environment_differences(placed, environment)
    assert found.endswith("sideband.lock is missing, so hosts are not restricted")
    other = placed.model_copy(update={"manifest": "1" * 64})
    write_text(environment / "sideband.lock", lock_text(other))
    (found,) = environment_differences(placed, environment)
    assert "is another lock" in found


def test_new_package_is_a_difference_unless_it_is_part_of_every_new_environment(environment, lock):
    site = next(environment.glob("lib/*/site-packages"))
    for name in ("pip", "six"):
        (site / f"{name}-1.0.dist-info").mkdir()
        (site / f"{name}-1.0.dist-info" / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    placed = lock_for(lock, environment)
    assert list(environment_differences(placed, environment, placed=False)) == [
        "six 1.0 is installed, but not in the lock"
    ]
    (site / "pip-1.0.dist-info" / "entry_points.txt").write_text("[sideband.v1.op]\nevil = pip\n")
    assert "pip 1.0 is installed, but not in the lock" in environment_differences(placed, environment, placed=False)


def test_folder_that_is_not_an_environment_is_refused(tmp_path, lock):
    with pytest.raises(DistInvalid, match="is not a Python environment"):
        list(environment_differences(lock, tmp_path))


def test_replaced_folder_is_in_the_place_of_the_new_one(tmp_path):
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    _replace(tmp_path / "old", tmp_path / "new")
    assert [one.name for one in (tmp_path / "old").iterdir()] == ["new"]
    assert [one.name for one in (tmp_path / "new").iterdir()] == ["old"]


def test_lock_survives_writing_and_reading(lock):
    assert DistLock.model_validate(tomllib.loads(lock_text(lock))) == lock
