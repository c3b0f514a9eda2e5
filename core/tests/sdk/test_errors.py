"""The exception classes of generated modules."""

import builtins
from typing import Literal

import pytest
from pydantic import BaseModel
from sideband.ops import (
    EffectUnknown,
    EgressRefused,
    LimitExceeded,
    OpCancelled,
    OpDenied,
    OpError,
    OpFailed,
    OpTimeout,
    SdkInvalid,
    sdk_functions,
    stub_files,
    write_sdk,
)
from sideband.workers import runtime, runtime_files


class Params(BaseModel):
    text: str = ""


class SampleError(OpFailed):
    """The base of the errors."""

    code = "sample.failed"


class Lost(SampleError, LookupError):
    """It is lost.

    Args:
        place: where.
    """

    code = "sample.lost"
    details = ("place", "count")
    place: str


class Unlisted(SampleError, ValueError):
    """It is not in the list of errors."""

    code = "sample.unlisted"


class Below(Unlisted):
    """It is below a class that is not listed."""

    code = "sample.below"


class Common(OpFailed, KeyError):
    """Several families raise it."""

    code = "common.one"
    shared = True


def made(code, *bases, name="Made"):
    return type(name, bases, {"code": code})


def test_error_becomes_a_class_with_its_bases_code_and_summary(sdk, make_family):
    module = sdk.load(make_family(Params, errors=[Lost, SampleError]))
    assert module.Lost.__mro__[1:4] == (module.SampleError, runtime.OpError, LookupError)
    assert (module.Lost.code, module.Lost("x").code, module.Lost.__doc__) == ("sample.lost",) * 2 + ("It is lost.",)
    assert {"Lost", "SampleError"} <= set(module.__all__)


def test_error_below_an_unlisted_one_keeps_the_listed_bases(sdk, make_family):
    module = sdk.load(make_family(Params, errors=[SampleError, Below]))
    assert set(module.Below.__bases__) == {module.SampleError, ValueError}


@pytest.mark.parametrize("general", [OpDenied, EgressRefused, OpTimeout, OpCancelled, EffectUnknown, LimitExceeded])
def test_error_below_a_general_one_stays_below_it(sdk, make_family, general):
    module = sdk.load(make_family(Params, errors=[made("sample.made", general)]))
    assert issubclass(module.Made, getattr(runtime, general.__name__))


@pytest.mark.parametrize(
    ("base", "kept"),
    [
        (PermissionError, PermissionError),
        (ConnectionResetError, ConnectionError),
        (UnicodeError, ValueError),
        (KeyError, KeyError),
        (ImportError, None),
        (StopIteration, None),
        (AttributeError, None),
        (AssertionError, None),
    ],
)
def test_only_natural_builtins_are_bases(sdk, make_family, base, kept):
    module = sdk.load(make_family(Params, errors=[made("sample.made", OpFailed, base)]))
    natural = [one for one in module.Made.__bases__ if one is not runtime.OpError]
    assert natural == ([kept] if kept else [])
    assert str(module.Made("the text")) == "the text"


def test_base_that_another_base_has_already_is_left_out(sdk, make_family):
    unlisted = made("sample.unlisted", OpFailed, OSError)
    module = sdk.load(make_family(Params, errors=[made("sample.made", unlisted, PermissionError)]))
    assert module.Made.__bases__ == (runtime.OpError, PermissionError)


def test_class_named_like_a_builtin_does_not_affect_the_others(sdk, make_family):
    lookup = made("sample.lookup", OpFailed, LookupError, name="LookupError")
    module = sdk.load(make_family(Params, errors=[lookup, Lost]))
    assert issubclass(module.Lost, builtins.LookupError)
    assert not issubclass(module.Lost, module.LookupError)


@pytest.mark.parametrize("doc", ['""" os', "a\\", 'x"', "", None, "\x00"])
def test_docstring_of_an_error_cannot_inject_code(sdk, make_family, doc):
    error = type("Made", (OpFailed,), {"code": "sample.made", "__doc__": doc})
    assert sdk.load(make_family(Params, errors=[error])).Made.__doc__ == (doc or "The error `sample.made`.")


def test_shared_error_is_one_class_in_all_families(tmp_path, make_family, import_folder):
    families = [make_family(Params, name=f"{name}.send", errors=[Common]) for name in ("one", "two")]
    sdk = write_sdk(tmp_path / "sdk", families, runtime_files())
    code = "from sideband.skill import one, two\nprint(one.Common is two.Common, issubclass(one.Common, KeyError))"
    assert import_folder(sdk, code).stdout == "True True\n"


@pytest.mark.parametrize("other", [made("common.one", OpFailed), made("common.two", OpFailed, name="Common")])
def test_shared_errors_with_one_name_or_code_are_rejected(tmp_path, make_family, other):
    other.shared = True
    families = [make_family(Params, name="one.send", errors=[Common]), make_family(Params, errors=[other])]
    with pytest.raises(SdkInvalid, match="of `sample` cannot be generated: `one` has another shared error with the"):
        write_sdk(tmp_path / "sdk", families, runtime_files())


def test_error_named_like_an_extra_function_is_rejected(tmp_path, make_family):
    path = tmp_path / "_sdk.py"
    path.write_text("class Lost: ...\n")
    with pytest.raises(SdkInvalid, match="`Lost` is also a name in its `sdk` module"):
        sdk_functions(make_family(Params, sdk=path, errors=[Lost]))


def test_names_of_the_module_include_errors_and_types(make_family):
    class Answer(BaseModel):
        count: int

    names = sdk_functions(make_family(Params, result=Answer, errors=[Lost, Common]))
    assert {"send", "Lost", "Common", "Answer"} <= set(names)
    assert names["Lost"] is names["Answer"] is None


def test_internal_op_has_no_function(make_family):
    assert "send" not in sdk_functions(make_family(Params, rest_of_op={"internal": True}))


def test_details_are_bounded_data():
    error = Lost("gone")
    error.place, error.count = "x" * 3_000, 2**70
    assert error.as_dict()["details"] == {"place": "x" * 2_000, "count": str(2**70)}
    error.place, error.count = float("nan"), [1]
    assert error.as_dict()["details"] == {"place": "nan", "count": "[1]"}
    assert "details" not in OpError("no").as_dict()


@pytest.mark.parametrize(
    ("annotation", "written"),
    [
        (str, "str"),
        (int | None, "int | None"),
        (Literal["a", 1], "Literal['a', 1]"),
        (list[str], "Any"),
        (dict[str, int] | None, "Any"),
        (bytes, "Any"),
        (object(), "Any"),
    ],
)
def test_only_plain_data_is_the_type_of_a_detail(make_family, annotation, written):
    error = type("Made", (OpFailed,), {"code": "sample.made", "details": ("place",)})
    error.__annotations__ = {"place": annotation}
    assert f"    place: {written}\n" in stub_files([make_family(Params, errors=[error])])["sample.pyi"]


def test_missing_detail_has_the_value_none():
    assert Lost("gone").as_dict()["details"] == {"place": None, "count": None}
