"""The README keeps its promises: the library example prints what it shows."""

import contextlib
import io
import re
from pathlib import Path

from tests.readme_tables import MARKED, SETTINGS, settings_table, transports_table

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_the_library_example_prints_what_it_shows():
    code, shown = re.search(r"```python\n(.*?)```\s+```text\n(.*?)```", README, re.DOTALL).groups()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    assert printed.getvalue() == shown


def test_the_shell_examples_are_commands_that_run(capsys, tmp_path, monkeypatch):
    from app.cli import main

    lines = [line for line in README.splitlines() if line.startswith("kv-handoff ") and "serve" not in line]
    assert len(lines) >= 7
    monkeypatch.chdir(tmp_path)
    for line in lines:
        assert main(line.partition(" > ")[0].split()[1:]) == 0
        assert capsys.readouterr().out.strip()


def test_the_table_of_published_transfers_is_that_of_the_data():
    assert MARKED.search(README)[0] == transports_table()


def test_the_table_of_settings_is_that_of_the_page():
    assert SETTINGS.search(README)[0] == settings_table()


def test_ci_runs_the_test_command_of_the_readme():
    marked = re.search(r"<!-- test -->\n```sh\n(.*?)\n```\n<!-- /test -->", README, re.DOTALL)
    assert marked[1] == "pip install -q -e '.[test]' && pytest -q"


def test_every_picture_is_there_in_both_themes_and_in_words():
    folder = Path(__file__).parents[1] / ".readme"
    shown = re.findall(r'srcset="\.readme/([\w-]+)-dark\.(\w+)"><img src="\.readme/([\w-]+)-light\.(\w+)" alt="([^"]{20,})"', README)
    assert len(shown) == README.count("<picture>") >= 6
    for dark, ending, light, same, _ in shown:
        assert (dark, ending) == (light, same)
        assert {(folder / f"{dark}-{theme}.{ending}").is_file() for theme in ("light", "dark")} == {True}


def test_the_frames_it_shows_are_answered():
    from starlette.applications import Starlette
    from starlette.testclient import TestClient

    from app.catalog import VIEWS
    from app.files import ROUTES

    first, second = re.findall(r'<iframe src="http://localhost:8501(/[^"]*)"', README)
    assert TestClient(Starlette(routes=ROUTES)).get(first).status_code == 200
    assert re.search(r"view=([\w-]+)", second)[1] in VIEWS
