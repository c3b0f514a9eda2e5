import pytest

pytestmark = pytest.mark.anyio

TEXT = "".join(f"line {number}: value={number * number}\n" for number in range(1_000))


@pytest.fixture
async def read(call, ctx):
    ctx.outputs["h"] = TEXT

    async def part(**arguments):
        return await call("output", handle="h", **arguments)

    return part


async def test_a_part_says_where_it_stands_and_how_to_go_on(read):
    head, _, text = (await read(limit=100)).partition("\n")
    assert text == TEXT[:100]
    assert head == f"[characters 0 to 100 of {len(TEXT):,}; go on with offset 100]"


async def test_the_parts_make_the_whole(read):
    whole, offset = "", 0
    while offset < len(TEXT):
        whole += (await read(offset=offset, limit=7_000)).partition("\n")[2]
        offset += 7_000
    assert whole == TEXT


async def test_the_last_part_says_so(read):
    assert ", its end]" in await read(offset=len(TEXT) - 10)


async def test_beyond_the_end_there_is_nothing(read):
    assert "there is nothing" in await read(offset=10**9)


async def test_a_search_names_the_place_of_each_match(read):
    answer = await read(pattern="LINE 123: *=15129")
    (place,) = [line for line in answer.splitlines() if not line.startswith("[")]
    offset, _, text = place.partition(": ")
    assert text == "line 123: value=15129"
    assert TEXT[int(offset) :].startswith("line 123:")


async def test_a_search_goes_on_where_it_ended(read):
    first = await read(pattern="value=")
    offset = int(first.split("go on with offset ")[1].partition("]")[0])
    second = await read(pattern="value=", offset=offset)
    assert first.count("\n") == second.count("\n") == 30
    assert f"\n{offset}: " in second
    assert f"\n{offset}: " not in first


async def test_what_is_not_there_is_told(read):
    assert "is not in" in await read(pattern="nothing*like this")


async def test_an_unknown_handle_is_an_error(call):
    with pytest.raises(LookupError):
        await call("output", handle="other")


@pytest.mark.parametrize("arguments", [{"limit": 10**6}, {"offset": -1}, {"pattern": ""}, {"pattern": "x" * 201}])
async def test_a_part_without_bounds_is_refused(read, arguments):
    with pytest.raises(ValueError, match=next(iter(arguments))):
        await read(**arguments)
