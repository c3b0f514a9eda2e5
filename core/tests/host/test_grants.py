"""What a person granted is remembered for exactly the version of the skill that asked."""

import pytest
from sideband import ConfigurationError
from sideband.calls._grants import RememberedGrants
from sideband.ops import Grant


@pytest.fixture
def grants(tmp_path):
    return RememberedGrants(tmp_path)


def test_nobody_has_anything_before_it_was_granted(grants):
    assert grants.get("digest").texts() == ()


def test_a_grant_is_for_its_digest_and_stays(grants, tmp_path):
    grants.remember("one", "stars", Grant.parse(["http:host=example.org"]))
    again = RememberedGrants(tmp_path)
    assert again.get("one").texts() == ("http:host=example.org",)
    assert again.get("two").texts() == ()


def test_a_second_grant_adds_to_the_first_and_leaves_others_alone(grants):
    grants.remember("one", "stars", Grant.parse(["http"]))
    grants.remember("two", "notes", Grant.parse(["sql"]))
    grants.remember("one", "stars", Grant.parse(["sql"]))
    assert set(grants.get("one").texts()) == {"http", "sql"}
    assert grants.get("two").texts() == ("sql",)


def test_only_its_owner_can_read_it(grants, tmp_path):
    grants.remember("one", "stars", Grant.parse(["http"]))
    assert (tmp_path / "grants.toml").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", [b"skills = = 3", b"\xff\xfe"])
def test_a_damaged_file_is_named_and_nothing_is_granted(grants, tmp_path, content):
    (tmp_path / "grants.toml").write_bytes(content)
    with pytest.raises(ConfigurationError, match="not TOML") as caught:
        grants.get("one")
    assert caught.value.source.endswith("grants.toml")
    assert caught.value.hint


def test_a_grant_that_is_taken_back_meanwhile_is_not_held_any_more(tmp_path):
    remembered = RememberedGrants(tmp_path)
    remembered.remember("digest", "skill", Grant.parse(["http:host=example.org"]))
    assert remembered.get("digest")
    (tmp_path / "grants.toml").unlink()
    assert not remembered.get("digest")


def test_a_grant_that_somebody_else_narrows_meanwhile_is_held_as_narrow_as_that(tmp_path):
    remembered, other = RememberedGrants(tmp_path), RememberedGrants(tmp_path)
    other.remember("digest", "skill", Grant.parse(["http"]))
    assert str(remembered.get("digest")) == "http"
    file = tmp_path / "grants.toml"
    file.write_text(file.read_text().replace('"http"', '"http:host=example.org"'))
    assert str(remembered.get("digest")) == "http:host=example.org"
