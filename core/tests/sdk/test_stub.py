"""The stubs of generated modules, read by a type checker."""

import re
import subprocess
import sys
from typing import Annotated, Any, Generic, Literal, TypeVar

import pytest
from pydantic import BaseModel, ConfigDict, Field, create_model
from sideband.ops import OpFailed, OpFamily, op, stub_files, write_sdk
from typing_extensions import TypedDict

T = TypeVar("T")


class Row(BaseModel):
    """A row.

    It says "hello" to '''all''' and \\ ends with "x\""""

    number: int
    note: str = Field(default="", description="What it's about.")


class Tree(BaseModel):
    name: str
    children: list["Tree"] = []


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    name: str


class Page(BaseModel, Generic[T]):
    items: list[T]
    next: str | None = None


class Awkward(BaseModel):
    from_: int = Field(1, alias="from")
    content_type: str = Field("", alias="content-type")
    list_: list[int] = Field([], alias="list")
    str_: str = Field("", alias="str")


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")


class Plain(TypedDict, total=False):
    first: int
    second: str


class Answer(BaseModel):
    rows: list[Row]
    tree: Tree
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]
    pair: tuple[int, str]
    raw: bytes
    level: Literal["low", "high"]
    by_name: dict[str, Row]
    extra: Open
    plain: Plain
    page: Page[int]
    awkward: Awkward
    anything: Any


OtherRow = create_model("Row", label=(str, ...))


class PutParams(BaseModel):
    rows: list[Row]
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]
    awkward: Awkward | None = None
    tree: Tree | None = None
    mode: Literal["fast", "safe"] = "fast"
    size: float = 1
    data: bytes = b""
    class_: int = Field(0, alias="class")


class NoParams(BaseModel):
    pass


class Gone(OpFailed, LookupError):
    """It is gone."""

    code = "zoo.gone"
    details = ("place", "unknown")
    place: str | None


@op("zoo.get")
async def get(params: NoParams, ctx: Any) -> Answer:
    return Answer.model_construct()


@op("zoo.put")
async def put(params: PutParams, ctx: Any) -> list[OtherRow]:
    return []


@op("zoo.list")
async def list_(params: NoParams, ctx: Any) -> list[Tree]:
    return []


@op("zoo.import")
async def import_(params: NoParams, ctx: Any) -> None: ...


@op("zoo.tell", fire_and_forget=True)
async def tell(params: NoParams, ctx: Any) -> int:
    return 0


@op("zoo.hidden", internal=True)
async def hidden(params: NoParams, ctx: Any) -> int:
    return 0


FAMILY = OpFamily("zoo", (get, put, list_, import_, tell, hidden), errors=[Gone])

# A type checker reports exactly the marked lines.
SKILL = '''
from __future__ import annotations

import datetime
from typing import Annotated

from sideband.skill import FromHost, OpDenied, OpError, OpTimeout, capabilities, dispatch, now, random, tool, uuid, zoo


@tool
async def use(who: Annotated[str, FromHost("principal")]) -> int:
    """Use it."""
    answer: zoo.Answer = await zoo.get()
    number: int = answer["rows"][0]["number"]
    text: int = answer["rows"][0]["note"]  # error
    answer["rowss"]  # error
    leaf: str = answer["tree"]["children"][0]["children"][0]["name"]
    answer["tree"]["children"][0]["nam"]  # error
    lives: int = answer["pet"]["lives"] if answer["pet"]["kind"] == "cat" else 0
    name: str = answer["pet"]["name"]  # error
    raw: bytes = answer["raw"]
    level: str = answer["level"]
    if answer["level"] == "middle":  # error
        pass
    pair: list[int | str] = answer["pair"]
    label: str = answer["by_name"]["x"]["note"]
    free: int = answer["extra"]["anything"]
    first: int = answer["plain"]["first"]
    item: int = answer["page"]["items"][0]
    following: str | None = answer["page"]["next"]
    header: str = answer["awkward"]["content-type"]
    start: int = answer["awkward"]["from"]
    values: list[int] = answer["awkward"]["list"]
    any_value: datetime.date = answer["anything"]
    rows = await zoo.put([{"number": 1}], {"kind": "dog", "name": "Rex"}, mode="safe", size=2, data=b"x", class_=3)
    other: str = rows[0]["label"]
    rows[0]["number"]  # error
    await zoo.put(answer["rows"], answer["pet"])  # error
    await zoo.put([{"number": 1}, answer["rows"][0]], answer["pet"], tree=answer["tree"])
    await zoo.put([{"numbr": 1}], {"kind": "cat"})  # error
    await zoo.put([], {"kind": "cow"})  # error
    await zoo.put([], {"name": "Rex"})  # error
    await zoo.put([])  # error
    await zoo.put([], {"kind": "cat"}, "safe")  # error
    await zoo.put([], {"kind": "cat"}, mode="slow")  # error
    await zoo.put([], {"kind": "cat"}, data="text")  # error
    await zoo.put([], {"kind": "cat"}, awkward={"content-type": "x", "from": 2, "list": [1]})
    await zoo.put([], {"kind": "cat"}, awkward={"content_type": "x"})  # error
    options: zoo.PutOptions = {"mode": "safe"}
    await zoo.put([], {"kind": "cat"}, **options)
    trees = await zoo.list()
    deep: str = trees[0]["children"][0]["name"]
    await zoo.import_()
    nothing = await zoo.tell()  # error
    await zoo.hidden()  # error
    zoo.gett  # error
    try:
        await zoo.get()
    except zoo.Gone as error:
        place: str | None = error.place
        code: str = error.code
        error.plce  # error
    except (OpDenied, OpTimeout) as refused:
        hint: str = refused.hint
    except OpError as failed:
        failed.hnt  # error
    started: datetime.datetime = now()
    identifier: str = uuid()
    chance: float = random.random()
    rights: tuple[str, ...] = capabilities()
    await dispatch("zoo.get", {"a": 1}, answer=False)
    await dispatch(3)  # error
    return number


@tool(timeout="3")  # error
async def slow() -> int:
    return 1


@tool  # error
def blocking() -> int:
    return 1


wrong: str = use  # error
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A skill's folder with the generated modules and their stubs."""
    folder = tmp_path_factory.mktemp("typed")
    made = write_sdk(folder / "made", [FAMILY], {}) / "sideband_sdk"
    (folder / "sideband_sdk").mkdir()
    for file in made.iterdir():
        (folder / "sideband_sdk" / file.name).write_bytes(file.read_bytes())
    for name, text in stub_files([FAMILY]).items():
        (folder / "sideband_sdk" / name).write_text(text)
    (folder / "tools.py").write_text(SKILL)
    return folder


def test_type_checker_reports_exactly_the_wrong_lines(folder):
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", folder / "cache", "tools.py", "sideband_sdk"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    reported = set(re.findall(r"^(\S+?):(\d+): error: ", done.stdout, re.MULTILINE))
    lines = enumerate(SKILL.splitlines(), 1)
    assert reported == {("tools.py", str(number)) for number, line in lines if "# error" in line}, done.stdout


def test_module_names_the_types_of_the_stub_at_run_time(folder, import_folder):
    code = (
        "import sys, types\nskill = types.ModuleType('sideband.skill')\n"
        "skill.dispatch, skill.OpError = None, type('OpError', (Exception,), {})\n"
        "sys.modules['sideband.skill'] = skill\n"
        "from sideband_sdk import zoo\n"
        "print(isinstance({}, zoo.Answer), zoo.Row is zoo.PutOptions is dict, zoo.Gone.__bases__[1])"
    )
    done = import_folder(folder, code)
    assert done.stdout == "True True <class 'LookupError'>\n", done.stderr


def test_stubs_do_not_depend_on_the_order_of_families():
    other = OpFamily("abc", (op("abc.get")(get.handler),))
    assert stub_files([FAMILY, other]) == stub_files([other, FAMILY])


def test_stub_files_include_the_marker_of_typed_packages():
    assert {"__init__.pyi", "py.typed", "zoo.pyi"} == set(stub_files([FAMILY]))
