"""What `import sideband` offers, and what it says of names that are elsewhere."""

import pytest


@pytest.mark.parametrize("name", ["Agent", "Budget", "RunResult"])
def test_names_of_the_agent_are_refused_with_the_import_to_use(name):
    with pytest.raises(ImportError, match=rf"from sideband_agent import {name}`"):
        exec(f"from sideband import {name}", {})


def test_an_unknown_name_is_refused_as_python_does():
    with pytest.raises(ImportError, match="cannot import name 'Agnet'"):
        exec("from sideband import Agnet", {})
