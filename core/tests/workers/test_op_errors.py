"""Errors of ops in a real worker: the class follows from the code that the host sends."""

import asyncio

import pytest
from attrs import evolve
from pydantic import BaseModel
from sideband import skill as outside
from sideband.ops import (
    EffectInFlight,
    EffectUnknown,
    EgressRefused,
    LimitExceeded,
    OpCancelled,
    OpDenied,
    OpError,
    OpFailed,
    OpFamily,
    OpInternal,
    OpNotFound,
    OpParamsInvalid,
    OpResultInvalid,
    OpTimeout,
    OpUnavailable,
    SecretsClosed,
    op,
    write_sdk,
)
from sideband.plugins import PluginNotFound
from sideband.workers import SkillFailed, runtime_files

pytestmark = pytest.mark.anyio


class Params(BaseModel):
    pass


class GeoError(OpFailed):
    """The base of the errors."""

    code = "geo.failed"


class AddressNotFound(GeoError, LookupError):
    """The address is unknown."""

    code = "geo.address"
    details = ("address", "tries")

    def __init__(self, address, tries):
        super().__init__(f"no address {address}")
        self.address, self.tries = address, tries


class Common(OpFailed):
    """Several families raise it."""

    code = "common.one"
    shared = True


class RoadClosed(OpFailed, TimeoutError):
    """The road is closed."""

    code = "road.closed"


def family(name, errors, **options):
    @op(f"{name}.find")
    async def find(params: Params, ctx) -> str:
        return ""

    return OpFamily(name=name, ops=(find,), errors=errors, **options)


BROKEN = "raise SyntaxError('broken')\nasync def near(): ...\n"


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    """An SDK with generated families, one of which cannot be imported."""
    folder = tmp_path_factory.mktemp("generated")
    extra = folder / "_sdk.py"
    extra.write_text(BROKEN)
    families = [
        family("geo", [AddressNotFound, GeoError, Common]),
        family("road", [RoadClosed]),
        family("broken", [], sdk=extra),
    ]
    return write_sdk(folder / "sdk", families, runtime_files())


@pytest.fixture
def caught(make_skill, make_pool, generated):
    """Return a function that dispatches an op whose handler raises an error, and returns what the skill says."""

    async def run(error, code, name="geo.find"):
        source = f"from sideband.skill import geo, road\nasync def one():\n{code}"
        skill = evolve(make_skill(source.replace("OP", name)), sdk=generated)

        async def fail(op, params):
            raise error

        async with make_pool() as pool:
            return (await pool.call(skill.call("one", handler=fail))).value

    return run


NAMED = """
    try:
        await dispatch("OP")
    except OpError as error:
        return type(error).__name__, error.code
"""

GENERAL = [
    (OpDenied("geo.find", "no"), "OpDenied"),
    (OpInternal("geo.find"), "OpDenied"),
    (EgressRefused("geo.find", "token", "URL", None), "EgressRefused"),
    (SecretsClosed("geo.find", {}), "SecretsClosed"),
    (OpTimeout("geo.find", 1), "OpTimeout"),
    (OpNotFound("geo.find"), "OpNotFound"),
    (OpUnavailable("geo.find", PluginNotFound("op", "geo")), "OpUnavailable"),
    (OpParamsInvalid("geo.find", "no"), "OpParamsInvalid"),
    (OpResultInvalid("geo.find", "no"), "OpResultInvalid"),
    (OpCancelled("geo.find"), "OpCancelled"),
    (EffectInFlight("geo.find", "key"), "EffectInFlight"),
    (EffectUnknown("geo.find", "key", "e1"), "EffectUnknown"),
    (LimitExceeded("dispatches", 3), "LimitExceeded"),
    (OpFailed("no"), "OpError"),
]


@pytest.mark.parametrize(("error", "name"), GENERAL)
async def test_general_error_has_its_class(caught, error, name):
    assert await caught(error, NAMED) == [name, error.code]


async def test_general_errors_have_natural_bases(caught):
    code = """
    try:
        await dispatch("OP")
    except PermissionError as error:
        return str(error)
"""
    assert await caught(OpDenied("geo.find", "no rights"), code) == "geo.find was denied: no rights"


async def test_error_of_a_family_is_caught_by_its_class_with_its_details(caught):
    code = """
    try:
        await geo.find()
    except geo.AddressNotFound as error:
        return error.address, error.tries, error.code, error.message, error.op
"""
    answer = await caught(AddressNotFound("Mill Lane", 3), code)
    assert answer == ["Mill Lane", 3, "geo.address", "no address Mill Lane", "geo.find"]


@pytest.mark.parametrize("kind", ["geo.GeoError", "LookupError", "OpError"])
async def test_error_of_a_family_is_caught_by_each_of_its_bases(caught, kind):
    code = f"    try:\n        await geo.find()\n    except {kind} as error:\n        return type(error).__name__\n"
    assert await caught(AddressNotFound("Mill Lane", 3), code) == "AddressNotFound"


async def test_detail_that_the_host_did_not_send_has_the_value_none(caught):
    error = OpError("no address", code="geo.address")
    code = (
        "    try:\n        await geo.find()\n    except geo.AddressNotFound as error:\n        return [error.address]\n"
    )
    assert await caught(error, code) == [None]


@pytest.mark.parametrize(
    ("error", "name", "expected"),
    [
        (OpFailed("geo.address: no address", code="geo.other"), "geo.find", "OpError"),
        (OpFailed("x", code="geo.addresss"), "geo.find", "OpError"),
        (OpFailed("x", code="geo.failed"), "geo.find", "GeoError"),
        (OpFailed("x", code="road.closed"), "geo.find", "RoadClosed"),
        (OpFailed("x", code="geo.address"), "road.find", "AddressNotFound"),
        (OpFailed("x", code="common.one"), "geo.find", "Common"),
        (OpFailed("x", code="common.one"), "road.find", "Common"),
        (OpFailed("x", code="absent.one"), "absent.find", "OpError"),
        (OpFailed("x", code="broken.one"), "broken.find", "OpError"),
        (OpFailed("x", code="os.path"), "os.find", "OpError"),
        (OpFailed("x", code=""), "geo.find", "OpError"),
        (OpFailed("x", code="..a"), "../geo.find", "OpError"),
    ],
)
async def test_class_follows_from_the_code_only(caught, error, name, expected):
    assert await caught(error, NAMED, name) == [expected, error.code]


async def test_uncaught_error_of_a_family_is_the_cause_of_the_failure(make_skill, make_pool, generated):
    skill = evolve(make_skill("from sideband.skill import geo\nasync def one():\n    await geo.find()"), sdk=generated)

    async def fail(op, params):
        raise AddressNotFound("Mill Lane", 3)

    async with make_pool() as pool:
        with pytest.raises(SkillFailed, match="AddressNotFound: no address Mill Lane") as raised:
            await pool.call(skill.call("one", handler=fail))
    assert raised.value.__cause__.code == "geo.address"


@pytest.mark.parametrize("body", ["def __init__(self): pass", "message = property(lambda self: 1 / 0)"])
async def test_error_class_of_a_skill_without_attributes_is_still_reported(make_skill, make_pool, body):
    skill = make_skill(f"class Mine(OpError):\n    {body}\nasync def one():\n    raise Mine.__new__(Mine)")
    async with make_pool() as pool:
        with pytest.raises(SkillFailed, match="Mine"):
            await pool.call(skill.call("one"))


async def test_skill_can_raise_an_error_of_a_family_in_a_test(caught):
    code = """
    try:
        raise geo.AddressNotFound("gone")
    except geo.GeoError as error:
        return error.code, str(error), error.retryable
"""
    assert await caught(OpFailed("unused"), code) == ["geo.address", "gone", False]


@pytest.mark.parametrize("sent", [None, 1, "no", []])
def test_error_is_retryable_only_if_the_host_says_true(sent):
    assert outside.OpError.from_wire({"code": "geo.failed", "retryable": sent}, "geo.find").retryable is False


def test_error_of_a_family_that_was_not_generated_is_a_clear_error():
    with pytest.raises(AttributeError, match=r"`geo.AddressNotFound` is unknown, because the module of `geo` was not"):
        outside.geo.AddressNotFound  # noqa: B018
    with pytest.raises(RuntimeError, match="requires a host"):
        asyncio.run(outside.geo.find())
