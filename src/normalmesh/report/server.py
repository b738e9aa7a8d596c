"""PageServer: one page for the browser of this machine."""

from __future__ import annotations

from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from normalmesh.errors import NormalMeshError

HOST = "127.0.0.1"


class PageServer(ThreadingHTTPServer):
    """Serves ``page`` at ``address``, and nothing else. Port 0: a free one."""

    daemon_threads = True
    # On Windows a second server could else take over the port of the first.
    allow_reuse_address = False

    def __init__(self, port: int = 0) -> None:
        self.page = b""
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            reason = error.strerror or error
            raise NormalMeshError(
                f"cannot serve at port {port} ({reason}): choose another one, or 0 for any"
            ) from error

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.server_port}/"


class _Handler(BaseHTTPRequestHandler):
    server: PageServer

    def do_GET(self) -> None:
        self._answer(with_page=True)

    def do_HEAD(self) -> None:
        self._answer(with_page=False)

    def _answer(self, with_page: bool) -> None:
        # A foreign site whose name was made to point to this machine must not read the page.
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
        """Say nothing: the terminal belongs to the command."""
