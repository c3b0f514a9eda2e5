"""Public names of `sideband`, and the error for names of other packages."""

import pytest


@pytest.mark.parametrize("name", ["Agent", "Budget", "RunResult"])
def test_agent_names_are_rejected_with_the_correct_import(name):
    with pytest.raises(ImportError, match=rf"from sideband_agent import {name}`"):
        exec(f"from sideband import {name}", {})


def test_unknown_name_raises_the_usual_import_error():
    with pytest.raises(ImportError, match="cannot import name 'Agnet'"):
        exec("from sideband import Agnet", {})
