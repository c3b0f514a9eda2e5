import pytest


@pytest.fixture
def call(tool_call):
    return tool_call
