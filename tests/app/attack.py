"""A page to attack, and the means: plain requests, bytes as they are, sessions."""

import http.client
import socket
from pathlib import Path

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from app.hosting.wire import STREAM

ROOT = Path(__file__).parents[2]
SAID_OF_THE_MACHINE = (b"Traceback", b'File "', b"site-packages", str(ROOT).encode(), b"streamlit/", b"root:x:")


def ask(place, method, path, body=None, *, source="", **headers):
    connection = http.client.HTTPConnection(place, timeout=10, source_address=(source, 0) if source else None)
    connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
    reply = connection.getresponse()
    content = reply.read()
    connection.close()
    return reply, content


def raw(place, sent, then=b""):
    """What the server answers to some bytes, and to others after its first answer, until it closes."""
    host, port = place.split(":")
    with socket.create_connection((host, int(port)), timeout=10) as line:
        line.sendall(sent)
        got = line.recv(65536) if then else b""
        line.sendall(then)
        try:
            while part := line.recv(65536):
                got += part
        except ConnectionResetError:
            pass
    return got


def session(place, *, earlier="", **options):
    """A session; `earlier` is one that the browser had before."""
    asked = ["streamlit", "token", earlier] if earlier else ["streamlit"]
    return connect(f"ws://{place}{STREAM}", subprotocols=asked, max_size=None, open_timeout=10, close_timeout=0.3, **options)


def id_of(one):
    """The id of a session, which its first run says."""
    one.send(BackMsg(rerun_script={}).SerializeToString())
    told = (ForwardMsg.FromString(one.recv(timeout=10)) for _ in range(20))
    return next(message for message in told if message.WhichOneof("type") == "new_session").new_session.initialize.session_id


def drained(socket_):
    """All that comes until the session is closed or quiet, and the code it was closed with."""
    got = []
    try:
        while True:
            got.append(socket_.recv(timeout=0.4))
    except TimeoutError:
        return got, None
    except ConnectionClosed as closed:
        return got, closed.rcvd.code if closed.rcvd else 1006


def nothing_of_the_machine(content):
    assert not any(word in content for word in SAID_OF_THE_MACHINE), content[:400]
