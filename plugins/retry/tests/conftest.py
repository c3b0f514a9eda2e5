"""Rules with a fixed clock and fixed randomness, and events as an agent emits them."""

from datetime import UTC, datetime

import pytest
from sideband.hooks import ModelError
from sideband_retry._rules import RetryRules
from sideband_retry._schedule import Schedule
from sideband_retry.plugin import Config

NOW = datetime(2025, 11, 22, 12, 0, tzinfo=UTC).timestamp()


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def now():
    return NOW


@pytest.fixture
def make_rules():
    def make(*, chance=0.0, **config):
        settings = Config(**config)
        schedule = Schedule(base=settings.base, cap=settings.cap, random=lambda: chance)
        return RetryRules(settings, schedule=schedule, now=lambda: NOW)

    return make


@pytest.fixture
def rules(make_rules):
    return make_rules()


@pytest.fixture
def make_event():
    def make(status=None, body="", *, model="openai:gpt-5", attempt=1, elapsed=0.0, compacted=False, **error):
        error = {"code": "provider.refused", "message": "", "hint": "", **error, "status": status, "body": body}
        return ModelError("r1", model, error, attempt=attempt, elapsed=elapsed, compacted=compacted)

    return make


@pytest.fixture
def ask(rules, make_event):
    return lambda *args, **kwargs: rules.answer(make_event(*args, **kwargs))
