import json
import tomllib
from pathlib import Path

import jsonschema
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sideband.plugins import Lock
from sideband_dist import DistError, DistInvalid, DistLock, schema
from sideband_dist._files import lock_text, read_dist_lock, read_manifest, write_text

ROOT = Path(__file__).parents[3]
SCHEMA = ROOT / "docs" / "schemas" / "sideband.json"
EXAMPLES = sorted((ROOT / "docs" / "distributions").glob("*/sideband.toml"))


def test_published_schema_is_that_of_the_models():
    assert json.loads(SCHEMA.read_text()) == schema()


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.parent.name)
def test_examples_are_valid_by_the_published_schema_and_read(file):
    jsonschema.validate(tomllib.loads(file.read_text()), json.loads(SCHEMA.read_text()))
    assert read_manifest(file).dist.packages


def test_lock_is_valid_by_the_published_schema(lock):
    jsonschema.validate(tomllib.loads(lock_text(lock)), json.loads(SCHEMA.read_text()))


@pytest.mark.parametrize(
    "content",
    [
        {"policy": {"memory": "1G"}, "dist": {"packages": {"acme": "~=1.0", "ours": {"path": "x"}}}},
        {"policy": {"memory": 1 << 30}},
    ],
)
def test_schema_accepts_what_the_settings_accept(content):
    jsonschema.validate(content, schema())


@pytest.mark.parametrize("content", [{"polcy": {}}, {"dist": {"index": []}}, {"version": 1, "plugins": []}])
def test_schema_rejects_unknown_keys_and_incomplete_locks(content):
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(content, schema())


def test_lock_is_read_as_it_was_written_by_this_package_and_by_the_core(lock, tmp_path):
    file = tmp_path / "sideband.lock"
    write_text(file, lock_text(lock))
    assert read_dist_lock(file) == lock
    read = Lock(str(file), tomllib.loads(file.read_text()))
    assert read.plugin("op", "geo").package == "acme-geo"
    assert read.package("acme-geo").files == {"geo/plugin.py": "1" * 64}
    assert lock_text(read_dist_lock(file)) == lock_text(lock)


# The names of files are those that the author of a package chose.
PATHS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\n"), min_size=1)


@example(dict.fromkeys(["a'''", "''' # b", "c\r", "d\\"], "1" * 64))
@given(st.dictionaries(PATHS, st.integers(0, 2**256 - 1).map("{:064x}".format)))
def test_paths_and_hashes_survive_in_a_lock(files):
    text = "".join(f"{digest}  {path}\n" for path, digest in files.items())
    package = {"name": "acme", "version": "1", "wheels": "", "files": text}
    lock = DistLock.model_validate({"manifest": "0" * 64, "plugins": [], "packages": [package]})
    read = Lock("sideband.lock", tomllib.loads(lock_text(lock)))
    assert read.package("acme").files == files


def test_file_that_cannot_be_written_completely_is_unchanged(tmp_path, monkeypatch):
    file = tmp_path / "sideband.lock"
    file.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        write_text(file, "new" + chr(0xD800))
    assert file.read_text() == "old"
    with pytest.raises(DistError, match="cannot write") as caught:
        write_text(tmp_path / "missing" / "sideband.lock", "new")
    assert caught.value.exit_code == 5


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "`dist.packages` is missing or empty"),
        ("= 1", "it is not TOML"),
        ("[dist]\npackages = 5", "`dist.packages`: expected an object"),
        ("[dist.packages]\nacme = 'x y'", "expected a version such as"),
    ],
)
def test_file_that_describes_no_distribution_is_refused(tmp_path, text, problem):
    file = tmp_path / "sideband.toml"
    file.write_text(text)
    with pytest.raises(DistInvalid, match=problem):
        read_manifest(file)


@pytest.mark.parametrize(
    ("table", "problem"),
    [('[policy.files]\n"hook.x" = "x.py"\n', "local files"), ('[skills]\nfolders = ["x"]\n', "names folders")],
)
def test_what_cannot_be_locked_is_refused(tmp_path, table, problem):
    file = tmp_path / "sideband.toml"
    file.write_text("[dist.packages]\nacme = '*'\n" + table)
    with pytest.raises(DistInvalid, match=problem):
        read_manifest(file).locked_settings()


def test_lock_contains_the_result_of_the_policy_and_the_rest_of_it(tmp_path):
    file = tmp_path / "sideband.toml"
    text = '[policy]\nonly = ["*"]\nstrict = false\ntimeout = 5\nguards = ["a"]\n[policy.conflicts]\n"op.a" = "b"\n'
    file.write_text("[dist.packages]\nacme = '*'\n" + text)
    assert read_manifest(file).locked_settings() == {"policy": {"timeout": 5, "guards": ["a"]}}


@pytest.mark.parametrize("change", [{"version": 2}, {"manifest": "x"}, {"plugins": [{}]}, {"more": 1}])
def test_file_that_is_not_a_lock_is_refused_by_key(data, tmp_path, change):
    file = tmp_path / "sideband.lock"
    file.write_text(json.dumps({**data, **change}).replace("{", "x = {", 1) if "x" in change else _toml(data | change))
    with pytest.raises(DistInvalid, match=f"`{next(iter(change))}"):
        read_dist_lock(file)


def _toml(data):
    import tomli_w

    return tomli_w.dumps(data)
