"""Run Canaille, an authorization server of another maker, on a free port of this machine.

It prints its address and ends with its standard input. Its users are `person`, and
`other`, who has never given an access: the server remembers that. Their password is `correct horse`.
"""

import logging
import os
import secrets
import sys
import threading

from canaille import create_app
from canaille.app import models
from canaille.backends import Backend
from canaille.oidc import provider
from werkzeug.serving import make_server

USERS, PASSWORD = ("person", "other"), "correct horse"


def main():
    # Its own tokens of one second are equal, so that a revoked one can be confused with a new one.
    provider.generate_access_token = lambda *_, **__: secrets.token_urlsafe(32)
    server = make_server("127.0.0.1", 0, _no_app, threaded=True)
    address = f"127.0.0.1:{server.port}"
    server.app = create_app(
        {
            "SECRET_KEY": os.urandom(32).hex(),
            "SERVER_NAME": address,
            "PREFERRED_URL_SCHEME": "http",
            "OAUTH2_REFRESH_TOKEN_GENERATOR": True,
            "CANAILLE": {"DATABASE": "memory", "LOGGING": None, "TIMEZONE": "UTC", "JAVASCRIPT": False},
            "CANAILLE_OIDC": {"DYNAMIC_CLIENT_REGISTRATION_OPEN": True, "REQUIRE_NONCE": False},
        }
    )
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    with server.app.app_context():
        for name in USERS:
            person = models.User(user_name=name, password=PASSWORD, family_name=name, emails=[f"{name}@things.test"])
            Backend.instance.save(person)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://{address}", flush=True)
    sys.stdin.read()


def _no_app(environ, start_response):
    raise RuntimeError("not started yet")


main()
