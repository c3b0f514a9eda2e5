"""Hosts that share a store on PostgreSQL are killed, and the server crashes, at random moments."""


def test_no_effect_happens_twice_and_no_entry_is_lost_through_kills_of_hosts_and_crashes_of_the_server(
    shared_stores, tmp_path, own_server, schema
):
    table = {"address": own_server.address, "schema": schema, "grace_seconds": 0.5, "wait_seconds": 10}
    modes = ("immediate", "fast")
    shared_stores.storm(tmp_path, "postgres", table, lambda number: own_server.restart(modes[number % 2]))
