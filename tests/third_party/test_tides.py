"""A package of other authors, written with the documentation only: installed, used, upgraded and removed."""

import pytest

from .conftest import SOURCE

OURS = ("sideband", "sideband-testing")


@pytest.fixture
def installed(environment, first):
    environment.install(*OURS, first)
    return environment


def test_package_is_found_without_an_import(installed, user):
    records = user.data("plugins", "list")
    found = {(one["kind"], one["name"], one["state"]) for one in records if one["distribution"] == "sideband-tides"}
    assert found == {("op", "tides", "found"), ("guard", "tides", "found"), ("tool", "tides", "found"),
                     ("skill", "tide-report", "found")}  # fmt: skip


def test_package_is_valid(installed, user):
    user.sideband("plugins", "check")


def test_tests_of_the_package_pass_beside_the_wheels(installed):
    done = installed.run("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", str(SOURCE / "tests"))
    assert done.returncode == 0, done.stdout + done.stderr


def test_op_uses_the_rights_of_its_own_family(installed, user):
    done = user.data("op", "tides.high_waters", "station=dover")
    assert done["output"]["times"][0] == "2026-05-01T04:10"
    (request,) = user.data("audit", "query", "--op", "http.get")
    assert request["status"] == "done"
    assert "a right of the plugin `tides`" in user.sideband("audit", "why", request["effect"])


def test_skill_of_the_package_is_called_by_name(installed, user):
    assert "at 2026-05-01T04:10." in user.sideband("call", "tide_report.next_high_water", "station=dover")


def test_guard_of_the_package_denies_and_is_named(installed, user):
    assert "tides" in user.sideband("op", "tides.high_waters", "station=wick", code=3)


def test_source_of_the_package_offers_a_tool_for_each_station(installed, user):
    assert "tides.dover" in {one["name"] for one in user.data("tools", "list")["tools"]}
