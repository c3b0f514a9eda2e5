"""A collector: an HTTP server on this machine that keeps the spans and metrics it gets by OTLP."""

import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


def value_of(value):
    """Return the value of an attribute."""
    kind = value.WhichOneof("value")
    found = getattr(value, kind)
    return [value_of(one) for one in found.values] if kind == "array_value" else found


def attributes_of(found):
    return {one.key: value_of(one.value) for one in found}


class Span:
    """A span as the collector got it."""

    def __init__(self, span, resource, scope):
        self.name = span.name
        self.trace, self.id, self.parent = span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex()
        self.start, self.end = span.start_time_unix_nano, span.end_time_unix_nano
        self.kind, self.failed = span.kind, span.status.code == 2
        self.message = span.status.message
        self.attributes = attributes_of(span.attributes)
        self.resource, self.scope = attributes_of(resource.attributes), scope.name
        self.events = list(span.events)

    def __repr__(self):
        return f"{self.name} {self.attributes}"


class Collector(ThreadingHTTPServer):
    """Use it with ``with``.

    Attributes:
        spans: the spans that have arrived.
        metrics: the data points that have arrived, by name: their attributes and values.
        raw: the bodies of all requests.
        headers: the headers of all requests.
        status: the status of its answers.
        answers: cleared to let requests wait.
        measured: set when metrics have arrived.
        held: the paths of the requests that wait then.
        refused: the paths of the requests that fail.
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.spans, self.metrics, self.raw, self.headers = [], {}, [], []
        self.status = 200
        self.answers = threading.Event()
        self.answers.set()
        self.held = "/v1/traces", "/v1/metrics"
        self.refused = ()
        self.arrived = threading.Event()
        self.measured = threading.Event()
        self._thread = threading.Thread(target=self.serve_forever, args=[0.05], daemon=True)

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.server_port}"

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.answers.set()
        self.shutdown()
        self._thread.join()
        self.server_close()

    def take(self, path, body):
        self.raw.append(body)
        if path == "/v1/traces":
            for group in ExportTraceServiceRequest.FromString(body).resource_spans:
                for scoped in group.scope_spans:
                    self.spans += [Span(span, group.resource, scoped.scope) for span in scoped.spans]
        elif path == "/v1/metrics":
            for group in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                for metric in (one for scoped in group.scope_metrics for one in scoped.metrics):
                    data = getattr(metric, metric.WhichOneof("data"))
                    self.metrics[metric.name] = [(attributes_of(one.attributes), one) for one in data.data_points]
            self.measured.set()

    def named(self, name):
        """Return the only span with this name."""
        (found,) = [span for span in self.spans if span.name == name]
        return found


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        self.server.arrived.set()
        if self.path in self.server.held:
            self.server.answers.wait(60)
        self.server.headers.append(dict(self.headers))
        status = 400 if self.path in self.server.refused else self.server.status
        if status == 200:
            self.server.take(self.path, body)
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass
