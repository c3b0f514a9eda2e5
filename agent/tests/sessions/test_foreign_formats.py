"""Formats of other programs: found by metadata, with a hint if they are not installed."""

import json
import sys

import pytest
from sideband_agent.sessions import SessionFormatMissing, SessionUnreadable

pytestmark = pytest.mark.anyio

PI = '{"type":"session","version":3,"id":"x","timestamp":"t","cwd":"/"}\n'
NOTES = """
from sideband.messages import UserMessage
from sideband_agent.sessions import MessageEntry, SessionHeader, SessionUnreadable, record_of


class Notes:
    def is_header(self, line):
        return "notes" in line

    def read_header(self, line, session):
        if line["notes"] > 1:
            raise SessionUnreadable("notes of a later kind", hint="write them again")
        return SessionHeader(id=session)

    def read_line(self, header, line, number):
        parent = f"n{number - 1}" if number > 1 else None
        entry = MessageEntry(id=f"n{number}", parent=parent, message=UserMessage(content=line["text"]))
        return record_of(entry), "it is faint" if line.get("faint") else ""

    def write(self, tree):
        yield {"notes": 1}
        for entry in tree.entries:
            yield {"text": entry.message.text}


FORMAT = Notes()
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install a package that provides a format."""

    def install(name="notes", code=NOTES):
        folder = tmp_path / "site"
        about = folder / f"a_{name}-1.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: a-{name}\nVersion: 1\n")
        (about / "entry_points.txt").write_text(f"[sideband_agent.session_formats]\n{name} = a_{name}:FORMAT\n")
        (folder / f"a_{name}.py").write_text(code)
        monkeypatch.syspath_prepend(folder)
        monkeypatch.delitem(sys.modules, f"a_{name}", raising=False)

    return install


@pytest.fixture
def nothing_installed(monkeypatch):
    monkeypatch.setattr("sideband_agent.sessions._foreign_formats.entry_points", lambda group: ())


async def test_installed_format_is_imported_and_exported(sessions, install):
    install()
    lines = [{"notes": 1}, {"text": "one"}, {"text": "two", "faint": True}]
    info, notices = await sessions.import_([json.dumps(line) + "\n" for line in lines])
    assert [message.text for message in (await sessions.read(info.id)).context().messages] == ["one", "two"]
    assert notices == ("line 3 is stored but hidden from models: it is faint",)
    again = [json.loads(line) for line in await sessions.export(info.id, format="notes")]
    assert again == [{"notes": 1}, {"text": "one"}, {"text": "two"}]


async def test_file_rejected_by_its_format_is_unreadable(sessions, install):
    install()
    with pytest.raises(SessionUnreadable, match="of a later kind"):
        await sessions.import_(['{"notes": 2}\n'])


async def test_format_that_fails_to_import_is_reported(sessions, install):
    install(code="import nothing_of_that_name")
    async with await sessions.create() as session:
        pass
    with pytest.raises(SessionFormatMissing, match="nothing_of_that_name"):
        await sessions.export(session.id, format="notes")


async def test_missing_format_names_its_package(sessions, nothing_installed):
    async with await sessions.create() as session:
        pass
    with pytest.raises(SessionFormatMissing) as exported:
        await sessions.export(session.id, format="pi")
    with pytest.raises(SessionFormatMissing) as imported:
        await sessions.import_([PI])
    for error in (exported.value, imported.value):
        assert error.code == "session.format"
        assert "pip install sideband-pi-sessions" in error.hint


async def test_unknown_format_lists_the_installed_ones(sessions, install):
    install()
    async with await sessions.create() as session:
        pass
    with pytest.raises(SessionFormatMissing, match="`word`") as caught:
        await sessions.export(session.id, format="word")
    assert "`sideband`" in caught.value.hint
    assert "`notes`" in caught.value.hint
