"""PageServer: serve one page to browsers on this machine."""

from __future__ import annotations

from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from normalmesh.errors import NormalMeshError

HOST = "127.0.0.1"


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


class _Handler(BaseHTTPRequestHandler):
    server: PageServer

    def do_GET(self) -> None:
        self._respond(with_page=True)

    def do_HEAD(self) -> None:
        self._respond(with_page=False)

    def _respond(self, with_page: bool) -> None:
        # Prevent DNS rebinding: a site whose name resolves to this machine must not read the page.
        if self.headers.get("Host") not in {f"{host}:{self.server.server_port}" for host in (HOST, "localhost")}:
            self.send_error(HTTPStatus.FORBIDDEN)
        elif self.path.partition("?")[0] != "/":
            self.send_error(HTTPStatus.NOT_FOUND)
        else:
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(self.server.page)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            if with_page:
                self.wfile.write(self.server.page)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        """Do not log requests to the terminal."""
