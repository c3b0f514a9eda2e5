"""The command line of two machines that share a store, which one line of configuration chooses."""

import pytest


@pytest.fixture
def machines(shared_stores, server, schema, tmp_path):
    settings = {"ADDRESS": server.address, "SCHEMA": schema}
    variables = {f"SIDEBAND_PLUGINS__POSTGRES__{name}": value for name, value in settings.items()}
    return shared_stores.Machines(tmp_path, variables)


def test_one_line_of_configuration_lets_machines_share_sessions_and_read_all_ledgers(shared_stores, machines):
    shared_stores.check_sessions_and_ledgers(machines)


def test_request_of_one_machine_is_approved_on_another(shared_stores, machines, tmp_path):
    shared_stores.check_approvals(machines, tmp_path)
