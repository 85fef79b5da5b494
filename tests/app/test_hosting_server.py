"""A real page under attack: frames that are none, paths that lead out, requests that are too large."""

import asyncio
import gzip
import json
import random
import time
from urllib.parse import urlsplit

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.exceptions import ConnectionClosed, InvalidStatus

from app.files import MAX_QUERY
from app.hosting.headers import Secure
from app.hosting.settings import Settings
from app.hosting.wire import STREAM
from tests.app.attack import ask, drained, id_of, nothing_of_the_machine, raw, session
from tests.page_server import page_server


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return tmp_path_factory.mktemp("log") / "lines"


@pytest.fixture(scope="module")
def place(log):
    with log.open("wb") as printed, page_server(printed, KV_HANDOFF_SLOW_SECONDS="1") as url:
        yield urlsplit(url).netloc


@pytest.mark.parametrize(
    "path", ["/", "/wire", "/embed/ratio.html", "/files/ratio.csv", "/ahead", "/_stcore/health", "/none/none", "/x.js"]
)
def test_every_route_has_the_headers_and_names_no_version(place, path):
    reply, content = ask(place, "GET", path)
    assert reply.status in (200, 204, 404)
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert "frame-ancestors" in reply.headers["content-security-policy"]
    assert reply.headers["referrer-policy"] == "same-origin"
    assert reply.headers["permissions-policy"]
    assert reply.headers["server"] is None
    nothing_of_the_machine(content)


FRAMES = [
    ("text", "hello"),
    ("noise", random.Random(1).randbytes(500)),
    ("a message without a type", b""),
    ("a message with a field unknown to all", b"\xfa\x7f\x03abc"),
    ("half a message", BackMsg(rerun_script={"query_string": "model=" + "x" * 100}).SerializeToString()[:-40]),
    (
        "a page that is none",
        BackMsg(rerun_script={"page_script_hash": "../../etc/passwd", "query_string": "%ff%00&view=\x00"}).SerializeToString(),
    ),
    (
        "a link that cannot be used",
        BackMsg(rerun_script={"query_string": "model=%3Cscript%3E&prompt_tokens=1e999&lanes=-1"}).SerializeToString(),
    ),
    ("a fragment that is none", BackMsg(rerun_script={"fragment_id": "x", "is_auto_rerun": True}).SerializeToString()),
    ("files of another", BackMsg(file_urls_request={"request_id": "1", "file_names": ["../x"], "session_id": "other"}).SerializeToString()),
    ("an order to stop all", BackMsg(debug_shutdown_runtime=True).SerializeToString()),
    ("an order to load git's state", BackMsg(load_git_info=True).SerializeToString()),
    ("more than a message may hold", b"\x00" * (3 << 20)),
]


@pytest.mark.parametrize("frame", [frame for _, frame in FRAMES], ids=[name for name, _ in FRAMES])
def test_no_frame_makes_the_page_tell_of_the_machine_or_stop(place, frame):
    with session(place) as one:
        try:
            one.send(frame)
            got, code = drained(one)
        except ConnectionClosed as closed:
            got, code = [], closed.rcvd.code if closed.rcvd else 1006
    for part in got:
        nothing_of_the_machine(part)
        assert ForwardMsg.FromString(part).WhichOneof("type")
    assert code in (None, 1000, 1002, 1003, 1006, 1009, 1011)
    assert ask(place, "GET", "/healthz")[1] == b"ok"


def test_bytes_that_are_no_frames_end_the_session(place):
    head = (
        f"GET {STREAM} HTTP/1.1\r\nHost: {place}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    ).encode()
    # reserved bits, an unknown operation, a frame without a mask, a length beyond all bounds
    for frame in (b"\xf3\x05hello", b"\x8f\x80abcd", b"\x82\x05hello", b"\x82\xff" + b"\x7f" * 8 + b"abcd"):
        answer = raw(place, head, frame)
        assert answer.startswith(b"HTTP/1.1 101")
        nothing_of_the_machine(answer)
    nothing_of_the_machine(raw(place, head.replace(b"13", b"99")))
    assert ask(place, "GET", "/")[0].status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/../../../../etc/passwd",
        "/static/../../../../../../etc/passwd",
        "/static/..%2f..%2f..%2f..%2f..%2fetc%2fpasswd",
        "/app/static/../main.py",
        "/app/static/%2e%2e/main.py",
        "/app/static/..%2f.streamlit%2fconfig.toml",
        "/app/static/..%5cmain.py",
        "/app/static//etc/passwd",
        "/app/static/%00",
        "//etc/passwd",
        "/vendor/../app/main.py",
        "/vendor/..%2fmain.py",
        "/embed/..%2f..%2fetc%2fpasswd.html",
        "/files/..%2f..%2fmain.json",
        "/component/../../etc/passwd",
        "/_stcore/bidi-components/liveview/../../main.py",
        "/media/..%2f..%2fetc%2fpasswd",
        "/_stcore/upload_file/..%2f..%2fx/y",
        "/%2e%2e/%2e%2e/etc/passwd",
    ],
)
def test_no_path_leads_out_of_what_is_served(place, path):
    answer = raw(place, f"GET {path} HTTP/1.1\r\nHost: {place}\r\nConnection: close\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 "), answer[:80]
    assert answer[9:12] in (b"200", b"400", b"404", b"405")
    nothing_of_the_machine(answer)
    assert b"import streamlit" not in answer
    assert b"enableStaticServing" not in answer
    if answer[9:12] == b"200":
        assert b"<title>KV handoff explorer</title>" in answer


def test_uploads_are_bounded_and_belong_to_a_session(place):
    token = ask(place, "GET", "/_stcore/health")[0].headers["set-cookie"].partition(";")[0]
    xsrf = {"cookie": token, "x_xsrftoken": token.partition("=")[2], "content_type": "multipart/form-data; boundary=b"}

    def form(size):
        return b'--b\r\nContent-Disposition: form-data; name="f"; filename="../../x"\r\n\r\n' + b"x" * size + b"\r\n--b--\r\n"

    with session(place) as one:
        path = f"/_stcore/upload_file/{id_of(one)}/a"
        assert ask(place, "PUT", path, form(1000), **xsrf)[0].status == 204
        assert ask(place, "PUT", path, form(1000))[0].status == 403
        assert ask(place, "PUT", "/_stcore/upload_file/other/a", form(1000), **xsrf)[0].status == 400
        assert ask(place, "PUT", path, form(3 << 20), **xsrf)[0].status == 413
        assert ask(place, "PUT", path, iter([form(3 << 20)]), **xsrf)[0].status == 413


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/?model=" + "x" * 8_000, 200),
        ("/?model=" + "x" * 100_000, 414),
        ("/embed/ratio.html?model=" + "x" * MAX_QUERY, 404),
        ("/files/ratio.json?" + "&".join(f"a{i}=1" for i in range(MAX_QUERY // 5)), 404),
        ("/ahead?view=wire&name=model&label=" + "x" * 8_000, 204),
        ("/embed/" + "x" * 5_000 + ".html", 404),
    ],
)
def test_parameters_are_bounded(place, path, status):
    reply, content = ask(place, "GET", path)
    assert reply.status == status
    assert len(content) < 20_000
    nothing_of_the_machine(content)


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://[::1"])
def test_a_foreign_origin_gets_no_session(place, origin):
    with pytest.raises(InvalidStatus, match="403"), session(place, origin=origin):
        pass


def test_whose_origin_it_is_is_not_asked_outside():
    """Streamlit would ask an outside server for this machine's address on each foreign origin, and wait for it."""
    seen = []

    async def app(scope, _, send):
        seen.append(dict(scope["headers"]))
        await send({"type": "websocket.close", "code": 1000})

    async def told(headers):
        said = []

        async def send(message):
            said.append(message["code"])

        whole = [(name.encode(), value.encode()) for name, value in headers.items()]
        await Secure(app, Settings(public_url="https://kv.example/x"))({"type": "websocket", "headers": whole, "path": STREAM}, None, send)
        return said

    for origin, code in (
        ("https://evil.example", 1008), ("null", 1008), ("https://kv.example", 1000), ("http://here:1", 1000), ("http://localhost:3", 1000),
    ):  # fmt: skip
        assert asyncio.run(told({"host": "here:1", "origin": origin})) == [code], origin
    assert asyncio.run(told({"host": "here:1"})) == [1000]
    assert seen == [{b"host": b"here:1"}] * 4


@pytest.mark.parametrize("asked", [{}, {"accept_encoding": "gzip"}, {"accept": "text/html", "accept_encoding": "gzip"}])
def test_only_a_view_is_answered_with_the_page(place, asked):
    for path in ("/robots.txt", "/favicon.ico", "/.git/config", "/embed/wire", "/embed", "/static/none.js", "/%", "/_stcore/stream"):
        reply, content = ask(place, "GET", path, **asked)
        assert reply.status in (404, 405), path
        nothing_of_the_machine(content)
    for path in ("/embed/", "/healthz/", "/wire/"):
        assert ask(place, "GET", path, **asked)[0].headers["location"] == path.rstrip("/")
    for path in ("/", "/wire", "/method"):
        reply, content = ask(place, "GET", path, **asked)
        assert reply.status == 200
        packed = reply.headers["content-encoding"] == "gzip"
        assert packed == bool(asked)
        assert b"<title>KV handoff explorer</title>" in (gzip.decompress(content) if packed else content)


def test_text_in_a_session_closes_it_and_is_no_fault(place, log):
    with session(place) as one:
        one.send("hello")
        assert drained(one)[1] == 1003
    time.sleep(0.1)
    assert "KeyError" not in log.read_text()


def test_the_log_of_all_this_is_json_without_a_reader_s_data(place, log):
    ask(place, "GET", "/wire?model=llama-2-7b&secret=1", user_agent="secret", x_forwarded_for="198.51.100.7")
    ask(place, "POST", "/secret", b"secret")
    with session(place) as one:
        id_of(one)
    time.sleep(0.2)
    lines = [line for line in log.read_text().splitlines() if line.startswith("{")]
    assert len(lines) >= 3
    parsed = [json.loads(line) for line in lines]
    assert all("time" in line and "level" in line for line in parsed)
    assert any(line.get("route") == STREAM and line["status"] == 101 for line in parsed)
    others = [line for line in log.read_text().splitlines() if not line.startswith("{")]
    assert all(line.startswith("The page is at ") for line in others), others[:5]
    for word in ("127.0.0.1", "secret", "llama-2", "ethernet", "198.51", "model=", "passwd", "evil.example"):
        assert not any(word in line for line in lines), word
