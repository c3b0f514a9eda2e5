"""Parameters of ops and tools that the host fills in: declared safely, and in no schema."""

from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict, Field
from sideband.loading import ToolSpec
from sideband.ops import FromHost, OpContext, OpFamily, OpSpec, Origin, op
from sideband.ops._sdk_render import render_family
from sideband.tools import Tool, tool


class Inner(BaseModel):
    author: Annotated[str, FromHost("principal")]


class Opaque:
    """A type without a JSON schema."""


class NoteParams(BaseModel):
    text: str = Field(description="The text.")
    author: Annotated[str, FromHost("principal"), Field(description="The author.")]
    session: Annotated[str | None, FromHost("session")] = None
    channel: Annotated[str | None, Field(description="The channel."), FromHost("channel")] = "default"
    mode: Annotated[str, FromHost("approval_mode")] = Field(default="", repr=False)


ALL = {"author": "principal", "session": "session", "channel": "channel", "mode": "approval_mode"}


def declare(model, kind=op):
    """Declare an op or a tool with these parameters."""

    async def run(params, ctx: OpContext) -> None:
        """Run."""

    run.__annotations__["params"] = model
    return kind("notes.write")(run)


def model(annotation, **settings):
    """Return a model with one parameter."""
    return type("Params", (BaseModel,), {"__annotations__": {"author": annotation}, "model_config": settings})


@pytest.mark.parametrize("kind", [op, tool])
def test_declared_parameters_know_their_values(kind):
    assert declare(NoteParams, kind).from_host == ALL


@pytest.mark.parametrize("kind", [op, tool])
def test_mark_that_is_a_default_is_refused_because_callers_could_set_the_parameter(kind):
    class Defaulting(BaseModel):
        author: str = FromHost("principal")

    with pytest.raises(TypeError, match=r"the mark of `author` is its default; write `Annotated\[…, FromHost"):
        declare(Defaulting, kind)


def test_spec_that_is_built_without_the_decorator_knows_them_too():
    async def run(params: NoteParams, ctx: OpContext) -> None: ...

    assert OpSpec(name="notes.write", handler=run, params=NoteParams, result=None).from_host == ALL


def test_parameters_of_the_host_are_in_no_schema():
    spec, its_tool = declare(NoteParams), declare(NoteParams, tool)
    for schema in (spec.params.model_json_schema(), its_tool.parameters, its_tool.schema.parameters):
        assert list(schema["properties"]) == ["text"]
        assert list(schema["required"]) == ["text"]
        assert "principal" not in str(schema)


def test_parameters_of_the_host_are_not_in_the_sdk():
    source = render_family(OpFamily(name="notes", ops=(declare(NoteParams),)))
    assert "text: str" in source
    assert not [name for name in ALL if name in source]


def test_parameters_of_the_host_are_not_in_the_sdk_of_an_op_without_a_json_schema():
    class Params(BaseModel):
        model_config = ConfigDict(arbitrary_types_allowed=True)

        thing: Opaque
        author: Annotated[str, FromHost("principal")]

    source = render_family(OpFamily(name="notes", ops=(declare(Params),)))
    assert "thing" in source
    assert "author" not in source


@pytest.mark.parametrize("kind", [op, tool])
@pytest.mark.parametrize(
    ("annotation", "problem"),
    [
        (Annotated[str, FromHost("user")], r"`author`: unknown host value 'user'"),
        (Annotated[str, FromHost("sesion")], r"`author`: unknown host value 'sesion' \(did you mean `session`\?\)"),
        (Annotated[str, FromHost("session")], r'write `author: Annotated\[str \| None, FromHost\("session"\)\]`'),
        (Annotated[str | None, FromHost("principal")], r'write `author: Annotated\[str, FromHost\("principal"\)\]`'),
        (Annotated[Any, FromHost("principal")], r'write `author: Annotated\[str, FromHost\("principal"\)\]`'),
        (Annotated[str, FromHost("principal"), Field(alias="by")], "must not have an alias"),
        (Annotated[str, FromHost("principal"), Field(validation_alias="by")], "must not have an alias"),
        (Annotated[str, FromHost("principal")] | None, "must mark a whole parameter of Params, not a part of one"),
        (list[Annotated[str, FromHost("principal")]], "must mark a whole parameter of Params, not a part of one"),
        (Inner, "must mark a whole parameter of Params, not a part of one"),
        (dict[str, list[Inner]], "must mark a whole parameter of Params, not a part of one"),
    ],
)
def test_parameter_that_a_caller_could_set_is_refused(kind, annotation, problem):
    with pytest.raises(TypeError, match=rf"(op|tool) `notes.write`: .*{problem}"):
        declare(model(annotation), kind)


def test_parameter_with_a_generated_alias_is_refused():
    with pytest.raises(TypeError, match="must not have an alias"):
        declare(model(Annotated[str, FromHost("principal")], alias_generator=str.upper))


@pytest.mark.parametrize("annotation", [Annotated[str, FromHost], Annotated[str, FromHost] | None])
def test_mark_without_a_value_is_refused(annotation):
    remedy = r'write `author: Annotated\[str, FromHost\("principal"\)\]`'
    with pytest.raises(TypeError, match=f"`author`: `FromHost` must name a value: {remedy}"):
        model(annotation)


def test_value_must_be_a_text():
    with pytest.raises(TypeError):
        FromHost(["principal"])


def test_tool_with_an_unknown_host_value_is_refused():
    known = declare(NoteParams, tool)
    with pytest.raises(ValueError, match=r"tool `notes\.add`: unknown host value 'user'"):
        ToolSpec("notes", "add", "tools.py", "Add.", {}, known.validate, from_host={"who": "user"})
    with pytest.raises(TypeError, match="tool `notes`: `who`: unknown host value 'user'"):
        Tool("notes", "Write.", {}, known.validate, known.run, from_host={"who": "user"})


def test_values_of_the_host_replace_those_of_the_caller():
    origin = Origin("ada", session="s1", channel="cli")
    sent = {"text": "hello", "author": "eve", "session": ["x"], "mode": None}
    assert declare(NoteParams, tool).filled(sent, origin) == {
        "text": "hello",
        "author": "ada",
        "session": "s1",
        "channel": "cli",
        "mode": "manual",
    }
    assert sent["author"] == "eve"


def test_tool_without_such_parameters_gets_the_arguments_as_they_are():
    class Params(BaseModel):
        text: str

    sent = {"text": "hello", "principal": "eve"}
    assert declare(Params, tool).filled(sent, Origin("ada")) is sent
