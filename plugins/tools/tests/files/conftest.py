import pytest


@pytest.fixture
def grants(work):
    return [f"files:path={work}/*,mode=read|write,hidden=*"]


@pytest.fixture
def call(tool_call):
    return tool_call
