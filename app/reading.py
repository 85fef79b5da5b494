"""What the controls say, read from the session before any of them is drawn.

A run can therefore draw its chart first. Values that cannot be used are named and the last one kept.
"""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from dataclasses import replace
from typing import Any

from app.state import BESIDE, State, record_of
from app.typed import bounded
from kvmodel import registry
from kvmodel.dtypes import PACKED_MLA_ROW_BYTES
from kvmodel.errors import KvModelError
from kvmodel.plan import plan_of
from kvmodel.records.model import Mla, ModelSpec
from kvmodel.scenario import Scenario, read_field

ARRIVED = "arrived"
"""Session key: this run shows another view than the last; its widgets start from the state, not from old values."""
IN_SIGHT = ("model", "prefill_tp", "decode_tp", "kv_dtype", "link")
MORE = (
    ("Prefill side", ("prefill_accelerator", "prefill_pp", "prefill_attention_dp", "prefill_held_tokens", "weight_dtype")),
    ("Wire", ("engine", "lanes", "shared_by", "wire_dtype", "block_tokens", "chunk_tokens", "group_layers")),
    (
        "Decode side",
        ("decode_accelerator", "decode_pp", "decode_attention_dp", "decode_held_tokens", "decode_batch", "output_tokens", "ep"),
    ),
    ("Your own measurements", ("prefill_seconds", "decode_step_seconds", "link_gbytes_per_s")),
)
KNOBS = (
    ("Messages", ("message_seconds", "posting_threads", "posts_while_sending", "outstanding_messages", "kv_split", "fragmentation")),
    ("Copies", ("cross_layer", "gather", "staging_copies", "host_bounce", "skips_held", "early_prefix")),
    (
        "Link and layout",
        ("nominal_link", "achieved", "latency_seconds", "nics_per_gpu", "max_lanes_per_gpu", "mla_copies", "keeps_all_chunked"),
    ),
    (
        "Between the sides",
        ("direction", "serial_below_tokens", "unequal_tp", "gathers_copied_heads", "nvfp4_equal_tp", "same_node_only"),
    ),
    ("Fixed times", ("handoff_seconds", "admission_seconds", "handshake_seconds", "contact", "first_token", "released_by")),
)
"""What the engine and the link have of their own, and a scenario may say otherwise."""
FILTERS = {"measured": ("measured_link", "measured_engine"), "matrices": ("layer",)}
"""Choices at the head of a view's picture."""
MORE_BESIDE = {
    "next-turn": ("This turn", ("generated_tokens", "local_prefill_tokens")),
    "wire": (
        "Sharing and failures",
        ("senders", "fabric", "decode_pool_gbytes", "failure_probability", "detection_seconds", "recovery", "lease_seconds"),
    ),
}
"""Inputs beside the scenario's that a view unfolds with the rest, with their title."""
Session = MutableMapping[str, Any]


def read(state: State, session: Session, sliders: Sequence[str]) -> State:
    """The state that the session's controls say, starting from the last one."""
    notes: list[str] = []
    changes: dict[str, Any] = {}
    beside: dict[str, Any] = {}
    for name in (
        *IN_SIGHT,
        *sliders,
        *FILTERS.get(session.get("view", ""), ()),
        *(_unfolded(session["view"]) if session.get("more_inputs") else ()),
    ):
        (beside if name in BESIDE else changes)[name] = _said(session, name, state.value(name), notes)
    if not has_mla(changes["model"]) and changes["kv_dtype"] in PACKED_MLA_ROW_BYTES:
        changes["kv_dtype"] = Scenario.model_fields["kv_dtype"].default
    scenario = _changed(state.scenario, changes, notes)
    scenario = _changed(scenario, {"overlap": _overlap(session, scenario)}, notes)
    return replace(state.with_values(beside), scenario=scenario, notes=(*state.notes, *notes))


def forget_positions(session: Session) -> None:
    """Let sliders take their positions from the state again, which came from elsewhere than the controls."""
    for key in [key for key in session if str(key).startswith("asked_")]:
        del session[key]


def _unfolded(view: str) -> tuple[str, ...]:
    return (*(name for _, group in (*MORE, *KNOBS) for name in group), *MORE_BESIDE.get(view, ("", ()))[1])


def text_key(name: str) -> str:
    """Session key of an input typed as text."""
    return f"text_{name}"


def _said(session: Session, name: str, last: Any, notes: list[str]) -> Any:
    """The value of one control; the last one where it was not drawn yet, or cannot be read."""
    if session.get(ARRIVED):
        return last
    if text_key(name) not in session:
        return session.get(name, last)
    try:
        text, record = bounded(name, session[text_key(name)]), record_of(name)
        value = read_field(record, name, text) if text else record.model_fields[name].default
        record(**{name: value})
    except KvModelError as error:
        notes.append(f"{error}. Keeping {_shown(last)}.")
        return last
    return value


def _changed(scenario: Scenario, changes: dict[str, Any], notes: list[str]) -> Scenario:
    """The scenario with all changes, or with those that go together: one bad value costs no other."""
    try:
        wanted = scenario.with_changes(**changes)
        plan_of(wanted)
        return wanted
    except KvModelError as error:
        if len(changes) == 1:
            name = next(iter(changes))
            notes.append(f"{str(error)[0].upper()}{str(error)[1:]}. Keeping {_shown(getattr(scenario, name))}.")
            return scenario
    for name, value in changes.items():
        scenario = _changed(scenario, {name: value}, notes)
    return scenario


def _overlap(session: Session, scenario: Scenario) -> str | None:
    """The overlap chosen; None, the engine's own, follows the engine until another is chosen."""
    engine = registry.engines()[scenario.engine]
    allowed = overlaps(scenario)
    chosen = session.get("overlap")
    followed = scenario.overlap is None and session.get("overlap_engine") != engine.id
    if session.get(ARRIVED) or followed or chosen not in allowed:
        kept = scenario.overlap if scenario.overlap in allowed else None
        session["overlap"] = chosen = kept or engine.overlap
    session["overlap_engine"] = engine.id
    return None if chosen == engine.overlap else chosen


def overlaps(scenario: Scenario) -> list[str]:
    """Overlaps the scenario's engine can have: decode starts layer by layer only where it makes the first token."""
    both = ["layer-both"] if (scenario.first_token or registry.engines()[scenario.engine].first_token) == "decode" else []
    return ["serial", "chunk", "layer", "layer-group", *both]


def has_mla(model: str | ModelSpec) -> bool:
    """Whether any layer of the model keeps a latent row."""
    spec = registry.find_model(model) if isinstance(model, str) else model
    return any(isinstance(group.attention, Mla) for group in spec.groups)


def _shown(value: Any) -> str:
    return "the default" if value is None else str(getattr(value, "id", value))
