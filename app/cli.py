"""The command line: `kv-handoff COMMAND [--field value ...] [--json]`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, NoReturn

import kvmodel
from app import answers
from app.compare_command import beside, beside_turn
from app.explain_command import FIGURES_OF, HELP, with_explanations
from app.flags import field_help, read_flags
from app.hosting import nginx
from app.model_names import find, scenario_of
from app.site import command as site
from kvmodel import registry
from kvmodel.cache import ModelCache, kv_dtype_of, model_cache
from kvmodel.config import ParsedConfig
from kvmodel.context import context_notes
from kvmodel.dtypes import KvDtype
from kvmodel.errors import BadScenarioError, KvModelError
from kvmodel.parameters import model_parameters
from kvmodel.ranks import RankShare, rank_share
from kvmodel.records.base import Record
from kvmodel.scenario import Scenario, parse_text, read_field
from kvmodel.traffic import Traffic
from kvmodel.turn import Turn

Json = dict[str, Any]


class _Parser(argparse.ArgumentParser):
    """Bad usage is one line on standard error and exit status 2."""

    def error(self, message: str) -> NoReturn:
        raise BadScenarioError(f"{message}; see {self.prog} --help")

    def format_help(self) -> str:
        """Help; that of `serve` lists the settings."""
        if self.prog.endswith(" serve"):
            from app.hosting.settings import settings_help

            self.epilog = settings_help()
        return super().format_help()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status is 0, or 2 for input that cannot be used."""
    try:
        options, rest = _parser().parse_known_args(arguments)
        command: Callable[[argparse.Namespace, list[str]], tuple[Json, str]] = options.run
        result, text = command(options, rest)
    except KvModelError as error:
        print(f"kv-handoff: {' '.join(str(error).split())[:600]}", file=sys.stderr)
        return 2
    return say(json.dumps(plain_numbers(result), allow_nan=False, ensure_ascii=False) if options.json else text)


def say(text: str) -> int:
    """Print an answer; a reader that stopped listening is no error."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="kv-handoff", description="What the KV-cache handoff of disaggregated LLM serving costs.", allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"kv-handoff {kvmodel.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)
    for name, (run, summary, records) in _COMMANDS.items():
        command = commands.add_parser(
            name, help=summary, description=summary, epilog=field_help(records), allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )  # fmt: skip
        command.set_defaults(run=run)
        command.add_argument("--json", action="store_true", help="print one JSON object, in base units")
        if name in FIGURES_OF:
            command.add_argument("--explain", nargs="?", const="", metavar="FIGURE", help=HELP)
        if name == "model":
            command.add_argument("model_name", metavar="ID|config.json", help="id or alias of a model, or a configuration file")
        if name == "list":
            command.add_argument("kind", choices=("models", "accelerators", "links", "engines", "charts"))
            command.add_argument("--search", default="", metavar="TEXT", help="only rows whose names, family or repositories hold this")
        if name == "chart":
            command.add_argument("chart_name", metavar="NAME", help="a chart of `kv-handoff list charts`")
            command.add_argument("--out", required=True, help="file to write: .html, .svg, .png, .json or .csv")
            command.add_argument("--size", default="", help="WIDTHxHEIGHT in pixels, of an image")
            command.add_argument("--theme", default="light", help="light, dark, or auto: the reader's own")
            command.add_argument("--shared-js", action="store_true", help="keep the script in a file beside the page, for several charts")
            command.add_argument("--explorer", default="", help="address of a page to open the scenario in")
        if name in ("evaluate", "turn", "chart"):
            command.add_argument("--against", metavar="QUERY", help="a scenario to compare with, as in a link: 'link=roce-100&batch=4'")
        if name == "export-site":
            site.add_options(command)
        if name == "serve":
            command.add_argument("--port", help="port of the page")
            command.add_argument("--no-browser", action="store_true", help="do not open a browser")
            command.add_argument("--address", help="address to listen on")
        if name == "nginx":
            nginx.arguments(command)
    return parser


def _scenario(rest: Sequence[str]) -> Scenario:
    return scenario_of(read_flags(rest, list(Scenario.model_fields)))


def _evaluate(options: argparse.Namespace, rest: list[str]) -> tuple[Json, str]:
    scenario = _scenario(rest)
    result = kvmodel.evaluate(scenario)
    shown = {name: value if isinstance(value, str | int | float | None) else value.id for name, value in scenario}
    tree, ways = result.as_dict(), kvmodel.remedies(scenario)
    head = {"scenario": shown, "feasible": tree.pop("feasible"), "reason": tree.pop("reason")}
    found = {**head, **tree, "remedies": [asdict(way) for way in ways], "version": kvmodel.__version__}
    said = found, answers.evaluation_text(scenario, result, ways)
    said = said if options.against is None else beside(*said, scenario, options.against)
    return with_explanations(options, said, scenario)


def _critical(options: argparse.Namespace, rest: list[str]) -> tuple[Json, str]:
    scenario = _scenario(rest)
    result, reason = kvmodel.critical_lengths(scenario), kvmodel.evaluate(scenario).reason
    found = {**result.as_dict(), "feasible": not reason, "reason": reason}
    return with_explanations(options, (found, answers.critical_text(scenario, result) + answers.infeasible_text(reason)), scenario)


def _turn(options: argparse.Namespace, rest: list[str]) -> tuple[Json, str]:
    texts = read_flags(rest, list(dict.fromkeys([*Turn.model_fields, *Scenario.model_fields])))
    asked = parse_text(Turn, {name: text for name, text in texts.items() if name in Turn.model_fields})
    scenario = scenario_of({name: text for name, text in texts.items() if name not in Turn.model_fields})
    result = kvmodel.agent_turn(scenario, asked)
    whole = scenario.with_changes(prompt_tokens=asked.history_tokens + asked.delta_tokens)
    evaluated = kvmodel.evaluate(whole)
    found = {**result.as_dict(), "feasible": not evaluated.reason, "reason": evaluated.reason, "notes": evaluated.notes}
    text = answers.turn_text(scenario, asked, result) + answers.infeasible_text(evaluated.reason) + answers.notes_text(evaluated.notes)
    said = (found, text) if options.against is None else beside_turn(found, text, (scenario, asked), options.against)
    return with_explanations(options, said, scenario, asked)


def _wire(options: argparse.Namespace, rest: list[str]) -> tuple[Json, str]:
    from app.wire_command import wire_json, wire_text

    texts = read_flags(rest, [*Traffic.model_fields, *Scenario.model_fields])
    asked = parse_text(Traffic, {name: text for name, text in texts.items() if name in Traffic.model_fields})
    scenario = scenario_of({name: text for name, text in texts.items() if name not in Traffic.model_fields})
    found = wire_json(scenario, asked)
    text = wire_text(found) + answers.infeasible_text(found["reason"]) + answers.notes_text(found["notes"])
    return with_explanations(options, (found, text), scenario)


def _model(options: argparse.Namespace, rest: list[str]) -> tuple[Json, str]:
    texts = read_flags(rest, ["tp", "kv_dtype", "tokens", "attention_dp", "pp", "speculation"])
    name: str = options.model_name
    parsed = find(name, speculation=_on(texts.get("speculation", "off")))
    tp = _renamed("tp", "prefill_tp", texts.get("tp", "1"))
    tokens = _renamed("tokens", "prompt_tokens", texts.get("tokens", "8192"))
    kv_dtype: KvDtype = _renamed("kv_dtype", "kv_dtype", texts.get("kv_dtype", "auto"))
    dp = _renamed("attention_dp", "prefill_attention_dp", texts.get("attention_dp", "1"))
    pp = _renamed("pp", "prefill_pp", texts.get("pp", "1"))
    result = model_row(parsed, tp=tp, tokens=tokens, kv_dtype=kv_dtype, attention_dp=dp, pp=pp)
    return result, answers.model_text(parsed, result, tokens)


def _on(text: str) -> bool:
    if text not in ("on", "off"):
        raise BadScenarioError(f"speculation: got {text[:60]!r}; allowed: on, off")
    return text == "on"


def _renamed(name: str, field: str, text: str) -> Any:
    try:
        return getattr(Scenario(**{field: read_field(Scenario, field, text)}), field)
    except BadScenarioError as error:
        raise BadScenarioError(str(error).replace(field, name, 1)) from None


def model_row(parsed: ParsedConfig, *, tp: int, tokens: int, kv_dtype: str, attention_dp: int = 1, pp: int = 1) -> Json:
    """The JSON of `kv-handoff model`: bytes of the whole model and of one rank."""
    spec, dtype = parsed.model, kv_dtype_of(parsed.model, kv_dtype)
    counts = model_parameters(spec)
    return {
        "id": spec.id,
        "name": spec.name,
        **_cache_numbers(model_cache(spec, kv_dtype=dtype), tokens),
        "total_params": counts.total,
        "active_params": counts.active,
        "assumed": list(parsed.assumed),
        "warnings": list(parsed.warnings),
        "notes": context_notes(spec, tokens),
        "rank": _rank_row(rank_share(spec, kv_dtype=dtype, tokens=tokens, tp=tp, attention_dp=attention_dp, pp=pp), tp, tokens),
        "tokens": tokens,
        "kv_dtype": dtype,
        "fields": [{"name": f.name, "value": f.value, "from": f.origin, "path": f.path} for f in parsed.fields],
        "source": spec.source,
        "checked": spec.checked.isoformat(),
    }


def _cache_numbers(cache: ModelCache, tokens: int) -> Json:
    return {
        "kv_bytes_per_token": cache.bytes_per_token,
        "window_bytes_max": cache.window_bytes_max,
        "state_bytes": cache.state_bytes,
        "prompt_bytes": cache.prompt_bytes(tokens),
    }


def _rank_row(share: RankShare, tp: int, tokens: int) -> Json:
    return {
        "tp": tp,
        **_cache_numbers(share.cache, tokens),
        "valid": share.valid,
        "reason": share.reason,
        "sum_over_ranks": share.sum_over_ranks,
        "replication_factor": share.replication,
    }


def _list(options: argparse.Namespace, rest: list[str]) -> tuple[Json, str]:
    read_flags(rest, [])
    rows = charts_listed() if options.kind == "charts" else list(getattr(registry, options.kind)().values())
    kept = [row for row in rows if named_by(row, options.search)]
    listed = kept if options.kind == "charts" else [answers.row_of(row) for row in kept]
    none = f"None of the {len(rows)} {options.kind} is named like {options.search[:60]!r}."
    return {options.kind: listed}, answers.table_text(listed) or none


def charts_listed() -> list[Json]:
    """The charts there are: id, title and view of each."""
    from app.catalog import CHARTS

    return [{"id": chart.name, "name": chart.title, "view": chart.view} for chart in CHARTS.values()]


def named_by(row: Any, text: str) -> bool:
    """Whether a row's id, names, family or repositories hold a text, whatever the case."""
    get = row.get if isinstance(row, dict) else lambda name, other: getattr(row, name, other)
    names = (*(get(name, "") for name in ("id", "name", "short", "family", "view")), *get("aliases", ()))
    return any(text.strip().lower() in str(name).lower() for name in names)


def _chart(options: argparse.Namespace, rest: list[str]) -> tuple[Json, str]:
    from app.export import command
    from app.state import BESIDE

    texts = read_flags(rest, [*Scenario.model_fields, *BESIDE])
    state = command.state_of(scenario_of({name: text for name, text in texts.items() if name not in BESIDE}), texts, options.against)
    written = command.write_chart(
        options.chart_name, state, options.out,
        size=options.size, theme=options.theme, shared=options.shared_js, explorer=options.explorer,
    )  # fmt: skip
    return written, command.written_text(written)


def _serve(options: argparse.Namespace, rest: list[str]) -> tuple[Json, str]:
    from app.hosting.command import start

    read_flags(rest, [])
    start(address=options.address, port=options.port, browser=not options.no_browser)
    return {}, ""


_COMMANDS: dict[str, tuple[Any, str, Sequence[type[Record]]]] = {
    "evaluate": (_evaluate, "what one handoff costs", (Scenario,)),
    "critical": (_critical, "from which prompt on the handoff matters", (Scenario,)),
    "turn": (_turn, "what an agent's next turn costs, by design", (Turn, Scenario)),
    "wire": (_wire, "where a handoff's time goes, alone, shared and failing", (Traffic, Scenario)),
    "model": (
        _model,
        "bytes a model's cache takes; --tp N, --kv-dtype D, --tokens N, --attention-dp N, --pp N; of a file --speculation on",
        (),
    ),
    "chart": (_chart, "one chart as a file: html, svg, png, json or csv", (Scenario, Turn, Traffic)),
    "export-site": (site.run, site.SUMMARY, ()),
    "list": (_list, "what can be named", ()),
    "serve": (_serve, "start the page", ()),
    "nginx": (nginx.run, "nginx's configuration for several replicas of the page", ()),
}


def plain_numbers(node: Any) -> Any:
    """JSON-ready values: whole floats as integers, tuples as lists."""
    if isinstance(node, dict):
        return {key: plain_numbers(value) for key, value in node.items()}
    if isinstance(node, list | tuple):
        return [plain_numbers(value) for value in node]
    if isinstance(node, float) and node.is_integer() and abs(node) < 2**53:
        return int(node)
    return node


if __name__ == "__main__":
    sys.exit(main())
