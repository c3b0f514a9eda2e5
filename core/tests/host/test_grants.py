"""Stored grants apply only to the exact content of the skill that requested them."""

import tomllib
from concurrent.futures import ThreadPoolExecutor

import pytest
from sideband import ConfigurationError
from sideband.calls._grants import RememberedGrants
from sideband.ops import Grant


@pytest.fixture
def grants(tmp_path):
    return RememberedGrants(tmp_path)


def test_skill_has_no_grant_at_first(grants):
    assert grants.get("digest").texts() == ()


def test_grant_is_stored_by_digest(grants, tmp_path):
    grants.remember("one", "stars", Grant.parse(["http:host=example.org"]))
    again = RememberedGrants(tmp_path)
    assert again.get("one").texts() == ("http:host=example.org",)
    assert again.get("two").texts() == ()


def test_hosts_that_change_grants_at_the_same_time_lose_none_of_the_changes(tmp_path):
    grant = Grant.parse(["sql"])
    RememberedGrants(tmp_path).remember("revoked", "notes", grant)

    def change(number):
        own = RememberedGrants(tmp_path)
        for each in range(10):
            own.remember(f"{number}-{each}", "notes", grant)
        own.forget("revoked", grant)

    with ThreadPoolExecutor() as threads:
        list(threads.map(change, range(4)))
    again = RememberedGrants(tmp_path)
    assert not again.get("revoked")
    assert all(again.get(f"{number}-{each}") for number in range(4) for each in range(10))


def test_second_grant_is_added_to_the_first(grants):
    grants.remember("one", "stars", Grant.parse(["http"]))
    grants.remember("two", "notes", Grant.parse(["sql"]))
    grants.remember("one", "stars", Grant.parse(["sql"]))
    assert set(grants.get("one").texts()) == {"http", "sql"}
    assert grants.get("two").texts() == ("sql",)


def test_file_is_readable_by_its_owner_only(grants, tmp_path):
    grants.remember("one", "stars", Grant.parse(["http"]))
    assert (tmp_path / "grants.toml").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", [b"skills = = 3", b"\xff\xfe"], ids=["invalid", "binary"])
def test_damaged_file_is_reported_and_grants_nothing(grants, tmp_path, content):
    (tmp_path / "grants.toml").write_bytes(content)
    with pytest.raises(ConfigurationError, match="invalid TOML") as caught:
        grants.get("one")
    assert caught.value.source.endswith("grants.toml")
    assert caught.value.hint


def test_revoked_grant_takes_effect_at_once(tmp_path):
    remembered = RememberedGrants(tmp_path)
    remembered.remember("digest", "skill", Grant.parse(["http:host=example.org"]))
    assert remembered.get("digest")
    (tmp_path / "grants.toml").unlink()
    assert not remembered.get("digest")


def test_grant_narrowed_by_another_process_takes_effect_at_once(tmp_path):
    remembered, other = RememberedGrants(tmp_path), RememberedGrants(tmp_path)
    other.remember("digest", "skill", Grant.parse(["http"]))
    assert str(remembered.get("digest")) == "http"
    file = tmp_path / "grants.toml"
    file.write_text(file.read_text().replace('"http"', '"http:host=example.org"'))
    assert str(remembered.get("digest")) == "http:host=example.org"


def test_grant_of_a_plugin_is_stored_in_a_table_of_its_own(grants, tmp_path):
    grants.remember("one", "stars", Grant.parse(["http"]))
    grants.remember("plugin:geo:sideband-geo", "plugin:geo", Grant.parse(["sql"]))
    tables = tomllib.loads((tmp_path / "grants.toml").read_text())
    assert (tables["skills"]["one"]["skill"], tables["plugins"]["geo:sideband-geo"]["plugin"]) == (
        "stars",
        "plugin:geo",
    )
    again = RememberedGrants(tmp_path)
    assert (str(again.get("one")), str(again.get("plugin:geo:sideband-geo"))) == ("http", "sql")


@pytest.mark.parametrize("table", ['skills."plugin:geo:dist"', 'plugins."plugin:geo:dist"'])
def test_entry_of_another_kind_is_not_the_grant_of_a_plugin(grants, tmp_path, table):
    (tmp_path / "grants.toml").write_text(f'[{table}]\ncapabilities = ["http"]\n')
    assert not grants.get("plugin:geo:dist")
    assert not grants.get("geo:dist")
