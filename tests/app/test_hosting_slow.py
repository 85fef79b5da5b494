"""A real page and clients that dawdle, and more of them than it takes."""

import socket
import struct
import time
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest

from tests.app.attack import ask, drained, id_of, raw, session
from tests.page_server import page_server

CAP = 3


@pytest.fixture(scope="module")
def place():
    with page_server(KV_HANDOFF_MAX_SESSIONS=str(CAP), KV_HANDOFF_SLOW_SECONDS="1") as url:
        yield urlsplit(url).netloc


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ", b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nGET / HT"])
def test_a_client_that_never_ends_its_request_is_cut_off(place, sent):
    began = time.monotonic()
    raw(place, sent)
    assert 0.5 < time.monotonic() - began < 8


def test_a_client_that_drips_its_request_is_cut_off(place):
    host, port = place.split(":")
    with socket.create_connection((host, int(port)), timeout=10) as line:
        began = time.monotonic()
        with pytest.raises(OSError, match=r"(?i)broken|reset"):
            drip(line, b"GET / HTTP/1.1\r\nX-Slow: " + b"x" * 60)
        assert time.monotonic() - began < 6


def drip(line, text):
    for letter in text:
        line.send(bytes([letter]))
        time.sleep(0.1)


def test_a_body_that_does_not_come_is_408(place):
    token = ask(place, "GET", "/_stcore/health")[0].headers["set-cookie"].partition(";")[0]
    with session(place) as one:
        head = [
            f"PUT /_stcore/upload_file/{id_of(one)}/a HTTP/1.1",
            f"Host: {place}",
            f"Cookie: {token}",
            f"X-Xsrftoken: {token.partition('=')[2]}",
            "Content-Type: multipart/form-data; boundary=b",
            "Content-Length: 900",
        ]
        answer = raw(place, "\r\n".join([*head, "", "--b"]).encode())
    assert answer.startswith(b"HTTP/1.1 408")
    assert answer.endswith(b"The request did not arrive in time.")


def test_a_client_that_takes_nothing_of_its_answer_is_cut_off(place):
    host, port = place.split(":")
    ask(place, "GET", "/vendor/plotly.min.js")  # read and compressed, so that the next answer begins at once
    with socket.socket() as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.connect((host, int(port)))
        line.settimeout(10)
        line.sendall(f"GET /vendor/plotly.min.js HTTP/1.1\r\nHost: {place}\r\n\r\n".encode() * 20)
        time.sleep(4)
        assert taken(line) < 60_000_000  # of 96


def taken(line):
    """Bytes that still come, until the line ends."""
    size = 0
    try:
        while part := line.recv(1 << 20):
            size += len(part)
    except ConnectionResetError:
        pass
    return size


def test_one_session_too_many_sees_that_the_page_is_full_and_places_come_back(place):
    def status():
        return ask(place, "GET", "/wire?link=ethernet-25")[0].status

    with ExitStack() as stack:
        first, second, third = (stack.enter_context(session(place)) for _ in range(CAP))
        reply, content = ask(place, "GET", "/wire?link=ethernet-25")
        assert (reply.status, reply.headers["retry-after"]) == (503, "20")
        assert b"All places are taken" in content
        assert ask(place, "GET", "/embed/ratio.html")[0].status == 200
        with session(place) as late:
            assert drained(late)[1] == 1013
        # one leaves in order, one is cut off, one just dies
        first.close()
        second.socket.shutdown(socket.SHUT_RDWR)
        third.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        third.socket.close()
        until = time.monotonic() + 5
        while status() != 200 and time.monotonic() < until:
            time.sleep(0.1)
        for _ in range(CAP):
            assert status() == 200
            stack.enter_context(session(place))
        assert status() == 503
