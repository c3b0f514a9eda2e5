"""A server with an OpenAI-compatible API, as Ollama and others have it: a list of models, and one answer."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class ModelServer(ThreadingHTTPServer):
    """Serves models.

    Args:
        models: their names.
        key: the key that requests must have; any without one.
    """

    daemon_threads = True

    def __init__(self, models, key=""):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.models, self.key, self.used = models, key, []
        self._thread = threading.Thread(target=self.serve_forever, args=[0.05])
        self._thread.start()

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server_port}/v1"

    def close(self):
        self.shutdown()
        self._thread.join()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self._answer({"object": "list", "data": [{"id": name, "object": "model"} for name in self.server.models]})

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.used.append(request["model"])
        message = {"role": "assistant", "content": "Hello from here."}
        self._answer({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})

    def _answer(self, data):
        refused = self.server.key and self.headers.get("authorization") != f"Bearer {self.server.key}"
        body = json.dumps({"error": {"message": "wrong key"}} if refused else data).encode()
        self.send_response(401 if refused else 200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass
