"""The bodies of errors, in the format of each kind of server."""

import json


def openai(message, *, kind="invalid_request_error", code=None):
    return json.dumps({"error": {"message": message, "type": kind, "param": None, "code": code}})


def anthropic(kind, message):
    return json.dumps({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_011"})


def google(code, status, message, **detail):
    info = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", **detail}] if detail else []
    return json.dumps([{"error": {"code": code, "message": message, "status": status, "details": info}}], indent=1)


def openrouter(code, message, **metadata):
    return json.dumps({"error": {"message": message, "code": code, "metadata": metadata}, "user_id": "user_1"})


def llama(code, message, kind, **more):
    return json.dumps({"error": {"code": code, "message": message, "type": kind, **more}})


def vllm(code, message, kind="BadRequestError"):
    return json.dumps({"object": "error", "message": message, "type": kind, "param": None, "code": code})
