"""Hosts that share a store on Redis are killed, and the server crashes, at random moments."""


def test_no_effect_happens_twice_and_no_entry_is_lost_through_kills_of_hosts_and_crashes_of_the_server(
    shared_stores, tmp_path, own_server, prefix
):
    limits = {"lost_seconds": 2, "transaction_seconds": 1, "grace_seconds": 0.5, "wait_seconds": 10}
    table = {"address": own_server.address, "prefix": prefix, **limits}
    shared_stores.storm(tmp_path, "redis", table, lambda _: own_server.restart())
