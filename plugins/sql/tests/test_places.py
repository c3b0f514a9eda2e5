"""The file that was checked is the file that is opened, and files beside it must have the same owner."""

import os
import struct
from pathlib import Path

import apsw
import pytest
from sideband.ops import OpDenied
from sideband_sql import SqlDenied, SqlError
from sideband_sql._paths import DatabaseTarget, pinned_folder
from sideband_sql._sqlite._system_calls import AllowedDatabase, _open, allow_only

pytestmark = pytest.mark.anyio

JOURNAL = bytes.fromhex("d9d505f920a163d7")


def make(file, value="mine"):
    file.parent.mkdir(exist_ok=True)
    connection = apsw.Connection(str(file))
    connection.execute("CREATE TABLE t (a)")
    connection.execute("INSERT INTO t VALUES (?)", (value,))
    connection.close()
    return file


@pytest.fixture
def file(tmp_path):
    return make(tmp_path / "place" / "a.db")


@pytest.fixture
def victim(tmp_path):
    (tmp_path / "victim").write_bytes(b"untouched")
    return tmp_path / "victim"


@pytest.fixture
def change(host, file):
    async def run(sql="INSERT INTO t VALUES (1)"):
        return await host.op("sql.execute", {"db": str(file), "sql": sql})

    return run


@pytest.fixture
def read(host, file):
    async def run():
        found = await host.op("sql.query", {"db": str(file), "sql": "SELECT a FROM t"})
        return [row["a"] for row in found["rows"]]

    return run


@pytest.fixture
def operations(change, read):
    return change, read


def link(kind, there, here):
    if kind == "pipe":
        os.mkfifo(here)
    else:
        getattr(os, kind)(there, here)


@pytest.mark.parametrize("kind", ["symlink", "link", "pipe"])
async def test_journal_that_is_a_link_or_pipe_is_denied(change, read, file, victim, kind):
    link(kind, victim, f"{file}-journal")
    with pytest.raises(SqlDenied, match=r"a\.db-journal"):
        await change()
    assert victim.read_bytes() == b"untouched"


@pytest.mark.parametrize("companion", ["-wal", "-shm"])
@pytest.mark.parametrize("kind", ["symlink", "link", "pipe"])
async def test_log_that_is_a_link_or_pipe_is_denied(operations, file, victim, kind, companion):
    connection = apsw.Connection(str(file))
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    link(kind, victim, f"{file}{companion}")
    for operation in operations:
        with pytest.raises(SqlDenied, match=rf"a\.db{companion}"):
            await operation()
    assert victim.read_bytes() == b"untouched"


@pytest.mark.parametrize("op", ["sql.query", "sql.execute"])
async def test_database_with_two_hard_links_is_denied(host, file, op):
    os.link(file, file.with_name("b.db"))
    for name in ("a.db", "b.db"):
        with pytest.raises(SqlDenied, match="hard link") as caught:
            await host.op(op, {"db": str(file.with_name(name)), "sql": "SELECT a FROM t"})
        assert caught.value.hint


def hot_journal(names):
    """Return a journal that looks as if a killed process left it, and that names a super-journal."""
    header = JOURNAL + struct.pack(">IIIII", 0, 1, 2, 512, 4096)
    checksum = sum(names)
    page = struct.pack(">I", 0x40000000 // 4096 + 1)
    return header.ljust(512, b"\0") + page + names + struct.pack(">II", len(names), checksum) + JOURNAL


@pytest.mark.parametrize("op", ["sql.query", "sql.execute"])
async def test_forged_journal_cannot_delete_the_file_that_it_names(host, file, victim, op):
    file.with_name("a.db-journal").write_bytes(hot_journal(os.fsencode(victim)))
    params = {"db": str(file), "sql": "SELECT a FROM t"}
    try:
        await host.op(op, params)
    except SqlError as error:
        assert error.hint  # noqa: PT017  success and a typed error are both fine, as long as the file remains
    assert victim.read_bytes() == b"untouched"


@pytest.mark.parametrize("place", ["/dev/fd/{}", "/proc/self/fd/{}", "/dev/stdin", "/proc/self/mem"])
async def test_descriptors_of_the_host_are_denied(host, file, place):
    with file.open("rb") as opened:
        params = {"db": place.format(opened.fileno()), "sql": "SELECT a FROM t"}
        with pytest.raises((SqlError, OpDenied)):
            await host.op("sql.query", params, grants=["sql:path=/dev/*", "sql:path=/proc/*"])


@pytest.mark.parametrize(
    "name", ["{}?mode=rwc", "file:{}", "{}%00.txt", "{}/", "{}/.", "//{}", "{}-wal", "{}-JOURNAL", "~/../{}"]
)
async def test_alternative_spellings_of_a_path_are_rejected(host, file, name):
    listed = sorted(file.parent.iterdir())
    params = {"db": name.format(file), "sql": "SELECT a FROM t"}
    grants = [f"sql:path={file.parent}/b.db", f"sql:path={file}-*"]
    for op in ("sql.query", "sql.execute"):
        with pytest.raises((SqlError, ValueError, PermissionError)):
            await host.op(op, params, grants=grants)
    assert sorted(file.parent.iterdir()) == listed


async def test_grant_check_is_case_sensitive(host, file):
    params = {"db": str(file), "sql": "SELECT a FROM t"}
    with pytest.raises(PermissionError):
        await host.op("sql.query", params, grants=[f"sql:path={str(file).upper()}"])


class TestRaces:
    """Attacks between the check and the opening."""

    @pytest.fixture
    def target(self, file):
        return DatabaseTarget(str(file), file, managed=False)

    @pytest.fixture
    def value(self, file):
        def read(folder, owner):
            with allow_only([AllowedDatabase(str(file), folder, owner)]):
                connection = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
                try:
                    return connection.execute("SELECT a FROM t").fetchall()
                finally:
                    connection.close()

        return read

    def test_replacement_of_the_folder_has_no_effect(self, target, value, tmp_path):
        make(tmp_path / "other" / "a.db", "secret")
        with pinned_folder(target) as (folder, owner):
            (tmp_path / "place").rename(tmp_path / "moved")
            (tmp_path / "other").rename(tmp_path / "place")
            assert value(folder, owner) == [("mine",)]

    def test_descriptor_of_another_file_is_not_reused(self, target, value, tmp_path):
        secret = str(make(tmp_path / "other" / "a.db", "secret"))
        holder, closed = apsw.Connection(secret), apsw.Connection(secret, flags=apsw.SQLITE_OPEN_READONLY)
        # SQLite keeps the descriptor of a closed connection for reuse while another connection holds a lock
        holder.execute("BEGIN IMMEDIATE")
        closed.execute("SELECT a FROM t").fetchall()
        closed.close()
        try:
            with pinned_folder(target) as (folder, owner):
                (tmp_path / "place").rename(tmp_path / "moved")
                (tmp_path / "other").rename(tmp_path / "place")
                assert value(folder, owner) == [("mine",)]
        finally:
            holder.close()

    def test_folder_replaced_by_a_link_is_denied(self, target, tmp_path):
        make(tmp_path / "other" / "a.db", "secret")
        (tmp_path / "place").rename(tmp_path / "moved")
        (tmp_path / "place").symlink_to(tmp_path / "other")
        with pytest.raises(SqlDenied, match="replaced"), pinned_folder(target):
            pass

    def test_file_replaced_by_a_link_is_rejected(self, target, value, file, tmp_path):
        make(tmp_path / "other" / "a.db", "secret")
        with pinned_folder(target) as (folder, owner):
            file.unlink()
            file.symlink_to(tmp_path / "other" / "a.db")
            with pytest.raises(apsw.CantOpenError):
                value(folder, owner)

    def test_file_of_another_owner_is_rejected(self, target, file, monkeypatch):
        stranger = file.stat().st_uid + 1
        monkeypatch.setattr(os, "geteuid", lambda: stranger)
        with (
            pinned_folder(target) as (folder, _),
            allow_only([AllowedDatabase(str(file), folder, stranger)]) as refused,
        ):
            with pytest.raises(apsw.CantOpenError):
                apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
            assert refused() == str(file)

    def test_open_never_follows_a_link(self, target, file, victim):
        Path(f"{file}-wal").symlink_to(victim)
        with (
            pinned_folder(target) as (folder, owner),
            allow_only([AllowedDatabase(str(file), folder, owner)]),
            pytest.raises(OSError, match="symbolic"),
        ):
            _open(f"{file}-wal", os.O_RDONLY, 0)

    def test_other_files_are_neither_opened_nor_removed(self, target, file, victim):
        with (
            pinned_folder(target) as (folder, owner),
            allow_only([AllowedDatabase(str(file), folder, owner)]) as refused,
        ):
            with pytest.raises(apsw.CantOpenError):
                apsw.Connection(str(victim), flags=apsw.SQLITE_OPEN_READONLY)
            assert refused() == str(victim)
            with pytest.raises(apsw.IOError):
                apsw.VFS("unlinking", "unix").xDelete(str(victim), False)
            with pytest.raises(apsw.IOError):
                apsw.VFS("unlinking", "unix").xDelete(str(file), False)
        assert victim.exists()
        assert file.exists()
