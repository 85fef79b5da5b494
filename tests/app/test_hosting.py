"""The parts around a hosted page, each by itself: headers, limits, what is kept, compression, the log."""

import asyncio
import gzip
import zlib

import brotli
import pytest
import uvicorn
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient
from uvicorn.server import ServerState
from websockets.frames import Frame, Opcode

from app.hosting.headers import Secure, page_policy
from app.hosting.kept import Body, Kept, TooBusyError, is_known, takes
from app.hosting.limit import Buckets, Limit, network_of
from app.hosting.packed import Packed
from app.hosting.settings import Settings
from app.hosting.sockets import FastDeflate


def small(*paths, handler=None):
    return Starlette(routes=[Route(path, handler or (lambda _: PlainTextResponse("here"))) for path in paths])


# --- headers


def ancestors(reply):
    return reply.headers["content-security-policy"].rpartition("frame-ancestors ")[2]


def test_every_answer_carries_the_headers_and_errors_say_nothing():
    def broken(_):
        raise RuntimeError("/srv/secret/place")

    client = TestClient(Secure(small("/broken", "/plain", handler=broken), Settings()))
    for path, status in (("/broken", 500), ("/nowhere", 404), ("/_stcore/metrics", 404), ("/_stcore/agent/openapi.json", 404)):
        reply = client.get(path)
        assert reply.status_code == status
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["referrer-policy"] == "same-origin"
        assert "camera=()" in reply.headers["permissions-policy"]
        assert reply.headers["content-security-policy"].startswith("default-src 'none'")
        assert "server" not in reply.headers
        assert "secret" not in reply.text


@pytest.mark.parametrize(
    ("path", "who"),
    [
        ("/", "page"),
        ("/wire?embed=true", "frames"),
        ("/?view=wire&embed=TRUE", "frames"),
        ("/?embed=false", "page"),
        ("/?x=embed=true", "page"),
        ("/embed/timeline.html", "frames"),
        ("/files/timeline.html", "page"),
    ],
)
def test_who_may_frame_is_a_setting_for_frames_and_one_for_pages(path, who):
    app = small("/", "/wire", "/embed/timeline.html", "/files/timeline.html")
    asked = Settings(frame_ancestors="https://blog.example", page_frame_ancestors="'none'")
    assert ancestors(TestClient(Secure(app, asked)).get(path)) == {"page": "'none'", "frames": "https://blog.example"}[who]
    assert ancestors(TestClient(Secure(app, Settings())).get(path)) == {"page": "'self'", "frames": "*"}[who]


def test_a_policy_allows_the_scripts_that_stand_in_a_page_and_no_others():
    policy = page_policy(b'<script>a()</script><script src="x.js"></script><script type="application/json">{}</script>').decode()
    assert policy.count("'sha256-") == 1
    scripts = policy.partition("script-src")[2].partition(";")[0]
    assert "unsafe" not in scripts
    assert "*" not in scripts


def test_a_host_that_is_not_listed_gets_400_and_health_is_answered_all_the_same():
    client = TestClient(Secure(small("/", "/healthz"), Settings(allowed_hosts="kv.example")))
    assert client.get("/", headers={"host": "evil.example"}).status_code == 400
    assert client.get("/", headers={"host": "kv.example:80"}).status_code == 200
    assert client.get("/healthz", headers={"host": "10.0.0.7"}).status_code == 200


# --- rate


def test_a_client_gets_its_burst_then_its_rate():
    now = [0.0]
    buckets = Buckets(rate=2, burst=3, clock=lambda: now[0])
    assert [buckets.wait("a") for _ in range(4)] == [0, 0, 0, 0.5]
    assert buckets.wait("b") == 0
    now[0] = 0.5
    assert [buckets.wait("a") for _ in range(2)] == [0, 0.5]


@given(st.lists(st.tuples(st.floats(0, 5), st.sampled_from("abc")), max_size=80))
def test_no_client_gets_more_than_burst_and_rate_allow(asks):
    now = [0.0]
    buckets = Buckets(rate=1.5, burst=4, clients=3, clock=lambda: now[0])
    taken = dict.fromkeys("abc", 0)
    for pause, client in asks:
        now[0] += pause
        taken[client] += buckets.wait(client) == 0
        assert taken[client] <= 4 + 1.5 * now[0] + 1e-6


def test_memory_of_clients_is_bounded():
    buckets = Buckets(rate=1, burst=1, clients=10)
    for i in range(1000):
        buckets.wait(str(i))
    assert len(buckets.filled) == 10


def test_charts_asked_too_often_are_429_with_a_time_and_other_routes_are_not_limited():
    client = TestClient(Limit(small("/embed/x.html", "/"), Settings(rate_per_second=0.1, rate_burst=2)))
    assert [client.get("/embed/x.html").status_code for _ in range(3)] == [200, 200, 429]
    reply = client.get("/embed/x.html", headers={"x-forwarded-for": "1.2.3.4"})
    assert (reply.status_code, reply.headers["retry-after"]) == (429, "10")
    assert reply.text == "Too many charts were asked for from this address; try again in 10 s."
    assert {client.get("/").status_code for _ in range(10)} == {200}
    free = TestClient(Limit(small("/embed/x.html"), Settings(rate_per_second=0)))
    assert {free.get("/embed/x.html").status_code for _ in range(200)} == {200}


def test_a_client_is_an_ipv4_address_or_the_network_of_an_ipv6_one():
    assert network_of("2001:db8:1:2:3:4:5:6") == network_of("2001:db8:1:2::9") != network_of("2001:db8:1:3::9")
    assert [network_of(a) for a in ("10.0.0.1", "::ffff:10.0.0.1", "testclient", "")] == ["10.0.0.1", "10.0.0.1", "testclient", ""]


# --- charts that are kept


def test_what_is_kept_is_bounded_by_bytes_and_the_longest_unused_goes_first():
    kept = Kept(3000)
    for key in "abc":
        kept.put(key, Body(b"x" * 1000, b"", ""))
    kept.get("a")
    kept.put("d", Body(b"x" * 1000, b"", ""))
    assert (list(kept.bodies), kept.size) == (["c", "a", "d"], 3000)
    kept.put("huge", Body(b"x" * 3001, b"", ""))
    assert kept.get("huge") is None
    kept.put("c", Body(b"x" * 10, b"", ""))
    assert kept.size == 2010


def test_a_chart_is_made_once_and_too_many_at_once_are_refused(monkeypatch):
    monkeypatch.setattr("app.hosting.kept.MAX_WAITING", 3)
    kept, calls = Kept(1 << 20), []

    async def run():
        async def ask(key):
            try:
                return (await kept.made(key, lambda: calls.append(key) or Body.of(b"x"))).plain
            except TooBusyError:
                return None

        first = [await ask("a"), await ask("a")]
        return first, await asyncio.gather(*(ask(i) for i in range(12)))

    first, many = asyncio.run(run())
    assert first == [b"x", b"x"]
    assert calls.count("a") == 1
    assert 0 < many.count(None) < 12


@pytest.mark.parametrize(
    ("header", "taken"),
    [
        ("gzip, br", True),
        ("br;q=1, GZIP;q=0.5", True),
        ("gzip;q=0", False),
        ("*", True),
        ("", False),
        ("identity", False),
        ("xgzip", False),
    ],
)
def test_compression_is_for_clients_that_take_it(header, taken):
    assert takes("gzip", header) == taken
    body = Body.of(b"text " * 1000)
    reply = body.response([(b"accept-encoding", header.encode())], kind="text/plain", cache_control="no-store")
    assert (reply.headers.get("content-encoding") == "gzip") == taken
    assert (gzip.decompress(reply.body) if taken else reply.body) == body.plain
    assert reply.headers["vary"] == "accept-encoding"


@pytest.mark.parametrize(
    ("header", "coding"),
    [("gzip, deflate, br", "br"), ("br;q=0, gzip", "gzip"), ("gzip", "gzip"), ("*", "gzip"), ("zstd", None), ("br", "br"), ("abr", None)],
)
def test_what_all_read_is_sent_in_the_best_coding_that_a_client_takes(header, coding):
    body = Body.of(b"".join(b"%d words; " % i for i in range(2000)), level=9, best=True)
    reply = body.response([(b"accept-encoding", header.encode())], kind="text/plain", cache_control="no-store")
    assert reply.headers.get("content-encoding") == coding
    opened = {"br": brotli.decompress, "gzip": gzip.decompress, None: bytes}[coding](reply.body)
    assert opened == body.plain
    assert len(body.least) < len(body.packed) < len(body.plain)
    assert len(body) == len(body.least) + len(body.packed) + len(body.plain)


def test_tags_are_compared_weakly_one_of_many():
    assert all(is_known('W/"a"', sent) for sent in ('"a"', 'W/"a"', '"b", W/"a"', "*"))
    assert not any(is_known('W/"a"', sent) for sent in ("", '"b"', "a"))


# --- static files


def test_scripts_are_read_and_compressed_once_and_kept_by_their_version():
    reads = []

    def handler(request):
        reads.append((request.method, request.headers.get("accept-encoding"), request.headers.get("range")))
        return Response(b"js " * 2000, media_type="text/javascript")

    client = TestClient(Packed(small("/app/static/a.js", handler=handler), {"/app/static/a.js": "1"}.get))
    client.headers["accept-encoding"] = "gzip"
    first = client.get("/app/static/a.js?v=1")
    assert first.headers["content-encoding"] == "gzip"
    assert int(first.headers["content-length"]) < 100
    assert first.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert "immutable" not in client.get("/app/static/a.js?v=2").headers["cache-control"]
    assert client.get("/app/static/a.js", headers={"accept-encoding": "identity", "range": "bytes=0-3"}).text == "js " * 2000
    assert client.get("/app/static/a.js", headers={"if-none-match": first.headers["etag"]}).status_code == 304
    assert client.head("/app/static/a.js").headers["content-length"] == first.headers["content-length"]
    assert reads == [("GET", None, None)]


def test_a_large_script_is_compressed_harder_once_the_page_that_asked_is_served():
    text = b"".join(b"let v%d = %d;\n" % (i % 977, i * i) for i in range(60_000))

    async def run():
        packed = Packed(small("/static/a.js", handler=lambda _: Response(text, media_type="text/javascript")), pause=0.05)
        scope = {"type": "http", "method": "GET", "path": "/static/a.js", "query_string": b"", "headers": [(b"accept-encoding", b"br")]}

        async def size():
            sent = bytearray()

            async def take(message):
                sent.extend(message.get("body", b""))

            await packed(scope, None, take)
            assert brotli.decompress(bytes(sent)) == text
            return len(sent)

        first = await size()
        await asyncio.gather(*packed.later)
        return first, await size()

    first, after = asyncio.run(run())
    assert 0 < after < first


def test_what_is_no_script_is_passed_on_and_not_kept():
    packed = Packed(small("/static/x.js", handler=lambda _: HTMLResponse("<p>" * 1000)))
    client = TestClient(packed)
    assert client.get("/static/x.js").text == "<p>" * 1000
    assert client.get("/static/none.js").status_code == 404
    assert packed.bodies == {}


def test_messages_of_a_session_are_compressed_at_the_fastest_level():
    config = uvicorn.Config(PlainTextResponse("x"), ws=FastDeflate, ws_per_message_deflate=True)
    config.load()

    async def extensions():
        return FastDeflate(config, ServerState(), {}).conn.available_extensions

    (extension,) = asyncio.run(extensions())
    _, deflate = extension.process_request_params([("client_max_window_bits", None)], [])
    assert extension.name == "permessage-deflate"
    text = b"".join(b'{"row":%d,"value":%d}' % (i, i * i) for i in range(2000))
    frame = deflate.encode(Frame(Opcode.BINARY, text))
    assert len(frame.data) < len(text) / 2
    fastest = zlib.compressobj(1, zlib.DEFLATED, -12, 5)
    assert bytes(frame.data) == (fastest.compress(text) + fastest.flush(zlib.Z_SYNC_FLUSH))[:-4]
