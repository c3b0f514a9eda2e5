"""A team locks the package of other authors: it is called, recorded, replayed, upgraded and removed.

The tests of this module run in this order, since they are the life of one environment.
"""

import pytest

CALL = ("call", "tide_report.next_high_water", "station=dover")
ANSWER = "The next high water at dover is at 2026-05-01T04:10."


def test_locked_package_is_called_by_its_skill(team, service):
    service.requested.clear()
    assert team.sideband(*CALL)["output"] == ANSWER
    assert service.requested == ["/dover"]


def test_recorded_call_is_replayed_without_the_service(team, service):
    team.sideband("record", "tides.json", *CALL)
    content = (team.folder / "tides.json").read_bytes()
    service.requested.clear()
    assert team.sideband("replay", "tides.json", *CALL)["output"] == ANSWER
    assert service.requested == []
    assert (team.folder / "tides.json").read_bytes() == content


def test_changed_request_ends_the_replay_with_the_difference(team, service):
    service.requested.clear()
    error = team.sideband("replay", "tides.json", *CALL[:-1], "station=wick", code=1)["error"]
    assert error["code"] == "cassette.divergence"
    assert "wick" in error["message"]
    assert "dover" in error["message"]
    assert service.requested == []


def test_changed_file_is_named_and_refused(team):
    site = next((team.folder / "env").glob("lib/python*/site-packages"))
    module = site / "sideband_tides" / "ops.py"
    content = module.read_text()
    module.unlink()
    module.write_text(content + "# changed\n")
    error = team.sideband("op", "tides.high_waters", "station=dover", code=5)["error"]
    assert "sideband_tides/ops.py has changed" in error["message"]
    module.unlink()
    module.write_text(content)


@pytest.fixture
def upgraded(team, second):
    wheel = team.folder / "wheels" / second.name
    if not wheel.exists():
        wheel.hardlink_to(second)
        (team.folder / "old.lock").write_bytes((team.folder / "sideband.lock").read_bytes())
        team.dist("lock", "--upgrade")
    return team


def test_upgrade_shows_the_rights_that_the_new_version_wants(upgraded):
    changes = upgraded.dist("diff", "old.lock")
    assert "1.0.0" in str(changes)
    assert "1.1.0" in str(changes)
    assert "secrets:name=tides" in str(changes)


def test_upgrade_is_used_once_it_is_synced(upgraded):
    upgraded.dist("check", "--environment", "env", code=5)
    upgraded.dist("sync", "--environment", "env")
    listed = upgraded.sideband("plugins", "list")
    assert {one["version"] for one in listed if one["distribution"] == "sideband-tides"} == {"1.1.0"}
    assert upgraded.sideband(*CALL)["output"] == ANSWER


def test_removed_package_leaves_nothing_but_its_records(upgraded, index):
    upgraded.choose(index)
    upgraded.dist("lock")
    upgraded.dist("sync", "--environment", "env")
    assert not [one for one in upgraded.sideband("plugins", "list") if one["distribution"] == "sideband-tides"]
    upgraded.sideband(*CALL, code=2)
    assert upgraded.sideband("audit", "query", "--op", "tides.high_waters")
    upgraded.sideband("audit", "verify")
