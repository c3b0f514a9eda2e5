"""Fixtures: a confined folder, and a folder outside it that no path may reach."""

import contextlib
import os

import pytest
from sideband_confined_files import ConfinedFolder, FolderLocks


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


@pytest.fixture
def outside(tmp_path):
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret").write_text("not yours")
    return folder


@pytest.fixture
def locks(tmp_path, monkeypatch):
    """The locks of a host whose user has a home directory of their own."""
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    return FolderLocks(tmp_path / "home")


@pytest.fixture
def folder(root, locks):
    return ConfinedFolder(root, locks=locks)


@pytest.fixture
def names():
    """Return the sorted names in a folder."""

    def names_of(path):
        return sorted(one.name for one in path.iterdir())

    return names_of


@pytest.fixture
def save():
    """Write and commit a whole file."""

    async def write(folder, path, data, **options):
        async with folder.writing(path, overwrite=options.get("overwrite", "expected" in options)) as file:
            await file.write(data)
            await file.commit(**options)
        return file

    return write


@pytest.fixture
def as_nobody():
    """Drop root's privileges for a block. Yields whether the process was root."""

    @contextlib.contextmanager
    def dropped():
        before = os.geteuid()
        if before == 0:
            os.seteuid(65534)
        try:
            yield before == 0
        finally:
            os.seteuid(before)

    return dropped
