"""Readers of a hosted page: how many there may be at once, and what is noted of them."""

import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from app.hosting.headers import Secure
from app.hosting.log import Lines, Requests, route_of
from app.hosting.sessions import FULL, GONE, Sessions
from app.hosting.settings import Settings
from app.hosting.wire import STREAM
from tests.app.test_hosting import small


async def stream(websocket):
    await websocket.accept(subprotocol="streamlit")
    try:
        await websocket.send_bytes(await websocket.receive_bytes())
        await websocket.receive_bytes()
    except WebSocketDisconnect:
        if websocket.query_params.get("break"):
            raise RuntimeError from None


def full(cap, lives=lambda _: True, **asked):
    routes = [Route(p, lambda _: PlainTextResponse("here")) for p in ("/", "/wire", "/healthz", "/embed/x.html", "/static/a.js")]
    return Sessions(
        Starlette(routes=[*routes, WebSocketRoute(STREAM, stream)]), Settings(max_sessions=cap, **asked), "/srv/app/main.py", lives
    )


def test_beyond_the_cap_a_reader_sees_a_page_that_says_so_and_charts_go_on():
    sessions = full(2, static_url="https://static.example")
    client = TestClient(sessions)
    with client.websocket_connect(STREAM), client.websocket_connect(STREAM):
        for path in ("/", "/wire?link=ethernet-25"):
            reply = client.get(path)
            assert (reply.status_code, reply.headers["retry-after"]) == (503, "20")
            assert "2 readers are here already" in reply.text
            assert 'href="https://static.example"' in reply.text
            assert "kv-handoff evaluate" in reply.text
            assert 'http-equiv="refresh" content="20"' in reply.text
        assert {client.get(p).status_code for p in ("/healthz", "/embed/x.html", "/static/a.js")} == {200}
        with client.websocket_connect(STREAM, subprotocols=["streamlit"]) as late, pytest.raises(WebSocketDisconnect) as closed:
            late.receive_bytes()
        assert closed.value.code == FULL
        assert sessions.open == 2
    assert sessions.open == 0
    assert client.get("/").status_code == 200


def test_one_address_cannot_take_all_places_and_learns_why():
    sessions = full(4, max_sessions_per_address=2)
    one, neighbour, other = (TestClient(sessions, client=(address, 4711)) for address in ("2001:db8::1", "2001:db8::2", "203.0.113.9"))
    with one.websocket_connect(STREAM), one.websocket_connect(STREAM):
        for same in (one, neighbour):
            reply = same.get("/wire?link=ethernet-25")
            assert reply.status_code == 503
            assert "2 readers from your network are here already" in reply.text
            with same.websocket_connect(STREAM) as late, pytest.raises(WebSocketDisconnect) as closed:
                late.receive_bytes()
            assert closed.value.code == FULL
        assert one.get("/embed/x.html").status_code == other.get("/").status_code == 200
        with other.websocket_connect(STREAM), other.websocket_connect(STREAM):
            assert "4 readers are here already" in TestClient(sessions, client=("127.0.0.1", 1)).get("/").text
    assert (sessions.open, dict(sessions.places)) == (0, {})
    assert one.get("/").status_code == 200


@pytest.mark.parametrize(
    ("header", "trusted", "lines"), [("x-forwarded-for", "", 1), ("accept", "", 0), ("x-forwarded-for", "192.0.2.1", 0)]
)
def test_a_proxy_whose_readers_count_as_one_is_told_to_the_operator_once(caplog, header, trusted, lines):
    client = TestClient(
        full(9, max_sessions_per_address=1, trusted_proxies=trusted), client=("10.0.0.7", 4711), headers={header: "203.0.113.77"}
    )
    with client.websocket_connect(STREAM):
        assert [client.get("/").status_code for _ in range(3)] == [503] * 3
    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(said) == lines
    assert all("KV_HANDOFF_TRUSTED_PROXIES" in line and "203.0.113" not in line for line in said)


@pytest.mark.parametrize(("address", "most"), [("127.0.0.1", 1), ("::1", 1), ("::ffff:127.0.0.1", 1), ("203.0.113.9", 0)])
def test_this_machine_is_no_single_reader_and_the_cap_of_addresses_can_be_lifted(address, most):
    client = TestClient(full(9, max_sessions_per_address=most), client=(address, 4711))
    with client.websocket_connect(STREAM), client.websocket_connect(STREAM):
        assert client.get("/").status_code == 200


def test_a_session_that_dies_gives_its_place_back():
    sessions = full(1)
    client = TestClient(sessions)
    for _ in range(5):
        with pytest.raises(RuntimeError), client.websocket_connect(f"{STREAM}?break=1") as one:
            one.close()
        assert sessions.open == 0


@pytest.mark.parametrize(("earlier", "code"), [("known", None), ("lost", GONE), ("", None)])
def test_who_comes_back_to_a_session_that_is_no_more_is_told_to_start_from_the_address(earlier, code):
    sessions = full(1, lives=lambda session: session == "known")
    with TestClient(sessions).websocket_connect(STREAM, subprotocols=["streamlit", "token", *([earlier] if earlier else [])]) as one:
        if code is None:
            one.send_bytes(b"asked")
            assert one.receive_bytes() == b"asked"
        else:
            with pytest.raises(WebSocketDisconnect) as closed:
                one.receive_bytes()
            assert closed.value.code == code
    assert sessions.open == 0


def test_a_session_is_not_told_where_the_page_lies_on_the_machine():
    forward = ForwardMsg()
    forward.new_session.main_script_path = "/srv/app/main.py"
    forward.new_session.name = "kept"
    forward.new_session.initialize.environment_info.server_os = "linux"
    told = ForwardMsg.FromString(full(1).bare({"type": "websocket.send", "bytes": forward.SerializeToString()})["bytes"])
    assert (told.new_session.main_script_path, told.new_session.name) == ("main.py", "kept")
    assert told.new_session.initialize.environment_info.server_os == ""
    other = {"type": "websocket.send", "bytes": b"/srv/app/other"}
    assert full(1).bare(other) is other


@pytest.fixture
def lines(caplog):
    caplog.set_level(logging.INFO)
    return lambda: [json.loads(Lines().format(record)) for record in caplog.records if record.name.startswith("kv_handoff")]


def test_a_line_has_the_route_and_what_it_took_and_nothing_of_the_reader(lines):
    app = Requests(small("/", "/embed/timeline.html", "/wire"), frozenset({"wire"}), frozenset({"timeline"}))
    client = TestClient(app, client=("203.0.113.77", 4711))
    secret = {"user-agent": "secret-agent", "cookie": "secret=1", "x-forwarded-for": "198.51.100.3", "referer": "https://secret.example"}
    for path in ("/", "/wire?model=secret", "/embed/timeline.html?link=secret", "/embed/secret.html", "/secret/place", "/files/secret.csv"):
        client.get(path, headers=secret)
    found = lines()
    assert [line["route"] for line in found] == ["/", "/wire", "/embed/timeline.html", "/embed/…", "other", "/files/…"]
    assert [line["status"] for line in found] == [200, 200, 200, 404, 404, 404]
    assert all(set(line) == {"time", "level", "route", "status", "ms", "bytes"} for line in found)
    assert found[0]["bytes"] == 4
    text = json.dumps(found)
    assert not any(word in text for word in ("secret", "203.0.113", "198.51", "4711"))


def test_an_error_is_noted_by_type_and_place_without_its_values(lines):
    def broken(_):
        raise ValueError("a secret of 203.0.113.77")

    TestClient(Secure(small("/", handler=broken), Settings())).get("/?model=secret")
    (line,) = lines()
    assert line["error"] == "ValueError"
    assert line["at"][-1].startswith("test_hosting_readers.py:")
    assert "203.0.113" not in json.dumps(line)
    assert "secret" not in json.dumps(line)


def test_lines_of_libraries_keep_their_template_only():
    record = logging.LogRecord("uvicorn.error", logging.WARNING, "x", 1, "refused %s", ("203.0.113.77",), None)
    assert json.loads(Lines().format(record))["message"] == "refused …"


@given(st.text(max_size=40))
def test_a_route_is_one_of_few_whatever_is_asked(path):
    known = {"/", "/wire", "/healthz", "/ahead", "/explain", STREAM, "other", "/embed/…", "/files/…", "/static/…", "/_stcore/…"}
    assert route_of("/" + path, frozenset({"wire"}), frozenset()) in known
