"""The errors that an op family declares are checked when its plugin is imported."""

import pytest
from pydantic import BaseModel
from sideband.ops import OpDenied, OpFailed, OpFamily, op
from sideband.plugins import Plugin, PluginHost, PluginInvalid

pytestmark = pytest.mark.anyio


class Params(BaseModel):
    pass


@op("geo.find")
async def find(params: Params, ctx) -> str:
    return ""


def made(code, name="Lost", base=OpFailed, **more):
    return type(name, (base,), {**({} if code is None else {"code": code}), **more})


class Registering:
    def __init__(self, errors):
        self.errors = errors

    def sideband_ops(self):
        return OpFamily(name="geo", ops=(find,), errors=self.errors)


async def load(home, errors):
    plugin = Plugin("op", "geo", Registering(errors))
    async with PluginHost(home=home, inline=[plugin], autoload=False) as plugins:
        return await plugins.load("op", "geo")


LOST = made("geo.lost")

INVALID = [
    ("geo.lost", "must be a list of classes, got 'geo.lost'"),
    (LOST, "must be a list of classes, got the class `Lost`"),
    (["geo.lost"], "include 'geo.lost'; list classes, each a subclass of OpFailed"),
    ([ValueError], "include the class `ValueError`; list classes, each a subclass of OpFailed"),
    ([LOST("x")], "list classes, each a subclass of OpFailed"),
    ([made(None, "AddressLost")], "`AddressLost` has no `code` of its own, such as `geo.address_lost`"),
    ([made("lost")], "must be lower-case words such as `geo.lost`, got 'lost'"),
    ([made("geo.Lost")], "must be lower-case words such as `geo.lost`, got 'geo.Lost'"),
    ([made("http.lost")], "the code `http.lost` of its error `Lost` must begin with `geo.`"),
    ([made("geography.lost")], "must begin with `geo.`"),
    ([made("op.denied", base=OpDenied)], "must begin with `geo.`"),
    ([made("limit.calls", shared=True)], "must begin with `geo.`"),
    ([LOST, made("geo.lost", "Gone")], "its errors `Lost` and `Gone` have the code `geo.lost`"),
    ([LOST, LOST], "have the code `geo.lost`"),
    ([LOST, made("geo.gone")], "two of its errors are named `Lost`"),
    ([made("geo.lost", "lost")], "`lost` must be words in upper camel case"),
    ([made("geo.lost", "Lost_")], "`Lost_` must be words in upper camel case"),
    ([made("geo.lost", "None")], "`None` must be words in upper camel case"),
    ([made("geo.lost", details=["place"])], "`details` of its error `Lost` must be a tuple of at most 16 names"),
    ([made("geo.lost", details=tuple(f"d{n}" for n in range(17)))], "must be a tuple of at most 16 names"),
    ([made("geo.lost", details=("message",))], "names of attributes that the class adds, got 'message'"),
    ([made("geo.lost", details=("_place",))], "names of attributes that the class adds, got '_place'"),
    ([made("geo.lost", details=("from",))], "names of attributes that the class adds, got 'from'"),
    ([made("geo.lost", details=(3,))], "names of attributes that the class adds, got 3"),
]


@pytest.mark.parametrize(("errors", "expected"), INVALID)
async def test_invalid_error_of_a_family_is_rejected(tmp_path, errors, expected):
    with pytest.raises(PluginInvalid) as caught:
        await load(tmp_path, errors)
    assert expected in caught.value.reason


@pytest.mark.parametrize(
    "errors",
    [
        (),
        [LOST, made("geo.gone", "Gone", LOST)],
        (made("geo.lost", details=("place", "line_2")),),
        [made("geo.a.b")],
        [made("place.lost", shared=True)],
        [made("geo.lost", base=OpDenied)],
    ],
)
async def test_valid_errors_of_a_family_are_accepted(tmp_path, errors):
    assert (await load(tmp_path, errors)).contribution.errors == errors
