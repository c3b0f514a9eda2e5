"""The file of a cassette: the same bytes for the same effects, atomic writes, and no trust in what it contains."""

import errno
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel
from sideband.errors import StateUnwritable
from sideband.ops import Level, OpContext, OpFailed, op
from sideband_cassettes import Cassette, CassetteFile, CassetteInvalid, read_cassette

pytestmark = pytest.mark.anyio


class Anything(BaseModel):
    value: object = None


@op("any.thing", level=Level.SAFE)
async def anything(params: Anything, ctx: OpContext) -> dict:
    """Return the value."""
    return {"value": params.value}


@pytest.fixture
def plugin(family):
    return family("any", anything)


async def record(hosting, plugin, *values, **options):
    async with hosting("record", plugin, **options) as host:
        for value in values:
            await host.op("any.thing", {"value": value})


@pytest.fixture
async def recorded(hosting, plugin, file):
    await record(hosting, plugin, "a\nb", {"z": 1.5, "a": [True, None]}, b"\x00raw")
    return file.read_bytes()


async def test_recording_twice_gives_the_same_bytes(hosting, plugin, file, recorded):
    await record(hosting, plugin, "a\nb", {"z": 1.5, "a": [True, None]}, b"\x00raw")
    assert file.read_bytes() == recorded


async def test_texts_are_lines_and_parameters_are_sorted(recorded):
    text = recorded.decode()
    assert '"__lines__": [\n            "a",\n            "b"\n' in text
    assert text.index('"a": [') < text.index('"z": 1.5')
    assert json.loads(text)["effects"][0]["digest"]


async def test_file_matches_the_published_schema(recorded):
    schema = CassetteFile.model_json_schema()
    Draft202012Validator.check_schema(schema)
    assert [*Draft202012Validator(schema).iter_errors(json.loads(recorded))] == []


async def test_folders_of_the_machine_have_names(hosting, plugin, file, tmp_path, monkeypatch):
    values = []
    for name in ("here", "there"):
        project = tmp_path / name
        project.mkdir()
        monkeypatch.chdir(project)
        value = (
            f"{project}/notes.txt and {Path.home()}/x and {tmp_path}/odd, not {tmp_path}/odds; ${{sideband.project}}"
        )
        mode = "record" if name == "here" else "replay"
        async with hosting(mode, plugin, home=project / "home", places={"odd": tmp_path / "odd"}) as host:
            values.append((value, (await host.op("any.thing", {"value": value}))["value"]))
    text = file.read_text()
    assert "${sideband.project}/notes.txt and ${sideband.user}/x and ${sideband.odd}, not" in text
    assert str(tmp_path / "here") not in text
    assert [given for given, _ in values] == [answered for _, answered in values]


@pytest.fixture
async def content(recorded):
    return recorded


def check(path, content):
    """Return the meaning of a file, or ``None`` if it is refused with an error that names it."""
    path.write_bytes(content)
    try:
        return read_cassette(path)
    except CassetteInvalid as error:
        found = error
    assert str(path) in found.message
    assert "sideband record" in found.hint
    assert 0 <= found.line <= content.count(b"\n") + 1
    return None


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
async def test_changed_file_is_refused_or_means_the_same(recorded, tmp_path, data):
    path = tmp_path / "changed.json"
    original = check(path, recorded)
    start = data.draw(st.integers(0, len(recorded)))
    end = data.draw(st.integers(start, min(len(recorded), start + 40)))
    inserted = data.draw(
        st.binary(max_size=4) | st.sampled_from([b" ", b"\n", b"0", b"1e999", b"NaN", b'"op":1,', b"[]"])
    )
    found = check(path, recorded[:start] + inserted + recorded[end:])
    assert found is None or found == original


@pytest.mark.parametrize(
    ("change", "problem", "line"),
    [
        (lambda text: text[:200], "not JSON", None),
        (lambda text: text.replace('"version": 1', '"version": 2'), "`version`", -2),
        (lambda text: text.replace('"op": "any.thing"', '"op": "any.thing", "op": "x.y"', 1), "`op` occurs twice", 5),
        (lambda text: text.replace("1.5", "NaN", 1), "`NaN` is not JSON", None),
        (lambda text: text.replace("1.5", "1e999", 1), "`1e999` is too large", None),
        (lambda text: text.replace('"a"', '"b"', 1), "`digest` is not that of its parameters", 4),
        (lambda text: text.replace('"ordinal": 1', '"ordinal": 3', 1), "`ordinal` must be 1", 6),
        (lambda text: text.replace('"ordinal": 1', '"ordinal": 0', 1), "`effects.0.ordinal`", 6),
        (lambda text: text.replace('"op": "any.thing"', '"op": "../x"', 1), "`effects.0.op`", 5),
        (lambda text: text.replace('"result"', '"why": 1, "result"', 1), "`effects.0.why`", None),
        (lambda text: "false".join(text.rsplit("true", 1)), "checksum", None),
    ],
)
async def test_problem_is_named_with_its_line(recorded, tmp_path, change, problem, line):
    path = tmp_path / "changed.json"
    text = change(recorded.decode())
    path.write_text(text)
    with pytest.raises(CassetteInvalid) as caught:
        read_cassette(path)
    assert problem in caught.value.message
    if line is not None:
        assert caught.value.line == (line if line > 0 else text.count("\n") + 1 + line)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"null",
        b"\xff",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"version": 1, "checksum": "' + b"0" * 64 + b'", "effects": [' + b"{}," * 200_000 + b"{}]}",
        b"1" * 5_000,
    ],
)
async def test_hostile_content_is_refused(tmp_path, content):
    assert check(tmp_path / "hostile.json", content) is None


@pytest.mark.parametrize(
    "content", [r'{"\u001b[2J": 1, "\u001b[2J": 2}', r'{"version": 1, "checksum": "", "effects": [], "\u001b[2J": 1}']
)
async def test_message_about_a_hostile_file_moves_no_cursor(tmp_path, content):
    path = tmp_path / "hostile.json"
    path.write_text(content)
    with pytest.raises(CassetteInvalid) as caught:
        read_cassette(path)
    assert caught.value.message.isprintable()


async def test_huge_file_is_refused_without_being_read(tmp_path):
    path = tmp_path / "huge.json"
    with path.open("wb") as file:
        file.truncate(10 << 30)
    with pytest.raises(CassetteInvalid, match="larger than 64 MiB"):
        read_cassette(path)


async def test_absent_file_is_reported_with_the_command_that_records_it(hosting, plugin, file):
    with pytest.raises(CassetteInvalid, match="does not exist") as caught:
        async with hosting("replay", plugin):
            pass
    assert f"sideband record {file}" in caught.value.hint


async def test_full_disk_leaves_the_old_file(hosting, plugin, file, recorded, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(StateUnwritable, match="No space left"):  # noqa: PT012  as below
        async with hosting("record", plugin) as host:
            await host.op("any.thing", {"value": 1})
            patch.setattr("sideband.state._writing.PartialFile.commit", full)
    assert file.read_bytes() == recorded
    assert [one.name for one in file.parent.iterdir()] == [file.name]


async def test_recording_that_is_broken_off_leaves_the_old_file(hosting, plugin, file, recorded):
    with pytest.raises(ZeroDivisionError):  # noqa: PT012  opening and closing
        async with hosting("record", plugin) as host:
            await host.op("any.thing", {"value": 1})
            _ = 1 / 0
    assert file.read_bytes() == recorded


async def test_call_that_fails_is_recorded(hosting, plugin, file, family):
    @op("sad.cry", level=Level.SAFE)
    async def cry(params: Anything, ctx: OpContext) -> str:
        """Fail."""
        raise OpFailed("sad", hint="smile")

    with pytest.raises(OpFailed):
        async with hosting("record", family("sad", cry)) as host:
            await host.op("sad.cry", {})
    assert read_cassette(file).effects[0].error["message"] == "sad"


@example({"__lines__": ["a"]})
@example({"__same__": 1, "__then__": []})
@example({"__plain__": {"__bytes__": 1}})
@example("${sideband.text}${sideband.")
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
        max_leaves=8,
    )
)
def test_any_data_survives_the_file(value):
    from sideband_cassettes._text import ValuePlaces, decoded, encoded

    places = ValuePlaces({"project": "/p/q", "user": "/p"})
    there = json.loads(json.dumps(encoded(places.hide(value))))
    assert places.show(decoded(there)) == value


async def test_repeated_parameters_are_written_once(hosting, plugin, file):
    steps = [[f"message {number}", True, 1][:3] for number in range(40)]
    values = [steps[:30], steps[:30], steps[:35], [*steps[:35], "new"], [1] * 99, [True] * 99, "long" * 99, "long" * 99]
    await record(hosting, plugin, *values)
    assert file.read_text().count("message 20") == 1 + 4  # parameters and results
    assert [one["params"]["value"] for one in json.loads(file.read_text())["effects"][1:4]] == [
        {"__same__": 1},
        {"__same__": 2, "__then__": steps[30:35]},
        {"__same__": 3, "__then__": ["new"]},
    ]
    assert [one.params["value"] for one in read_cassette(file).effects] == values
    async with hosting("replay", plugin) as host:
        for value in values:
            assert (await host.op("any.thing", {"value": value}))["value"] == value


@pytest.mark.parametrize(
    "value",
    [{"__same__": 1}, {"__same__": 0}, {"__same__": "1"}, {"__same__": 1, "x": 1}, {"__same__": 1, "__then__": 1}],
)
async def test_reference_to_no_effect_is_refused(recorded, tmp_path, value):
    document = json.loads(recorded)
    document["effects"][0]["params"]["value"] = value
    assert check(tmp_path / "changed.json", json.dumps(document).encode()) is None


async def test_references_that_grow_are_refused_before_they_fill_the_memory(tmp_path):
    effects = [{"op": "a.b", "ordinal": 1, "digest": "0" * 64, "params": {"x": ["y" * 1_000_000]}, "result": 1}]
    effects += [{**effects[0], "params": {"x": {"__same__": at, "__then__": []}}} for at in range(1, 2_000)]
    content = json.dumps({"checksum": "0" * 64, "effects": effects, "version": 1})
    assert check(tmp_path / "hostile.json", content.encode()) is None


@pytest.mark.parametrize(
    ("arguments", "error", "problem"),
    [
        ({"path": "x.json"}, TypeError, "write `Path"),
        ({"path": Path("x"), "mode": "play"}, ValueError, "expected record, replay, missing"),
        ({"path": Path("x"), "places": {"a b": Path("/")}}, ValueError, "`places`"),
        ({"path": Path("x"), "places": {"session": Path("/")}}, ValueError, "`places`"),
    ],
)
def test_wrong_argument_is_named(arguments, error, problem):
    with pytest.raises(error, match=problem):
        Cassette(**arguments)
