"""Two replicas behind nginx, as `kv-handoff nginx` sets it up: who goes where, what is cached, what a client may say of itself."""

import gzip
import os
import re
import signal
import time
from contextlib import ExitStack
from urllib.parse import urlsplit

import brotli
import pytest

from app.cli import main
from app.hosting.nginx import configuration
from app.hosting.sessions import GONE
from tests.absent import absent
from tests.app.attack import ask, drained, id_of, nothing_of_the_machine, session
from tests.nginx_server import NGINX, nginx_server
from tests.page_server import replicas_of_the_page

CAP, BURST = 2, 4
SETTINGS = {
    "KV_HANDOFF_TRUSTED_PROXIES": "127.0.0.1",
    "KV_HANDOFF_MAX_SESSIONS": str(CAP),
    "KV_HANDOFF_RATE_PER_SECOND": "0.001",
    "KV_HANDOFF_RATE_BURST": str(BURST),
}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "replica: none"),
        (["--replica", "kv.example:8501"], "replica: got"),
        (["--replica", "127.0.0.1"], "replica: got"),
        (["--replica", "127.0.0.1:99999"], "replica: got"),
        (["--replica", "127.0.0.1:80;} evil"], "replica: got"),
        (["--replica", "127.0.0.1:80", "--listen", "80; root /"], "listen: got"),
        (["--replica", "127.0.0.1:80", "--cache", "/var/cache/kv; root /"], "cache: got"),
    ],
)
def test_what_is_no_address_or_folder_is_refused_in_one_sentence(capsys, words, said):
    assert main(["nginx", *words]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "allowed: " in error
    assert error.count("\n") == 1


def test_each_replica_falls_back_on_all_others(capsys):
    places = ["10.0.0.1:80", "10.0.0.2:80", "[2001:db8::1]:8501"]
    assert main(["nginx", *(word for place in places for word in ("--replica", place)), "--listen", "[::]:80"]) == 0
    made = capsys.readouterr().out
    assert made.strip() == configuration(places, listen="[::]:80").strip()
    for number, place in enumerate(places):
        group = re.search(rf"upstream kv_{number} {{(.*?)}}", made, re.DOTALL)[1]
        servers = re.findall(r"server (\S+) max_fails=0( backup)?;", group)
        assert [server for server, backup in servers if not backup] == [place]
        assert sorted(server for server, _ in servers) == sorted(places)
    assert "@" not in re.sub(r"@away|@media", "", made)


@pytest.fixture(scope="module")
def replicas():
    """The places of two pages, and their processes."""
    if NGINX is None:
        absent("NGINX", "no nginx was found on PATH or in /usr/sbin")
    with replicas_of_the_page(2, **SETTINGS) as pages:
        yield [(urlsplit(address).netloc, pid) for address, pid in pages]


@pytest.fixture(scope="module")
def front(replicas, tmp_path_factory):
    with nginx_server([place for place, _ in replicas], tmp_path_factory.mktemp("nginx")) as place:
        yield place


def to(number):
    """The headers of a reader who was at a replica."""
    return {"cookie": f"kv_replica={number}"}


def given(reply):
    """The replica that an answer names; none where the reader stays."""
    return re.findall(r"kv_replica=(\d+); Path=/; HttpOnly; SameSite=Lax", "\n".join(reply.headers.get_all("set-cookie", [])))


def test_new_readers_go_to_the_replicas_in_turn_and_stay_there(front):
    found = [given(ask(front, "GET", "/wire")[0]) for _ in range(4)]
    assert sorted(found[:2]) == sorted(found[2:]) == [["0"], ["1"]]
    for number in (0, 1):
        assert [given(ask(front, "GET", "/wire", **to(number))[0]) for _ in range(3)] == [[]] * 3
    assert given(ask(front, "GET", "/wire", **to("7; x"))[0])


@pytest.mark.parametrize("number", [0, 1])
def test_a_file_goes_to_the_process_that_has_the_reader_s_session(front, number):
    token = ask(front, "GET", "/_stcore/health", **to(number))[0].headers["set-cookie"].partition(";")[0]
    form = b'--b\r\nContent-Disposition: form-data; name="f"; filename="x"\r\n\r\nx\r\n--b--\r\n'
    sent = {"x_xsrftoken": token.partition("=")[2], "content_type": "multipart/form-data; boundary=b"}
    with session(front, additional_headers=to(number)) as one:
        path = f"/_stcore/upload_file/{id_of(one)}/a"
        assert [ask(front, "PUT", path, form, cookie=f"{token}; kv_replica={n}", **sent)[0].status for n in (number, 1 - number)] == [
            204,
            400,
        ]
        large = ask(front, "PUT", path, b"x" * (4 << 20), cookie=token, **sent)
        assert large[0].status == 413
        assert b"nginx/" not in large[1]


def test_what_nginx_passes_on_keeps_its_headers_and_its_compression(front):
    for path in ("/", "/vendor/plotly.min.js", "/embed/ratio.html"):
        reply, content = ask(front, "GET", path, source="127.0.0.4", accept_encoding="br;q=0, GZIP;q=0.8")
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors" in reply.headers["content-security-policy"]
        assert reply.headers["server"] == "nginx"
        assert reply.headers["content-encoding"] == "gzip"
        plain, whole = ask(front, "GET", path, source="127.0.0.4", accept_encoding="gzip;q=0, br;q=0.0")
        assert plain.headers["content-encoding"] is None
        assert whole == gzip.decompress(content)
        best, less = ask(front, "GET", path, source="127.0.0.4", accept_encoding="gzip, deflate, br")
        coding = "br" if path.endswith(".js") else "gzip"
        assert best.headers["content-encoding"] == coding
        assert {"br": brotli, "gzip": gzip}[coding].decompress(less) == whole


def test_a_host_that_one_client_claims_is_in_no_link_that_another_gets(front):
    for claimed in (
        {"host": "localhost"},
        {"host": "evil.example"},
        {"x_forwarded_host": "evil.example", "forwarded": "host=evil.example"},
    ):
        ask(front, "GET", "/files/ratio.html?batch=7", source="127.0.0.5", **claimed)
    reply, content = ask(front, "GET", "/files/ratio.html?batch=7", source="127.0.0.5", host="kv.example")
    assert reply.status == 200
    assert b"localhost" not in content
    assert b"evil.example" not in content


def test_charts_are_cached_and_the_rate_counts_readers_not_what_they_claim(front):
    def chart(number, source="127.0.0.1"):
        return ask(front, "GET", f"/files/ratio.json?batch={number}", source=source, x_forwarded_for=f"198.51.100.{number}")[0].status

    # each replica lets each address ask for BURST, whatever it says of itself; a chart that is cached asks none
    found = [chart(number) for number in range(11, 12 + 2 * BURST)]
    assert found[0] == 200
    assert found[-1] == 429
    assert found.count(200) <= 2 * BURST
    assert {chart(11) for _ in range(3 * BURST)} == {200}
    assert chart(90, source="127.0.0.2") == 200


def test_a_reader_goes_where_there_is_room_and_learns_when_there_is_none(front):
    with ExitStack() as stack:
        for _ in range(CAP):
            stack.enter_context(session(front, additional_headers=to(0)))
        reply, _ = ask(front, "GET", "/wire", **to(0))
        assert (reply.status, given(reply)) == (200, ["1"])
        for _ in range(CAP):
            stack.enter_context(session(front, additional_headers=to(1)))
        reply, content = ask(front, "GET", "/wire", **to(0))
        assert (reply.status, reply.headers["retry-after"], given(reply)) == (503, "20", [])
        assert b"All places are taken" in content


def test_when_a_replica_ends_its_readers_go_on_at_the_other_and_when_both_end_cached_charts_stay(front, replicas):
    (_, first), (_, second) = replicas
    assert ask(front, "GET", "/files/ratio.json?batch=99", source="127.0.0.3")[0].status == 200
    with session(front, additional_headers=to(0)) as one, session(front, additional_headers=to(1)) as other:
        earlier = id_of(one)
        os.kill(first, signal.SIGKILL)
        assert drained(one)[1] == 1006
        reply, _ = ask(front, "GET", "/_stcore/health", **to(0))
        assert (reply.status, given(reply)) == (200, ["1"])
        with session(front, earlier=earlier, additional_headers=to(0)) as back:
            assert "kv_replica=1" in str(back.response.headers.get_all("set-cookie"))
            assert drained(back)[1] == GONE
        assert id_of(other)
    os.kill(second, signal.SIGKILL)
    time.sleep(0.1)
    reply, content = ask(front, "GET", "/wire", **to(1))
    assert (reply.status, reply.headers["retry-after"]) == (503, "5")
    assert b"The page is away" in content
    nothing_of_the_machine(content)
    assert ask(front, "GET", "/files/ratio.json?batch=99")[0].status == 200
