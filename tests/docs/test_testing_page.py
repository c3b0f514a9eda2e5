"""The examples of the page on the testing kit pass, as tests that an author runs."""

import pytest


@pytest.fixture
def author(page, pytester):
    """Write the plugin of the page, and return the tests of the page by their section."""
    plugin, *tests = page("docs/testing.md").examples("python")
    pytester.makepyfile(sideband_clock=plugin)
    pytester.makepyfile(conftest="import pytest\n\n\n@pytest.fixture\ndef anyio_backend():\n    return 'asyncio'\n")
    return tests


def test_examples_pass_and_what_they_record_is_replayed(author, pytester):
    """Run them in processes: a run in this process would forget modules that other tests use."""
    assert len(author) > 7
    pytester.makepyfile(**{f"test_example_{number}": text for number, text in enumerate(author)})
    options = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist")
    outcomes = pytester.runpytest_subprocess(*options, "--sideband-record=missing").parseoutcomes()
    assert outcomes.keys() <= {"passed", "skipped"}
    assert outcomes["passed"] >= sum(max(1, text.count("def test_")) for text in author)
    assert pytester.runpytest_subprocess(*options, "-k", "replayed").parseoutcomes()["passed"] == 1
