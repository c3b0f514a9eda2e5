"""The fixture `sideband_host`."""


def test_host_has_only_the_named_plugins_and_a_store(run_tests):
    result = run_tests(
        """
        async def test_it(sideband_host):
            async with sideband_host(ECHO) as host:
                assert await host.op("echo.say", {"text": "hi"}) == "hi"
                assert [record.label for record in host.plugins.records] == ["op.echo", "store.sqlite"]
    """,
        backends=["asyncio", "trio"],
    )
    result.assert_outcomes(passed=2)


def test_host_ignores_the_users_configuration_and_variables(run_tests, monkeypatch, tmp_path):
    monkeypatch.setenv("SIDEBAND_HOME", str(tmp_path / "own"))
    monkeypatch.setenv("SIDEBAND_POLICY__TIMEOUT", "7")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sideband.toml").write_text("[policy]\ntimeout = 8\n")
    result = run_tests("""
        import os

        async def test_it(sideband_host, tmp_path):
            host = sideband_host()
            assert host.settings.settings.policy.timeout == 60
            assert host.home == sideband_host.home == tmp_path / "home"
            assert [name for name in os.environ if name.startswith("SIDEBAND_")] == ["SIDEBAND_HOME"]
            assert os.environ["SIDEBAND_HOME"] == str(host.home)
    """)
    result.assert_outcomes(passed=1)


def test_host_left_open_fails_its_test_and_is_closed(run_tests):
    result = run_tests(
        """
        from contextlib import asynccontextmanager
        from types import SimpleNamespace

        hosts = []
        ended = []

        def numbered(number):
            @asynccontextmanager
            async def lifespan(ctx):
                yield
                ended.append(number)

            ops = {"sideband_ops": Echo.sideband_ops, "lifespan": lifespan}
            return Plugin("op", "echo", SimpleNamespace(**ops))

        async def test_it(sideband_host):
            ended.clear()
            for number in (1, 2):
                hosts.append(await sideband_host(numbered(number)).__aenter__())
                await hosts[-1].op("echo.say", {})

        async def test_after(sideband_host):
            assert ended == [2, 1]
            with pytest.raises(Exception, match="not open"):
                await hosts[-1].op("echo.say", {"text": "hi"})
    """,
        backends=["asyncio", "trio"],
    )
    result.assert_outcomes(passed=4, errors=2)
    result.stdout.fnmatch_lines(["*the test left hosts of `sideband_host` open*: open each with `async with*"])


def test_host_with_installed_plugins_has_one_store(run_tests):
    result = run_tests("""
        OTHER = '''
            from sideband.store import StoreSpec
            from sideband_store_sqlite import open_sqlite

            def sideband_stores():
                return [StoreSpec(name="other", open=open_sqlite)]
        '''

        async def test_it(make_plugin, sideband_host):
            other = make_plugin("store", "other", OTHER)
            for plugins, installed, store in (
                ((), False, "sqlite"), ((), True, "sqlite"), ((other.plugin,), False, "other"),
                ((other.plugin,), True, "other"),
            ):
                async with sideband_host(ECHO, *plugins, installed=installed) as host:
                    assert host.plugins.names("store") == (store,)
                    assert await host.op("echo.say", {"text": "hi"}) == "hi"
                    assert installed == ("crypto" in host.plugins.names("op"))
    """)
    result.assert_outcomes(passed=1)


def test_settings_of_the_test_are_combined_with_those_of_the_fixture(run_tests):
    result = run_tests("""
        async def test_it(sideband_host):
            policy = {"timeout": 5, "deny": {"op.crypto": "not here"}, "isolation": "no-namespaces"}
            async with sideband_host(ECHO, "op.crypto", settings={"policy": policy}) as host:
                assert host.settings.settings.policy.timeout == 5
                assert host.settings.settings.policy.isolation == "no-namespaces"
                assert host.plugins.names("op") == ("echo",)
            assert sideband_host().settings.settings.policy.isolation == "none"

        async def test_loaded(sideband_host):
            from sideband.settings import load_settings

            settings = load_settings(sideband_host.home, flags={"policy": {"timeout": 6}})
            async with sideband_host(ECHO, settings=settings) as host:
                assert host.settings.settings.policy.timeout == 6
    """)
    result.assert_outcomes(passed=2)


def test_secrets_are_not_stored_in_the_keyring_of_the_user(run_tests):
    result = run_tests(
        """
        async def test_it(sideband_host):
            async with sideband_host("op.secrets") as host:
                secret = {"name": "a", "value": "b" * 9, "origins": ["https://example.com"]}
                assert (await host.op("secrets.set", secret))["source"] == "encrypted"
                import keyring

                assert type(keyring.get_keyring()).__module__ == "keyring.backends.fail"
    """,
        alone=True,
    )  # the backend of a process is chosen once
    result.assert_outcomes(passed=1)


def test_keyring_of_the_user_is_neither_used_by_hosts_of_a_test_nor_replaced_by_them(run_tests):
    result = run_tests(
        """
        import os

        os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.null.Keyring"
        read = []

        async def store(host):
            secret = {"name": "a", "value": "b" * 9, "origins": ["https://example.com"]}
            return (await host.op("secrets.set", secret))["source"]

        def test_first_import(sideband_host):
            import keyring

            assert type(keyring.get_keyring()).__module__ == "keyring.backends.fail"

        def test_backend_of_the_process_is_not_that_of_the_test():
            import keyring
            from keyring.backend import KeyringBackend

            assert type(keyring.get_keyring()).__module__ == "keyring.backends.null"

            class Users(KeyringBackend):
                priority = 1

                def get_password(self, service, name):
                    read.append(name)

                set_password = delete_password = get_password

            Users.__module__ = "keyring.backends.SecretService"  # a supported one
            keyring.set_keyring(Users())

        async def test_host(sideband_host):
            import keyring

            async with sideband_host("op.secrets") as host:
                assert await store(host) == "encrypted"
            assert type(keyring.get_keyring()).__module__ == "keyring.backends.fail"

        async def test_factory_without_the_fixture(tmp_path, monkeypatch):
            from sideband_testing import HostFactory

            async with HostFactory(tmp_path, monkeypatch)("op.secrets") as host:
                assert await store(host) == "encrypted"

        def test_user_still_has_it():
            import keyring

            assert type(keyring.get_keyring()).__name__ == "Users"
            assert read == []
    """,
        alone=True,
    )
    result.assert_outcomes(passed=5)


def test_keys_of_the_user_in_variables_are_used_only_to_record(run_tests):
    test = """
        import os

        @pytest.fixture(autouse=True)
        def user(monkeypatch):
            monkeypatch.setenv("ACME_API_KEY", "of-the-user")
            monkeypatch.setenv("ACME_MONKEY", "a-monkey")

        @pytest.fixture
        def known(user, sideband_host):
            return os.environ.get("ACME_API_KEY")

        def test_it(known, monkeypatch):
            assert known is None
            assert os.environ["ACME_MONKEY"] == "a-monkey"

        def test_to_record(known):
            assert known == "of-the-user"
    """
    run_tests(test).assert_outcomes(passed=1, failed=1)
    run_tests(test, "--sideband-record=missing").assert_outcomes(passed=1, failed=1)


def test_invalid_arguments_are_reported_with_the_remedy(run_tests):
    result = run_tests("""
        from sideband.settings import load_settings
        from sideband_testing import ArgumentInvalid

        @pytest.mark.parametrize(("call", "message"), [
            (lambda make: make("op.crypt"), r"`plugins\\[0\\]`: no plugin `op.crypt` .*did you mean `op.crypto`"),
            (lambda make: make(ECHO, "crypto"), r"`plugins\\[1\\]`: .*: write `op.crypto`"),
            (lambda make: make(7), r"`plugins\\[0\\]`: expected a plugin or a text, got a int: write `Plugin"),
            (lambda make: make(plugins=[ECHO]), "`plugins`: .*: pass them one by one"),
            (lambda make: make(autoload=True), "`autoload`: .*: use `installed=True`"),
            (lambda make: make("op.crypto", settings={"policy": {"only": []}}), "`settings`: `policy.only` .*: name"),
            (lambda make: make("op.crypto", settings=load_settings(make.home)), "`settings`: .*: pass nested tables"),
        ])
        def test_it(sideband_host, call, message):
            with pytest.raises(ArgumentInvalid, match=message) as caught:
                call(sideband_host)
            assert caught.value.code == "testing.argument"
    """)
    result.assert_outcomes(passed=7)
