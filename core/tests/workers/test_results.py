"""Results that are not JSON data: what a worker converts, and how it refuses the rest."""

import re
from pathlib import Path

import attrs
import numpy as np
import pytest
from sideband.workers import SkillFailed, SkillRefused

pytestmark = pytest.mark.anyio

TOOLS = """
    import collections, dataclasses, datetime, decimal, enum, pathlib, types, uuid
    from attrs import define
    from pydantic import BaseModel, field_serializer

    class Color(enum.Enum):
        RED = "red"

    @dataclasses.dataclass
    class Point:
        x: int
        labels: object = ()
        kind: dataclasses.InitVar[int] = 0

    @define
    class Size:
        width: int

    class Model(BaseModel):
        when: datetime.datetime
        tags: set[int]
        secret: str = ""

        @field_serializer("secret")
        def hide(self, value):
            return "hidden"

    class Odd:
        def to_dict(self):
            return {}

    class Broken(BaseModel):
        x: int = 1

        @field_serializer("x")
        def fail(self, value):
            raise ZeroDivisionError

    def nested(levels):
        return Point(1, nested(levels - 1)) if levels else 1

    def endless():
        point = Point(1)
        point.labels = point
        return point

    async def one(expression):
        return eval(expression, globals())

    async def send(expression):
        return await echo.get(value=eval(expression, globals()))

    async def numbers(expression):
        import numpy as np
        import pandas as pd
        return eval(expression, globals() | locals())
"""


@pytest.fixture
async def results(make_skill, make_pool):
    """Return a function that evaluates expressions in one worker, and maps each to its result or refusal."""
    skill = make_skill(TOOLS)

    async def evaluate(function, expressions):
        found = {}
        async with make_pool() as pool:
            for expression in expressions:
                call = skill.call(function, arguments={"expression": expression})
                launch = attrs.evolve(call.launch, packages=Path(np.__file__).parents[1])
                try:
                    found[expression] = (await pool.call(attrs.evolve(call, launch=launch))).value
                except SkillRefused as refusal:
                    found[expression] = refusal.message
        return found

    return evaluate


CONVERTED = {
    "{3, 1, 2}": [1, 2, 3],
    "frozenset({'a'})": ["a"],
    "{'rows': {1}}": {"rows": [1]},
    "decimal.Decimal('1.50')": "1.50",
    "datetime.datetime(2025, 1, 2, tzinfo=datetime.timezone.utc)": "2025-01-02T00:00:00+00:00",
    "[datetime.date(2025, 1, 2)]": ["2025-01-02"],
    "datetime.time(1, 2)": "01:02:00",
    "{datetime.date(2025, 1, 2): 1}": {"2025-01-02": 1},
    "Point(1, {'inner': [Point(2)]})": {"x": 1, "labels": {"inner": [{"x": 2, "labels": []}]}},
    "Size(3)": {"width": 3},
    "Model(when='2025-01-02T00:00:00', tags=[1], secret='x')": {
        "when": "2025-01-02T00:00:00",
        "tags": [1],
        "secret": "hidden",
    },
    "[Color.RED, {Color.RED: 1}]": ["red", {"red": 1}],
    "uuid.UUID(int=1)": "00000000-0000-0000-0000-000000000001",
    "pathlib.PurePosixPath('/a')": "/a",
    "range(3)": [0, 1, 2],
    "collections.deque([1])": [1],
    "{'a': 1}.keys()": ["a"],
    "types.MappingProxyType({'a': {1}})": {"a": [1]},
}


async def test_values_of_the_standard_library_and_models_are_converted(results):
    assert await results("one", CONVERTED) == CONVERTED


REFUSED = {
    "{'rows': [{'price': float('nan')}]}": r"`rows\[0\].price` is NaN, .*; replace it with `None`",
    "{'a b': float('inf')}": r'`\["a b"\]` is infinite, .*; replace it',
    "{float('nan'): 1}": "a key is NaN",
    "[decimal.Decimal('NaN')]": r"`\[0\]` is NaN, .*; replace it",
    "['\\ud800']": r"`\[0\]` has a lone surrogate",
    "[10**5000]": r"`\[0\]` is an integer with thousands of digits; return it as text",
    "{1: {2}, '1': 3}": 'it has two keys that are "1" as text; rename one',
    "{'a': {(1, 2): 3}}": "`a` has a key of type `tuple`; use text as keys",
    "datetime.timedelta(1)": r"is of type `datetime.timedelta`, .*; return its `total_seconds\(\)`",
    "1j": "is of type `complex`, .*; return its real and imaginary parts",
    "Point": "is of type `type`",
    "iter([1])": "is of type `list_iterator`, .*; return a list of its items",
    "[one('1')]": "is of type `coroutine`, which was not awaited; add `await`",
    "Odd()": r"is of type `tools.Odd`, .*; return its `to_dict\(\)`",
    "object()": "is of type `object`, .*; return text, numbers, lists and dicts",
    "range(10**9)": "it has too many values",
    "[set(range(200_000)), set(range(100_000))]": r"`\[1\]` has too many values",
    "[[{1}] * 1_000] * 1_000": "has too many values",
    "endless()": "nested deeper than 64 levels",
    "nested(70)": "nested deeper than 64 levels",
    "{'x' * 10**6: float('nan')}": r"`\[a key of 1,000,000 characters\]` is NaN",
    "type('x' * 10**6, (), {})()": "characters omitted",
    "type('T', (), {'__module__': '\\ud800'})()": "is of type",
    "{Color.RED: 1, '__type__': {2}}": "the reserved key `__type__`",
    "types.MappingProxyType({'__type__': 1})": "the reserved key `__type__`",
}


async def test_refusal_names_the_value_and_the_remedy(results):
    found = await results("one", REFUSED)
    wrong = {source: str(found[source])[:500] for source in REFUSED if not matches(REFUSED[source], found[source])}
    assert wrong == {}


def matches(pattern, refusal):
    return isinstance(refusal, str) and "skill.one: " in refusal and re.search(pattern, refusal)


async def test_error_of_a_conversion_is_that_of_the_skill(results):
    with pytest.raises(SkillFailed, match="ZeroDivisionError"):
        await results("one", ["Broken()"])


async def test_parameters_of_an_op_are_converted_or_refused_with_their_names(results):
    with pytest.raises(SkillFailed, match=r"cannot send the parameters of echo\.get: `value\[0\]` is NaN"):
        await results("send", ["[float('nan')]"])
    sent = {"{2}": {"value": [2]}, "[Point(1)]": {"value": [{"x": 1, "labels": []}]}}
    assert await results("send", sent) == sent


NUMBERS = {
    "np.int64(3)": 3,
    "[np.float32(0.5), np.bool_(True), np.longdouble(1.5), np.str_('x')]": [0.5, True, 1.5, "x"],
    "np.array([[1, 2], [3, 4]])": [[1, 2], [3, 4]],
    "np.array(5)": 5,
    "np.array(['a'])": ["a"],
    "np.array([1, None, {2}], dtype=object)": [1, None, [2]],
    "np.datetime64('2025-01-01')": "2025-01-01",
    "np.array(['2025-01-01'], dtype='M8[ns]')": ["2025-01-01T00:00:00.000000000"],
    "np.array([(1, 2.5)], dtype=[('a', 'i4'), ('b', 'f8')])": [{"a": 1, "b": 2.5}],
    "np.ma.array([1, 2], mask=[0, 1])": [1, None],
    "{np.int64(1): np.int64(2)}": {"1": 2},
    "pd.Timestamp('2025-01-01', tz='UTC')": "2025-01-01T00:00:00+00:00",
    "[pd.Index([1]), pd.Categorical(['a']), pd.array([1])]": [[1], ["a"], [1]],
    "pd.DataFrame({'a': [1], 'd': pd.to_datetime(['2025-01-01'])}).to_dict('records')": [
        {"a": 1, "d": "2025-01-01T00:00:00"}
    ],
}

REFUSED_NUMBERS = {
    "{'means': np.array([1.5, np.nan])}": r"`means\[1\]` is NaN, .*; replace it with `None`",
    "np.datetime64('NaT')": "a missing value; replace it with `None`",
    "[pd.NaT]": r"`\[0\]` is `pandas.*NaTType`, a missing value",
    "pd.array([1, None])": r"`\[1\]` is `pandas.*NAType`, a missing value",
    "np.timedelta64(1, 's')": "return a number of seconds",
    "np.array([1j])": "return its real and imaginary parts",
    "np.zeros((1000, 1000))": "it has too many values: an array of 1,000,000, but a message has at most 250,000",
    # Converting them would take more memory than a worker may use.
    "np.broadcast_to(1, (10**5, 10**5))": "an array of 10,000,000,000",
    "np.broadcast_to(np.array('x' * 10**6), (200_000,))": "an array of 200,000",
    "[np.zeros(200_000)] * 1000": r"`\[1\]` has too many values",
    "pd.RangeIndex(10**9)": "an array of 1,000,000,000",
    "pd.DataFrame({'a': [1]})": r'return its `to_dict\("records"\)`',
    "pd.Series([1])": r"return its `tolist\(\)`, or its `to_dict\(\)` to keep the index",
}


async def test_values_of_numpy_and_pandas_are_converted_or_refused_before_large_ones_are_built(results):
    found = await results("numbers", {**NUMBERS, **REFUSED_NUMBERS})
    assert {source: found[source] for source in NUMBERS} == NUMBERS
    wrong = {
        source: found[source] for source, remedy in REFUSED_NUMBERS.items() if not re.search(remedy, found[source])
    }
    assert wrong == {}


async def test_packages_of_results_are_not_imported(make_skill, make_pool):
    skill = make_skill("""
        async def one():
            return sorted({name.partition(".")[0] for name in sys.modules} & {"numpy", "pandas", "decimal", "pydantic"})
        async def convert():
            return {os}
    """)
    async with make_pool() as pool:
        with pytest.raises(SkillRefused, match="is of type `module`"):
            await pool.call(skill.call("convert"))
        assert (await pool.call(skill.call("one"))).value == []
