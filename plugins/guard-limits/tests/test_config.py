"""The configuration: what a limit may be, and what an error says."""

import pytest
from sideband.ops import Level, OpDenied
from sideband_guard_limits._config import Config, Limit

pytestmark = pytest.mark.anyio

FORM = r"expected `COUNT/WINDOW` such as `30/h` or `5/10min` \(units: s, min, h, d; at most 999,999 effects and"


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("1/s", Limit(1, 1, "second")),
        ("5/10min", Limit(5, 600, "10 minutes")),
        ("30/h", Limit(30, 3_600, "hour")),
        ("999999/999d", Limit(999_999, 999 * 86_400, "999 days")),
        ("unlimited", None),
    ],
)
def test_limit_is_a_count_per_window(text, limit):
    assert Config(restricted=text).limit_of(Level.RESTRICTED) == limit


def test_defaults_are_those_of_the_levels():
    limits = [Config().limit_of(level) for level in (Level.CONTROLLED, Level.RESTRICTED, Level.PRIVILEGED)]
    assert [(one.count, one.seconds) for one in limits] == [(100, 3_600), (30, 3_600), (20, 3_600)]
    assert Config().per == "skill"


@pytest.mark.parametrize(
    "value",
    [
        *(
            "",
            "30",
            "/h",
            "0/h",
            "-1/h",
            "01/h",
            "1000000/h",
            "30/hour",
            "30/1000h",
            "30/0h",
            "30/H",
            "30 / h",
            "30/h\n",
        ),
        *("1.5/h", "٣/h", "1e3/h", "30/hh", "Unlimited", "unlimited "),
    ],
)
async def test_invalid_limit_is_refused_with_key_value_and_remedy(make_host, value):
    async with make_host(restricted=value) as host:
        with pytest.raises(OpDenied, match=FORM) as caught:
            await host.op("mail.look", {})
    assert "`plugins.guard-limits.restricted`" in caught.value.message
    assert f"got {value!r}" in caught.value.message


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("controlled", 30, r"expected `COUNT/WINDOW` such as .*, or `unlimited`, got 30"),
        ("privileged", True, r"expected `COUNT/WINDOW` such as .*, or `unlimited`, got True"),
        ("per", "session", "expected 'skill', 'principal' or 'store', got 'session'"),
        ("restrict", "1/h", r"unknown key \(did you mean `restricted`\?\)"),
    ],
)
async def test_other_invalid_settings_are_refused(make_host, key, value, problem):
    async with make_host(**{key: value}) as host:
        with pytest.raises(OpDenied, match=f"`plugins.guard-limits.{key}`.*: {problem}"):
            await host.op("mail.look", {})
