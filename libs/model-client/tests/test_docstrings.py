"""Each public name has an example, and the examples pass."""

import doctest
import inspect

import httpx
import pytest
import sideband_model_client
from sideband.messages import Fragment
from sideband_model_client import KeyForm, ModelService, ServiceAccess

NAMES = [name for name in sideband_model_client.__all__ if name != "__version__"]


@pytest.fixture
def names(ctx):
    acme = ModelService("https://acme.example", KeyForm("x-api-key"), "acme")
    access = ServiceAccess("acme", acme, acme.official_address, ctx.check_egress)
    public = {name: getattr(sideband_model_client, name) for name in NAMES}
    return {
        **public,
        "access": access,
        "ctx": ctx,
        "Fragment": Fragment,
        "httpx": httpx,
        "asynccontextmanager": lambda function: function,
    }


@pytest.mark.parametrize("name", NAMES)
def test_public_name_has_examples_that_pass(name, names):
    tests = [one for one in doctest.DocTestFinder().find(getattr(sideband_model_client, name), name) if one.examples]
    assert tests
    for test in tests:
        test.globs = dict(names)
        assert doctest.DocTestRunner(optionflags=doctest.IGNORE_EXCEPTION_DETAIL).run(test).failed == 0


@pytest.mark.parametrize("name", NAMES)
def test_parameters_of_a_public_function_are_documented(name):
    value = getattr(sideband_model_client, name)
    if inspect.isfunction(value) and len(inspect.signature(value).parameters) > 1:
        for parameter in inspect.signature(value).parameters:
            assert f"{parameter}:" in value.__doc__
