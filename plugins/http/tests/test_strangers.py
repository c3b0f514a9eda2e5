"""Against a real name server whose answers change, in namespaces where public and private addresses can be reached."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

PUBLIC, PRIVATE = "93.184.216.34", "10.0.0.1"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """What came of each request: what was answered or refused, which addresses were reached, which names asked for."""
    command = [sys.executable, Path(__file__).with_name("strangers.py"), tmp_path_factory.mktemp("home")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_public_name_is_reached(results):
    assert results["public.test"] == [{"answer": PUBLIC, "reached": [PUBLIC], "asked": ["public.test"]}]


@pytest.mark.parametrize("name", ["private.test", "both.test", "mapped.test", "alias.test", "six.test"])
def test_a_name_that_leads_inside_reaches_nobody(results, name):
    assert results[name] == [{"answer": "http.network", "reached": [], "asked": [name]}]


def test_a_name_that_leads_nowhere_reaches_nobody(results):
    assert results["zero.test"] == [{"answer": "http.address", "reached": [], "asked": ["zero.test"]}]


def test_a_name_that_changes_is_judged_by_the_answer_that_is_used(results):
    assert [(one["answer"], one["reached"]) for one in results["flipping.test"]] == [
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
def test_a_redirect_leads_nobody_inside(results, target, error):
    found = results[f"to {target}"]
    assert (found["answer"], found["reached"]) == (error, [PUBLIC])


def test_who_was_granted_the_network_gets_there(results):
    assert results["granted"] == {"answer": PRIVATE, "reached": [PRIVATE], "asked": ["private.test"]}


def test_no_name_server_hears_a_name_that_was_not_granted(results):
    assert results["not granted by name"] == {"answer": "op.denied", "reached": [], "asked": []}


def test_a_name_that_is_not_known_is_no_connection(results):
    assert results["unknown"]["answer"] == "http.connect"


def test_a_name_server_that_is_silent_is_not_waited_for_longer_than_asked(results):
    assert results["silent"] == {"answer": "http.timeout", "reached": [], "asked": ["silent.test"]}
