"""A collector: a process on loopback that takes OTLP over HTTP, decodes it and writes each span as a line."""

import http.server
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue


class Got(NamedTuple):
    """One span as it came."""

    name: str
    trace: str
    id: str
    parent: str
    start: int  # milliseconds
    end: int
    kind: int
    error: str
    values: dict[str, Any]
    events: list[tuple[str, int, dict[str, Any]]]
    service: str


class Collector(NamedTuple):
    """A collector that runs, and what it got so far."""

    url: str
    file: Path

    @property
    def spans(self) -> list[Got]:
        lines = self.file.read_text().splitlines()
        return [Got(*json.loads(line)) for line in lines]

    @property
    def env(self) -> dict[str, str]:
        return {"OTEL_EXPORTER_OTLP_ENDPOINT": self.url}


@contextmanager
def collector(folder: Path) -> Iterator[Collector]:
    """One that listens until the test is over."""
    file = folder / "spans.jsonl"
    file.touch()
    process = subprocess.Popen(
        [sys.executable, __file__, str(file)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield Collector(f"http://127.0.0.1:{process.stdout.readline().strip()}", file)
    finally:
        process.kill()
        process.communicate()


def _value(value: AnyValue) -> object:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(item) for item in value.array_value.values]
    return getattr(value, kind or "string_value")


def _values(pairs: "Iterator[KeyValue]") -> dict[str, object]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _spans(content: bytes) -> Iterator[list[object]]:
    request = ExportTraceServiceRequest()
    request.ParseFromString(content)
    for group in request.resource_spans:
        service = str(_values(iter(group.resource.attributes)).get("service.name"))
        for scope in group.scope_spans:
            for span in scope.spans:
                yield [
                    span.name,
                    span.trace_id.hex(),
                    span.span_id.hex(),
                    span.parent_span_id.hex(),
                    span.start_time_unix_nano // 1_000_000,
                    span.end_time_unix_nano // 1_000_000,
                    span.kind,
                    span.status.message if span.status.code == 2 else "",
                    _values(iter(span.attributes)),
                    [
                        [e.name, e.time_unix_nano // 1_000_000, _values(iter(e.attributes))]
                        for e in span.events
                    ],
                    service,
                ]


def serve(path: str) -> None:
    """Take spans for ever."""

    class Taking(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["content-length"]))
            assert self.path == "/v1/traces", self.path
            with Path(path).open("a") as file:
                file.writelines(json.dumps(span) + "\n" for span in _spans(content))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(ExportTraceServiceResponse().SerializeToString())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Taking)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    serve(sys.argv[1])
