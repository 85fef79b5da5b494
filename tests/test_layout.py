"""What may import what, what is public, and what the top of the repository holds."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import kvmodel

ALLOWED_TOP = {"pyproject.toml", "README.md", "Dockerfile", "data", "kvmodel", "app", "tests"}
MAX_LINES = 300
MAX_NAMES = 25


def python_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.py") if "__pycache__" not in path.parts)


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield f"{node.module}"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def offenders(folder: Path, forbidden: tuple[str, ...]) -> list[str]:
    return [
        f"{path.name}: {name}"
        for path in python_files(folder)
        for name in imported(path)
        if any(name == word or name.startswith(word + ".") for word in forbidden)
    ]


def test_the_model_imports_no_page_no_plot_and_no_table(root: Path) -> None:
    assert len(python_files(root / "kvmodel")) > 20
    assert offenders(root / "kvmodel", ("streamlit", "plotly", "pandas", "app", "scipy")) == []


def test_nothing_of_the_page_is_loaded_with_the_model(root: Path) -> None:
    code = "import sys, kvmodel; print(sorted({m.split('.')[0] for m in sys.modules} & {'streamlit', 'plotly', 'pandas', 'app', 'scipy'}))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root, timeout=60, check=True)
    assert ran.stdout == "[]\n"


def test_charts_import_no_streamlit_and_nothing_above_them(root: Path) -> None:
    assert offenders(root / "app" / "charts", ("streamlit", "app.views", "app.main", "app.controls")) == []


def test_records_know_no_physics(root: Path) -> None:
    below = {"kvmodel.records", "kvmodel.quantity", "kvmodel.dtypes", "kvmodel.errors"}
    for path in python_files(root / "kvmodel" / "records"):
        own = {name for name in imported(path) if name.startswith("kvmodel")}
        assert {name for name in own if not any(name == b or name.startswith(b + ".") for b in below)} == set(), path.name


def test_modules_of_the_model_import_without_a_circle(root: Path) -> None:
    names = {
        f"kvmodel.{path.stem}": path for path in python_files(root / "kvmodel") if path.parent.name == "kvmodel" and path.stem != "__init__"
    }
    graph = {name: {i for i in imported(path) if i in names} for name, path in names.items()}
    while graph:
        free = {name for name, needs in graph.items() if not needs & set(graph)}
        assert free, f"a circle among {sorted(graph)}"
        graph = {name: needs for name, needs in graph.items() if name not in free}


def test_public_names_are_sorted_few_and_there() -> None:
    names = kvmodel.__all__
    assert names == sorted(names)
    assert len(names) <= MAX_NAMES
    assert {"Scenario", "agent_turn", "critical_lengths", "evaluate", "find_model", "parse_model_config", "sweep"} <= set(names)
    assert all(getattr(kvmodel, name).__doc__ for name in names)


def test_every_public_name_is_declared() -> None:
    here = {
        name for name, value in vars(kvmodel).items() if not name.startswith("_") and getattr(value, "__module__", "").startswith("kvmodel")
    }
    assert here == set(kvmodel.__all__)


def tracked(root: Path) -> list[str]:
    ran = subprocess.run(["git", "ls-files"], capture_output=True, text=True, cwd=root, timeout=30, check=False)
    if ran.returncode:
        pytest.skip("not a git checkout")
    return ran.stdout.splitlines()


def test_the_top_of_the_repository_holds_only_what_belongs_there(root: Path) -> None:
    top = {name.split("/")[0] for name in tracked(root)}
    assert {name for name in top if not name.startswith(".")} <= ALLOWED_TOP


def test_no_file_of_python_is_longer_than_300_lines(root: Path) -> None:
    long = {name: len((root / name).read_text(encoding="utf-8").splitlines()) for name in tracked(root) if name.endswith(".py")}
    assert {name: lines for name, lines in long.items() if lines > MAX_LINES} == {}


def test_every_module_of_the_model_has_its_test(root: Path) -> None:
    without = {"__init__", "dtypes", "errors", "numeric", "results"}  # a table, exceptions, four functions, names
    covered_by = {
        "asked": "engines", "changes": "compare", "compare_turns": "compare", "designs": "turn", "evaluate": "sweep",
        "flop": "terms", "idle": "context", "kernels": "terms", "lane": "wire", "lanes": "rails", "layer_time": "replicas",
        "operations": "matrices", "placement": "compute", "plan": "handoff", "progress": "handoff", "refusals": "engines",
        "remedies": "reason", "structure": "sweep", "terms": "compute", "traffic": "congestion", "transport": "transports", "work": "terms",
    }  # fmt: skip
    tests = {path.stem.removeprefix("test_") for path in (root / "tests").glob("test_*.py")}
    modules = {path.stem for path in (root / "kvmodel").glob("*.py")} - without - {"config"}
    assert {module for module in modules if covered_by.get(module, module) not in tests} == set()
