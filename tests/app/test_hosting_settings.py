"""Settings by environment, and where the page says it is."""

import re

import pytest
from starlette.requests import Request

from app.cli import main
from app.hosting.address import explorer_of, host_of, is_answered
from app.hosting.settings import Settings, listed, settings


@pytest.fixture(autouse=True)
def fresh():
    settings.cache_clear()
    yield
    settings.cache_clear()


def test_every_setting_is_read_from_the_environment_and_listed_by_help(monkeypatch, capsys):
    given = {
        "address": "0.0.0.0",
        "port": "8080",
        "public_url": "https://kv.example/handoff/",
        "allowed_hosts": "KV.example, *.kv.example",
        "trusted_proxies": "10.1.2.3/8 127.0.0.1",
        "frame_ancestors": "https://blog.example 'self'",
        "page_frame_ancestors": "'none'",
        "max_sessions": "7",
        "max_sessions_per_address": "3",
        "rate_per_second": "0.5",
        "rate_burst": "3",
        "chart_cache_mb": "5",
        "prepare": "1",
        "slow_seconds": "2",
        "log_level": "warning",
        "static_url": "https://static.example",
        "report_to": "mailto:someone@kv.example",
    }
    assert given.keys() == Settings.model_fields.keys()
    for name, value in given.items():
        monkeypatch.setenv(f"KV_HANDOFF_{name.upper()}", value)
    read = settings()
    assert (read.port, read.public_url, read.allowed_hosts) == (8080, "https://kv.example/handoff", "kv.example *.kv.example")
    assert read.trusted_proxies == "10.0.0.0/8 127.0.0.1/32"
    assert all(getattr(read, name) != field.default for name, field in Settings.model_fields.items())
    with pytest.raises(SystemExit):
        main(["serve", "--help"])
    said = capsys.readouterr().out
    for name, default, what in listed():
        assert f"{name}={default}" in said
        assert re.search(r"\w{3,}.*\.$", what)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("PORT", "http", "allowed: a whole number from 1 to 65,535"),
        ("PORT", "0", "allowed: a whole number from 1 to 65,535"),
        ("ADDRESS", "a" * 254, "allowed: up to 253 characters"),
        ("PREPARE", "perhaps", "allowed: 0 or 1"),
        ("SLOW_SECONDS", "0", "allowed: a number from 0.1 to 3,600"),
        ("PUBLIC_URL", "kv.example", "https://"),
        ("PUBLIC_URL", 'https://kv.example/"><script>', "https://"),
        ("FRAME_ANCESTORS", "https://a.example; script-src *", "origins"),
        ("FRAME_ANCESTORS", "", "origins"),
        ("ALLOWED_HOSTS", "https://a.example", "host names"),
        ("TRUSTED_PROXIES", "proxy.example", "allowed: IP addresses"),
        ("MAX_SESSIONS", "0", "allowed: a whole number from 1 to 100,000"),
        ("LOG_LEVEL", "loud", "allowed: debug, info, warning, error"),
        ("REPORT_TO", "javascript:alert(1)", "mailto:"),
    ],
)
def test_a_setting_that_cannot_be_used_is_one_sentence_with_its_name(monkeypatch, capsys, name, value, said):
    monkeypatch.setenv(f"KV_HANDOFF_{name}", value)
    assert main(["serve", "--no-browser"]) == 2
    error = capsys.readouterr().err
    assert f"KV_HANDOFF_{name}" in error
    assert said in error
    assert error.count("\n") == 1


def test_a_variable_that_is_no_setting_is_said_with_the_nearest(monkeypatch, caplog):
    monkeypatch.setenv("KV_HANDOFF_MAX_SESSION", "7")
    monkeypatch.setenv("KV_HANDOFF_QQ", "secret-value")
    assert settings().max_sessions == 100
    said = [record.getMessage() for record in caplog.records]
    assert said == [
        "KV_HANDOFF_MAX_SESSION is no setting and changes nothing; did you mean KV_HANDOFF_MAX_SESSIONS?",
        "KV_HANDOFF_QQ is no setting and changes nothing; kv-handoff serve --help lists what there is.",
    ]


def request(host):
    return Request({"type": "http", "scheme": "http", "path": "/files/x.html", "query_string": b"", "headers": [(b"host", host.encode())]})


@pytest.mark.parametrize(
    ("host", "asked", "file", "frame"),
    [
        ("evil.example", {}, "", ".."),
        ("127.0.0.1:8501", {}, "http://127.0.0.1:8501", ".."),
        ("[::1]:8501", {}, "http://[::1]:8501", ".."),
        ("127.0.0.1.evil.example", {}, "", ".."),
        ("evil.example", {"public_url": "https://kv.example/h"}, "https://kv.example/h", "https://kv.example/h"),
        ("kv.example", {"allowed_hosts": "kv.example"}, "http://kv.example", ".."),
        ("a.kv.example:80", {"allowed_hosts": "*.kv.example"}, "http://a.kv.example:80", ".."),
    ],
)
def test_links_never_name_a_host_that_only_the_request_knows(host, asked, file, frame):
    given = Settings(**asked)
    assert explorer_of(request(host), given, framed=False) == file
    assert explorer_of(request(host), given, framed=True) == frame


@pytest.mark.parametrize(
    ("host", "answered"),
    [("kv.example", True), ("KV.EXAMPLE:8501", True), ("x.kv.example", True), ("evilkv.example", False), ("", False), ("10.0.0.1", False)],
)
def test_other_hosts_are_not_answered_where_some_are_listed(host, answered):
    headers = [(b"host", host.encode())]
    assert is_answered(headers, Settings(allowed_hosts="kv.example *.kv.example")) == answered
    assert is_answered(headers, Settings())


def test_a_host_is_its_name_without_a_port():
    assert [host_of(h) for h in ("A.example:80", "[2001:db8::1]:80", "[::1]", "x")] == ["a.example", "[2001:db8::1]", "[::1]", "x"]
