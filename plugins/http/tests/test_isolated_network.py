"""Tests with a name server whose answers change, in namespaces with public and private addresses."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

PUBLIC, PRIVATE = "93.184.216.34", "10.0.0.1"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Return, for each request, the response or error code, the addresses reached and the names looked up."""
    command = [sys.executable, Path(__file__).with_name("isolated_network.py"), tmp_path_factory.mktemp("home")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_public_name_is_reached(results):
    assert results["public.test"] == [{"result": PUBLIC, "reached": [PUBLIC], "lookups": ["public.test"]}]


@pytest.mark.parametrize("name", ["private.test", "both.test", "mapped.test", "alias.test", "six.test"])
def test_name_with_a_non_public_address_is_refused(results, name):
    assert results[name] == [{"result": "http.network", "reached": [], "lookups": [name]}]


def test_name_with_a_reserved_address_is_refused(results):
    assert results["zero.test"] == [{"result": "http.address", "reached": [], "lookups": ["zero.test"]}]


def test_changing_name_is_checked_by_the_address_in_use(results):
    assert [(one["result"], one["reached"]) for one in results["flipping.test"]] == [
        (PUBLIC, [PUBLIC]),
        ("http.network", []),
        ("http.network", []),
        (PUBLIC, [PUBLIC]),
    ]


@pytest.mark.parametrize(
    ("target", "error"),
    [
        ("http://private.test/", "http.network"),
        ("http://both.test/", "http.network"),
        ("//six.test/", "http.network"),
        (f"http://{PRIVATE}/", "op.denied"),
        ("http://127.0.0.1/", "op.denied"),
    ],
)
def test_redirect_to_a_non_public_address_is_refused(results, target, error):
    found = results[f"to {target}"]
    assert (found["result"], found["reached"]) == (error, [PUBLIC])


def test_granted_network_is_reached(results):
    assert results["granted"] == {"result": PRIVATE, "reached": [PRIVATE], "lookups": ["private.test"]}


def test_name_without_grant_is_not_looked_up(results):
    assert results["not granted by name"] == {"result": "op.denied", "reached": [], "lookups": []}


def test_unknown_name_is_a_connect_error(results):
    assert results["unknown"]["result"] == "http.connect"


def test_silent_name_server_is_a_timeout(results):
    assert results["silent"] == {"result": "http.timeout", "reached": [], "lookups": ["silent.test"]}
