"""The text of a JSON body is redacted like the data parsed from it."""

import json
from contextlib import contextmanager

import pytest
from sideband_testing import HttpServer

pytestmark = pytest.mark.anyio


@contextmanager
def answering(body, kind="application/json"):
    with HttpServer() as server:
        server.reply(body, kind=kind)
        yield server.url()


@pytest.mark.parametrize("kind", ["application/json", "application/vnd.api+json; charset=utf-8"])
async def test_value_under_a_sensitive_key_is_redacted_in_text_and_data(host, kind):
    with answering(b'{"user": "ada", "password": "hunter2", "nested": [{"GITHUB_TOKEN": {"a": "b"}}]}', kind) as url:
        answer = await host.op("http.get", {"url": url})
    assert answer["body"] == '{"user": "ada", "password": "[redacted]", "nested": [{"GITHUB_TOKEN": "[redacted]"}]}'
    assert json.loads(answer["body"]) == answer["json"]


async def test_value_of_a_repeated_key_is_redacted_in_the_text(host):
    with answering(b'{"password": "hunter2", "password": null}') as url:
        answer = await host.op("http.get", {"url": url})
    assert "hunter2" not in repr(answer)


async def test_large_body_is_redacted_too(host):
    body = json.dumps([{"id": number, "token": f"hunter{number}"} for number in range(20_000)]).encode()
    with answering(body) as url:
        answer = await host.op("http.get", {"url": url})
    assert "hunter" not in repr(answer)
    assert json.loads(answer["body"]) == answer["json"]


async def test_other_text_is_unchanged(host):
    with answering(b'{"password": "hunter2"}', "text/plain") as url:
        answer = await host.op("http.get", {"url": url})
    assert (answer["body"], answer["json"]) == ('{"password": "hunter2"}', None)
