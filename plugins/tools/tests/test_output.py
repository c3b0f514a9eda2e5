import pytest

pytestmark = pytest.mark.anyio

TEXT = "".join(f"line {number}: value={number * number}\n" for number in range(1_000))


@pytest.fixture
async def read(call, ctx):
    ctx.outputs["h"] = TEXT

    async def part(**arguments):
        return await call("output", handle="h", **arguments)

    return part


async def test_part_names_its_position_and_the_next_offset(read):
    head, _, text = (await read(limit=100)).partition("\n")
    assert text == TEXT[:100]
    assert head == f"[characters 0 to 100 of {len(TEXT):,}; continue with offset 100]"


async def test_parts_make_up_the_whole(read):
    whole, offset = "", 0
    while offset < len(TEXT):
        whole += (await read(offset=offset, limit=7_000)).partition("\n")[2]
        offset += 7_000
    assert whole == TEXT


async def test_last_part_is_marked(read):
    assert ", the end]" in await read(offset=len(TEXT) - 10)


async def test_offset_beyond_the_end_is_reported(read):
    assert "beyond the end" in await read(offset=10**9)


async def test_search_returns_the_offset_of_each_match(read):
    answer = await read(pattern="LINE 123: *=15129")
    (place,) = [line for line in answer.splitlines() if not line.startswith("[")]
    offset, _, text = place.partition(": ")
    assert text == "line 123: value=15129"
    assert TEXT[int(offset) :].startswith("line 123:")


async def test_search_continues_at_an_offset(read):
    first = await read(pattern="value=")
    offset = int(first.split("continue with offset ")[1].partition("]")[0])
    second = await read(pattern="value=", offset=offset)
    assert first.count("\n") == second.count("\n") == 30
    assert f"\n{offset}: " in second
    assert f"\n{offset}: " not in first


async def test_missing_match_is_reported(read):
    assert "no match for" in await read(pattern="nothing*like this")


async def test_unknown_handle_is_an_error(call):
    with pytest.raises(LookupError):
        await call("output", handle="other")


@pytest.mark.parametrize("arguments", [{"limit": 10**6}, {"offset": -1}, {"pattern": ""}, {"pattern": "x" * 201}])
async def test_invalid_bounds_are_rejected(read, arguments):
    with pytest.raises(ValueError, match=next(iter(arguments))):
        await read(**arguments)
