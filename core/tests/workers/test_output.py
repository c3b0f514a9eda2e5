"""The output of skills: attribution to calls, and limits."""

import pytest

pytestmark = pytest.mark.anyio

both_backends = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])


@both_backends
async def test_concurrent_calls_get_their_own_lines(make_skill, make_pool, gather):
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


async def test_logging_and_warnings_are_captured(make_skill, make_pool):
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


async def test_output_that_bypasses_the_runtime_is_attributed_to_the_worker(make_skill, make_pool, until):
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


async def test_line_is_complete_up_to_the_limit_and_omitted_beyond_it(make_skill, make_pool):
    """Lines are never truncated, because a truncated secret would not be redacted."""
    skill = make_skill("""
        async def one():
            print("x" * 65_536)
            print("y" * 65_536, end="")
            print("s", "e", "c", "r", "e", "t", sep="")
            print("z" * 70_000, end="")
    """)
    async with make_pool() as pool:
        await pool.call(skill.call("one"))
    assert skill.output("stdout") == [
        "x" * 65_536,
        "[line of 65,542 characters omitted]",
        "[line of 70,000 characters omitted]",
    ]


async def test_raw_line_is_complete_up_to_the_limit_and_omitted_beyond_it(make_skill, make_pool, until):
    skill = make_skill("""
        async def one():
            os.set_blocking(1, True)
            os.write(1, b"x" * 65_536 + b"\\n")
            for _ in range(70_000 // 7):
                os.write(1, b"y" * 7)
            os.write(1, b"\\nafter\\n")
            await echo.pause()
    """)

    async def pause(op, params):
        await until(lambda: len(skill.logged) >= 3)

    async with make_pool() as pool:
        await pool.call(skill.call("one", handler=pause))
    assert skill.output("worker.stdout") == ["x" * 65_536, "[line of 70,000 characters omitted]", "after"]


async def test_long_log_message_is_omitted(make_skill, make_pool):
    skill = make_skill("""
        import json

        async def one():
            text = json.dumps({"__type__": "log", "__id__": "mine", "stream": "stdout", "text": "x" * 100_000})
            os.set_blocking(3, True)
            os.write(3, text.encode() + b"\\n")
    """)
    async with make_pool() as pool:
        await pool.call(skill.call("one", id="mine"))
    assert skill.output("stdout") == ["[line of 100,000 characters omitted]"]


async def test_lines_beyond_the_limit_are_dropped_and_counted(make_skill, make_pool):
    skill = make_skill("""
        async def one():
            for n in range(10_500):
                print(n)
                if not n % 100:
                    await echo.pause()
    """)
    async with make_pool() as pool:
        await pool.call(skill.call("one"))
    assert skill.output("stdout") == [str(n) for n in range(9_999)]
    assert skill.output("stderr") == ["[501 more lines dropped]"]
    assert not skill.output("note")


async def test_each_call_has_its_own_output_limit(make_skill, make_pool):
    skill = make_skill("""
        async def one():
            for n in range(6_000):
                print(n)
                if not n % 100:
                    await echo.pause()
    """)
    async with make_pool() as pool:
        await pool.call(skill.call("one"))
        await pool.call(skill.call("one"))
    assert len(skill.output("stdout")) == 12_000


@both_backends
async def test_log_messages_beyond_the_hosts_limit_are_dropped_and_counted(make_skill, make_pool):
    skill = make_skill("""
        async def one():
            line = b'{"__type__":"log","__id__":"mine","stream":"stdout","text":"x"}\\n'
            os.set_blocking(3, True)
            for _ in range(10_500):
                os.write(3, line)
    """)
    async with make_pool() as pool:
        await pool.call(skill.call("one", id="mine"))
    assert len(skill.output("stdout")) == 10_000
    assert skill.output("note") == ["500 more lines dropped"]


async def test_lone_surrogates_in_print_are_escaped(make_skill, make_pool):
    skill = make_skill("async def one():\n    print('\\ud800')")
    async with make_pool() as pool:
        await pool.call(skill.call("one"))
    assert skill.output("stdout") == ["\\ud800"]
