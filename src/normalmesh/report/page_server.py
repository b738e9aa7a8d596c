"""PageServer: serve one page to browsers on this machine."""

from __future__ import annotations

import sys
from http import HTTPStatus
from http.client import HTTP_PORT
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from normalmesh.errors import NormalMeshError

HOST = "127.0.0.1"
#: Seconds that a browser may take for a request, and between parts of the page that it receives.
TIMEOUT = 20.0
#: Other sites can neither embed the page nor have it read as anything but HTML.
HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class PageServer(ThreadingHTTPServer):
    """Serve ``page`` at ``address``, and nothing else. Port 0 selects a free port."""

    daemon_threads = True
    # On Windows, a second server could otherwise take over the port of the first.
    allow_reuse_address = False

    def __init__(self, port: int = 0) -> None:
        self.page = b""
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            reason = error.strerror or error
            raise NormalMeshError(
                f"cannot serve on port {port} ({reason}): choose another port, or 0 for a free one"
            ) from error

    @property
    def address(self) -> str:
        """The URL of the page."""
        return f"http://{HOST}:{self.server_port}/"

    @property
    def hosts(self) -> set[str]:
        """What a browser may send as the host of the page; it omits port 80."""
        ports = (f":{self.server_port}", "") if self.server_port == HTTP_PORT else (f":{self.server_port}",)
        return {host + port for host in (HOST, "localhost") for port in ports}

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore connections that end early or are too slow; the traceback would be printed to the terminal."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    timeout = TIMEOUT

    def do_GET(self) -> None:
        self._respond(with_page=True)

    def do_HEAD(self) -> None:
        self._respond(with_page=False)

    def _respond(self, with_page: bool) -> None:
        # Prevent DNS rebinding: a site whose name resolves to this machine must not read the page.
        if self.headers.get("Host") not in self.server.hosts:
            self.send_error(HTTPStatus.FORBIDDEN)
        elif self.path.partition("?")[0] != "/":
            self.send_error(HTTPStatus.NOT_FOUND)
        else:
            self.send_response(HTTPStatus.OK)
            for name, value in HEADERS.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(self.server.page)))
            self.end_headers()
            if with_page:
                self.wfile.write(self.server.page)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        """Do not log requests to the terminal."""
