"""What skills print: whose it is, and how much of it is kept."""

import pytest

pytestmark = pytest.mark.anyio


async def test_each_call_gets_its_own_lines_whoever_prints_them(make_skill, make_pool, gather):
    skill = make_skill("""
        async def speak(name):
            print(name, "prints")
            print(name, end=" ")
            await echo.pause()
            print("goes on")
            await asyncio.to_thread(print, name, "in a thread")
            thread = threading.Thread(target=print, args=(name, "in a plain thread"))
            thread.start()
            thread.join()
            await asyncio.create_task(child(name))
            print(name, "complains", file=sys.stderr)
            sys.stdout.buffer.write(name.encode() + b" in bytes\\n")
            print(name, "leaves a line open", end="")

        async def child(name):
            print(name, "in a child")
    """)
    async with make_pool() as pool:
        calls = [skill.call("speak", id=name, arguments={"name": name}) for name in ("a", "b")]
        await gather(*map(pool.call, calls))
    for name in ("a", "b"):
        lines = [line.text for call, line in skill.logged if call == name and line.stream == "stdout"]
        assert lines == [
            f"{name} prints",
            f"{name} goes on",
            f"{name} in a thread",
            f"{name} in a plain thread",
            f"{name} in a child",
            f"{name} in bytes",
            f"{name} leaves a line open",
        ]
        assert [line.text for call, line in skill.logged if call == name and line.stream == "stderr"] == [
            f"{name} complains"
        ]


async def test_logging_and_warnings_are_captured_too(make_skill, make_pool):
    skill = make_skill("""
        import logging, warnings

        async def one():
            logging.warning("logged")
            warnings.warn("warned")
    """)
    async with make_pool() as pool:
        await pool.call(skill.call("one"))
    text = "\n".join(skill.output("stderr"))
    assert "WARNING:root:logged" in text
    assert "UserWarning: warned" in text


async def test_what_is_written_past_the_runtime_is_the_workers(make_skill, make_pool, until):
    skill = make_skill("""
        async def one():
            os.write(1, b"raw \\xff output\\n")
            os.write(2, b"raw error\\nunfinished")
            await echo.pause()
    """)

    async def pause(op, params):
        await until(lambda: len(skill.logged) >= 2)

    async with make_pool() as pool:
        await pool.call(skill.call("one", handler=pause))
    assert skill.output("worker.stdout") == ["raw \ufffd output"]
    assert skill.output("worker.stderr") == ["raw error"]


async def test_a_long_line_is_cut_into_several(make_skill, make_pool):
    skill = make_skill("async def one():\n    print('x' * 20_000)")
    async with make_pool() as pool:
        await pool.call(skill.call("one"))
    assert [len(text) for text in skill.output("stdout")] == [8192, 8192, 3616]


async def test_a_flood_of_lines_is_counted_and_declared(make_skill, make_pool):
    skill = make_skill("""
        async def one():
            for n in range(10_500):
                print(n)
                if not n % 100:
                    await asyncio.sleep(0)
    """)
    async with make_pool() as pool:
        await pool.call(skill.call("one"))
    kept = len(skill.output("stdout"))
    (note,) = skill.output("note")
    assert kept == 10_000
    assert note.endswith("more lines were dropped")


async def test_lone_surrogates_in_print_are_escaped(make_skill, make_pool):
    skill = make_skill("async def one():\n    print('\\ud800')")
    async with make_pool() as pool:
        await pool.call(skill.call("one"))
    assert skill.output("stdout") == ["\\ud800"]
