import ast
import inspect
import keyword
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, create_model
from sideband.ops import OpFamily
from sideband.ops._sdk_render import SdkInvalid, render_family


class Inner(BaseModel):
    count: int


class Tree(BaseModel):
    children: list["Tree"] = []


class SampleParams(BaseModel):
    url: str
    method: Literal["GET", "POST"] = "GET"
    headers: dict[str, str] = Field(default_factory=dict, description="Extra headers.")
    body: bytes | None = None
    timeout: float = 30.0
    tags: list[str] = ["a"]
    inner: Inner | None = None
    anything: Any = None
    from_: str | None = Field(default=None, alias="from")


SAMPLE = {
    "url": "https://example.test",
    "method": "POST",
    "headers": {"x": "y"},
    "body": b"\x00",
    "timeout": 30.0,
    "tags": ["b"],
    "inner": {"count": 1},
    "anything": [1],
    "from": "here",
}


@pytest.mark.parametrize("wire", [name for name in SAMPLE if name != "url"])
def test_each_argument_is_sent(sdk, make_family, wire):
    function = sdk.load(make_family(SampleParams)).send
    argument = "from_" if wire == "from" else wire
    assert sdk.call(function, SAMPLE["url"], **{argument: SAMPLE[wire]}) == "answer"
    assert sdk.sent == [("sample.send", {"url": SAMPLE["url"], wire: SAMPLE[wire]})]


def test_omitted_argument_is_not_sent(sdk, make_family):
    sdk.call(sdk.load(make_family(SampleParams)).send, "u")
    assert sdk.sent == [("sample.send", {"url": "u"})]


def test_argument_equal_to_its_default_is_sent(sdk, make_family):
    sdk.call(sdk.load(make_family(SampleParams)).send, "u", timeout=30.0, body=None)
    assert sdk.sent == [("sample.send", {"url": "u", "timeout": 30.0, "body": None})]


@pytest.mark.parametrize("fire_and_forget", [True, False])
def test_fire_and_forget_op_is_not_awaited(sdk, make_family, fire_and_forget):
    sdk.call(sdk.load(make_family(SampleParams, rest_of_op={"fire_and_forget": fire_and_forget})).send, "u")
    assert sdk.answered is not fire_and_forget


def test_missing_required_argument_is_a_type_error(sdk, make_family):
    with pytest.raises(TypeError, match="url"):
        sdk.call(sdk.load(make_family(SampleParams)).send)


def test_optional_argument_is_keyword_only(sdk, make_family):
    with pytest.raises(TypeError, match="positional"):
        sdk.call(sdk.load(make_family(SampleParams)).send, "u", "POST")


def test_signature_has_types_and_defaults(sdk, make_family):
    parameters = inspect.signature(sdk.load(make_family(SampleParams)).send).parameters
    assert parameters["method"].annotation == "Literal['GET', 'POST']"
    assert repr(parameters["method"].default) == "'GET'"
    assert repr(parameters["timeout"].default) == "30.0"
    assert repr(parameters["headers"].default) == "..."
    assert parameters["headers"].annotation == "dict[str, str]"
    assert parameters["body"].annotation == "bytes | None"
    assert parameters["inner"].annotation == "dict[str, Any] | None"
    assert parameters["anything"].annotation == "Any"


def test_signature_has_the_result_type(make_family):
    assert ") -> list[int]:" in render_family(make_family(SampleParams, result=list[int]))


def test_docstring_contains_doc_and_parameters(sdk, make_family):
    doc = sdk.load(make_family(SampleParams)).send.__doc__
    assert inspect.cleandoc(doc).startswith("Send a request.")
    assert "headers: Extra headers." in doc


HANDLER_DOC = (
    "Send.\n\nArgs:\n    params: the first\n        and second line\n    ctx: the dispatch\n\nReturns:\n    None.\n"
)


def test_docstring_arguments_are_replaced_by_those_of_the_function(sdk, make_family):
    doc = inspect.cleandoc(sdk.load(make_family(SampleParams, doc=HANDLER_DOC)).send.__doc__)
    assert doc == "Send.\n\nArgs:\n    headers: Extra headers.\n\nReturns:\n    None."


def test_docstring_arguments_without_descriptions_are_kept_except_ctx(sdk, make_family):
    doc = inspect.cleandoc(sdk.load(make_family(Inner, doc=HANDLER_DOC)).send.__doc__)
    assert doc == "Send.\n\nArgs:\n    params: the first\n        and second line\n\nReturns:\n    None."


def test_long_signature_has_one_line_per_argument(make_family):
    source = render_family(make_family(SampleParams))
    assert "\n    url: str,\n    *,\n    method: Literal['GET', 'POST'] = _default('GET'),\n" in source


def test_recursive_type_ends_in_any(make_family):
    assert "children: list[dict[str, Any]]" in render_family(make_family(Tree))


def test_parameter_without_a_json_schema_is_any(sdk, make_family):
    params = create_model("P", callback=(type(print) | None, ...), __config__={"arbitrary_types_allowed": True})
    sdk.call(sdk.load(make_family(params)).send, "x")
    assert sdk.sent == [("sample.send", {"callback": "x"})]


def test_keyword_as_op_name_gets_an_underscore(sdk, make_family):
    module = sdk.load(make_family(SampleParams, name="sample.import"))
    sdk.call(module.import_, "u")
    assert sdk.sent[0][0] == "sample.import"
    assert module.__all__ == ["import_"]


def test_builtin_as_op_name_does_not_affect_annotations(make_family):
    class Params(BaseModel):
        kind: Literal["list"] = "list"
        names: list[str] = []

    source = render_family(make_family(Params, name="sample.list", result=list[str]))
    assert "names: _builtins.list[str]" in source
    assert "-> _builtins.list[str]:" in source
    assert "kind: Literal['list'] = _default('list')" in source


@pytest.mark.parametrize("wire", ["content-type", "1st", "_given", "_dispatch", "__debug__", "from", "ß x", "", "__"])
def test_any_wire_name_has_an_argument(sdk, make_family, wire):
    params = create_model("P", field=(int, Field(default=0, alias=wire)))
    function = sdk.load(make_family(params)).send
    (argument,) = inspect.signature(function).parameters
    sdk.call(function, **{argument: 1})
    assert sdk.sent == [("sample.send", {wire: 1})]


def test_wire_names_with_the_same_identifier_are_distinct(sdk, make_family):
    params = create_model("P", a=(int, Field(0, alias="x-y")), b=(int, Field(0, alias="x_y")))
    sdk.call(sdk.load(make_family(params)).send, x_y=1, x_y_=2)
    assert sdk.sent == [("sample.send", {"x-y": 1, "x_y": 2})]


def test_extra_functions_are_added_and_override(tmp_path, make_family):
    path = tmp_path / "_sdk.py"
    path.write_text("__all__ = ['send', 'more']\nasync def send(): ...\nasync def more(): ...\nhidden = 1\n")
    source = render_family(make_family(SampleParams, sdk=path))
    assert source.rstrip().endswith("from sideband_sdk._sample_extra import more, send")
    assert "__all__ = ['more', 'send']" in source


def test_extra_module_without_all_exports_public_names(tmp_path, make_family):
    path = tmp_path / "_sdk.py"
    path.write_text("import json\nasync def more(): ...\nLIMIT = 3\n_private = 1\n")
    assert "import LIMIT, more" in render_family(make_family(SampleParams, sdk=path))


@pytest.mark.parametrize("text", ["def broken(", "__all__ = [name for name in ()]", "__all__ = ['a; import os']"])
def test_invalid_extra_module_names_the_family(tmp_path, make_family, text):
    path = tmp_path / "_sdk.py"
    path.write_text(text)
    with pytest.raises(SdkInvalid, match="`sample`"):
        render_family(make_family(SampleParams, sdk=path))


def test_extra_module_is_not_run(tmp_path, make_family):
    canary = tmp_path / "canary"
    path = tmp_path / "_sdk.py"
    path.write_text(f"open({str(canary)!r}, 'w')\ndef more(): ...\n")
    render_family(make_family(SampleParams, sdk=path))
    assert not canary.exists()


@given(doc=st.text())
@example('"""')
@example('\\"""')
@example("a\\")
@example("\\N")
@example('x"')
@example("'''\nimport os")
@example("\r")
@example("\x00")
@example("a\n\n  b\t\n")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50, deadline=None)
def test_docstring_cannot_inject_code(make_family, doc):
    tree = ast.parse(render_family(make_family(SampleParams, doc=doc)))
    (function,) = [node for node in tree.body if isinstance(node, ast.AsyncFunctionDef)]
    assert isinstance(function.body[0], ast.Expr)
    assert isinstance(function.body[0].value, ast.Constant)
    assert len(function.body) == 2


FIELD_TYPES = st.sampled_from([int, str, float, bool, bytes, list[int], dict[str, Any], int | None, Literal["a", 1]])
IDENTIFIERS = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True) | st.sampled_from(keyword.kwlist)
DEFAULTS = st.sampled_from([..., None, 1, "x", 1.5, float("inf"), True, [1], {"a": 1}, b"\xff"])


@given(fields=st.dictionaries(IDENTIFIERS, st.tuples(FIELD_TYPES, DEFAULTS), max_size=6), data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30, deadline=None)
def test_generated_function_sends_exactly_its_arguments(sdk, make_family, fields, data):
    definitions = {
        f"f{index}": (kind, Field(default, alias=name)) for index, (name, (kind, default)) in enumerate(fields.items())
    }
    params = create_model("P", **definitions)
    function = sdk.load(make_family(params)).send
    parameters = inspect.signature(function).parameters
    wires = {argument: argument.rstrip("_") if argument not in fields else argument for argument in parameters}
    required = [name for name, parameter in parameters.items() if parameter.default is parameter.empty]
    optional = [name for name in parameters if name not in required]
    chosen = [*required, *(data.draw(st.lists(st.sampled_from(optional), unique=True)) if optional else [])]
    values = {name: data.draw(st.integers() | st.none() | st.text()) for name in chosen}
    sdk.sent.clear()
    sdk.call(function, **values)
    expected = [("sample.send", {wires[name]: value for name, value in values.items()})]
    assert sdk.sent == expected


def test_family_without_ops_is_an_empty_module(sdk):
    assert sdk.load(OpFamily(name="empty", ops=())).__all__ == []
