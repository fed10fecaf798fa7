"""A Grafana that only remembers which annotations it was sent."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Self


class FakeGrafana:
    """Use it as a context manager: it listens on loopback inside.

    Attributes:
        got: path, authorization and body of each request.
        refusals: how many requests are refused first.
    """

    def __init__(self) -> None:
        self.got: list[tuple[str, str | None, dict[str, object]]] = []
        self.refusals = 0
        self._server = HTTPServer(("127.0.0.1", 0), self._handler())
        self._serving = threading.Thread(target=self._server.serve_forever)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._serving.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._serving.join()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        grafana = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                grafana.got.append((self.path, self.headers["Authorization"], body))
                self.send_response(500 if len(grafana.got) <= grafana.refusals else 200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        return Handler
