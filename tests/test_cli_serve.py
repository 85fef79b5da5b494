"""Starting the page, and what is said before it starts."""

import socket

import pytest

from app.cli import main
from app.hosting.settings import Settings
from app.serve import configuration


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--port", "-1"], "1 to 65,535"),
        (["--port", "99999"], "1 to 65,535"),
        (["--port", "x"], "1 to 65,535"),
        (["--address", "nope.invalid"], "cannot listen"),
        (["--bogus"], "takes no more words"),
    ],
)
def test_an_address_that_cannot_be_listened_on_is_one_sentence(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--no-browser", *words]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert len(error.splitlines()) == 1


def test_a_port_in_use_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert main(["serve", "--no-browser", "--port", str(taken.getsockname()[1])]) == 2
    assert "cannot listen" in capsys.readouterr().err


def test_an_unknown_flag_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "--prompt", "5"]) == 2
    assert "nearest: --prompt-tokens" in capsys.readouterr().err


@pytest.mark.parametrize(("proxies", "believed"), [("", False), ("10.0.0.0/8", True)])
def test_what_a_proxy_says_of_a_client_is_believed_only_of_listed_ones(proxies: str, believed: bool) -> None:
    served = configuration(Settings(trusted_proxies=proxies))
    assert served.proxy_headers is believed
    assert served.forwarded_allow_ips == proxies.split()
    assert (served.server_header, served.access_log) == (False, False)
