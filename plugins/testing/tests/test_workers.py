"""The fixture `worker`."""


def test_tool_runs_in_a_worker_with_exactly_the_given_rights(run_tests):
    result = run_tests(
        """
        from sideband.workers import GrantRequired

        SOURCE = '''
            import os
            from sideband.skill import crypto, tool

            @tool
            async def digest(data: str) -> list:
                return [os.getpid(), await crypto.hash(data)]

            @tool
            async def fail():
                print("before")
                raise ValueError("the reason")
        '''

        async def test_it(worker):
            import os

            folder = worker.skill("sums", SOURCE, capabilities="crypto")
            process, digest = await worker.call(folder, "digest", grants=["crypto"], data="abc")
            assert process != os.getpid()
            assert bytes(digest).hex().startswith("ba7816bf")
            assert [effect.op for effect in worker.result.effects] == ["crypto.hash"]

            with pytest.raises(Exception, match="crypto.hash"):
                await worker.call(folder, "digest", data="abc")

            other = worker.skill("another", SOURCE.replace("the reason", "another reason"))
            async with worker.open(folder, other):
                for one, reason in ((folder, "the reason"), (other, "another reason")):
                    with pytest.raises(Exception, match=reason):
                        await worker.call(one, "fail")
    """,
        backends=["asyncio", "trio"],
    )
    result.assert_outcomes(passed=2)


def test_worker_uses_the_given_plugins(run_tests):
    result = run_tests("""
        SOURCE = '''
            from sideband.skill import echo, tool

            @tool
            async def repeat(text: str) -> str:
                return await echo.say(text=text)
        '''

        async def test_it(worker):
            worker.use(ECHO, "loader.skills")
            folder = worker.skill("parrot", SOURCE, capabilities="echo")
            assert await worker.call(folder, "repeat", grants="echo", text="hi") == "hi"
    """)
    result.assert_outcomes(passed=1)


def test_problems_of_a_skill_are_reported_with_the_remedy(run_tests):
    result = run_tests(
        """
        async def test_folder(worker, tmp_path):
            await worker.call(tmp_path / "missing", "tool")

        async def test_manifest(worker):
            folder = worker.skill("sums", "")
            (folder / "SKILL.md").unlink()
            await worker.call(folder, "tool")

        async def test_loader(worker):
            worker.use(ECHO)
            await worker.call(worker.skill("sums", ""), "tool")

        async def test_tool(worker):
            await worker.call(worker.skill("sums", ""), "subtract")
        """,
    )
    result.assert_outcomes(failed=4)
    for line in (
        "*`worker`: `folder`: */missing is not the folder of a skill: pass the folder that contains SKILL.md",
        "*`worker`: `folder`: cannot load a skill from */sums: *contains no skill: *",
        "*no plugin that loads skills is used: pip install sideband-skills*",
        "*sums.subtract*",
    ):
        result.stdout.fnmatch_lines([line])
