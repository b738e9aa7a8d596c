"""Attack the server of ``normalmesh view``: it gives one page to browsers of this machine, and nothing to others."""

from __future__ import annotations

import socket
import struct
import threading
import time
from contextlib import contextmanager, suppress

import pytest

from normalmesh import NormalMeshError
from normalmesh.report import page_server
from normalmesh.report.page_server import PageServer

PAGE = b"<p>secret</p>"


@pytest.fixture(scope="module")
def server():
    with PageServer() as running:
        running.page = PAGE
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield running
        finally:
            running.shutdown()
            thread.join()


@contextmanager
def connected(server):
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=10) as connection:
        yield connection


def answer(server, request):
    """Send the bytes of a request, and return the status, the headers and the content of the answer."""
    with connected(server) as connection:
        connection.sendall(request)
        # The server may have refused the request before its end.
        with suppress(OSError):
            connection.shutdown(socket.SHUT_WR)
        received = b"".join(iter(lambda: connection.recv(65536), b""))
    head, _, content = received.partition(b"\r\n\r\n")
    status = head.split(maxsplit=2)[1] if head.startswith(b"HTTP/") else b""
    return status.decode(), head.decode(errors="replace"), content


def request(server, path="/", host=None, method="GET", more=""):
    host = f"127.0.0.1:{server.server_port}" if host is None else host.format(port=server.server_port)
    return f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n".encode("latin-1")


@pytest.mark.parametrize("path", ["/", "/?", "/?a=../../etc/passwd"])
@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}"])
def test_the_page(server, path, host):
    status, head, content = answer(server, request(server, path, host))
    assert (status, content) == ("200", PAGE)
    assert f"Content-Length: {len(PAGE)}" in head


def test_other_sites_cannot_use_the_page(server):
    _, head, _ = answer(server, request(server, more="Origin: http://evil.example\r\n"))
    assert "Access-Control" not in head
    for line in ("nosniff", "X-Frame-Options: DENY", "Cross-Origin-Resource-Policy: same-origin"):
        assert line in head


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1",
        "localhost",
        "127.0.0.1:1",
        "127.0.0.1:{port}.evil.example",
        "localhost.evil.example:{port}",
        "evil.example@127.0.0.1:{port}",
        "0.0.0.0:{port}",
        "[::1]:{port}",
    ],
)
def test_other_hosts_are_refused(server, host):
    """A site can make its name resolve to this machine (DNS rebinding), but not change the name of its host."""
    status, _, content = answer(server, request(server, host=host))
    assert status == "403"
    assert PAGE not in content


def test_a_request_without_a_host_is_refused(server):
    for given in (b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.0\r\n\r\n", b"GET /\r\n\r\n"):
        assert PAGE not in answer(server, given)[2]


def test_port_80_may_be_omitted(monkeypatch, server):
    monkeypatch.setattr(page_server, "HTTP_PORT", server.server_port)
    assert answer(server, request(server, host="localhost"))[0] == "200"


@pytest.mark.parametrize(
    "path",
    [
        "/..",
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/..%2f..%2fetc%2fpasswd",
        "/..\\..\\etc",
        "//etc/passwd",
        "/\x00",
        "/index.html",
        "/favicon.ico",
        "/%",
        "/%00",
        "*",
        "http://127.0.0.1/",
        "/<script>alert(1)</script>",
        "ÿ",
    ],
)
def test_other_paths_do_not_exist(server, path):
    status, _, content = answer(server, request(server, path))
    assert status in ("400", "404")
    assert b"<script>" not in content
    assert b"root:" not in content


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PATCH", "get", "<script>"])
def test_other_methods_do_nothing(server, method):
    status, _, content = answer(server, request(server, method=method))
    assert status == "501"
    assert PAGE not in content
    assert b"<script>" not in content


def test_the_head_has_no_content(server):
    assert answer(server, request(server, method="HEAD"))[::2] == ("200", b"")


@pytest.mark.parametrize(
    "given",
    [
        b"",
        b"\r\n" * 50,
        b"\x00" * 1000,
        b"GET",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 5000,
        b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: " + b"a" * 100000,
        b"\x16\x03\x01\x02",
    ],
)
def test_garbage_and_large_headers(server, given, capfd):
    try:
        _, _, content = answer(server, given)
    except ConnectionError:
        content = b""
    assert PAGE not in content
    assert answer(server, request(server))[2] == PAGE
    assert capfd.readouterr().err == ""


def test_slow_requests_end_and_delay_no_others(server, monkeypatch, capfd):
    monkeypatch.setattr(page_server._Handler, "timeout", 0.2)
    with connected(server) as slow, connected(server) as silent:
        slow.sendall(b"GET / HT")
        assert answer(server, request(server))[2] == PAGE
        assert slow.recv(100) == b""
        assert silent.recv(100) == b""
    assert capfd.readouterr().err == ""


def test_a_browser_that_leaves_early_is_no_error(server, monkeypatch, capfd):
    monkeypatch.setattr(server, "page", bytes(50_000_000))
    with connected(server) as leaving:
        leaving.sendall(request(server))
        leaving.recv(100)
        # Reset the connection instead of ending it.
        leaving.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    time.sleep(0.3)
    assert capfd.readouterr().err == ""


def test_only_this_machine_can_connect(server):
    assert server.server_address[0] == "127.0.0.1"


def test_a_port_in_use(server):
    with pytest.raises(NormalMeshError, match=f"cannot serve on port {server.server_port} .* choose another port"):
        PageServer(server.server_port)
