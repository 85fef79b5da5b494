"""Engine and link as a scenario asks for them: their rows, with the scenario's own values in place of some."""

from __future__ import annotations

from typing import Any

from kvmodel import registry
from kvmodel.errors import BadScenarioError
from kvmodel.records.engine import Engine
from kvmodel.records.hardware import Link
from kvmodel.structure import Structure

SAME_NAME = (
    "message_seconds",
    "posting_threads",
    "outstanding_messages",
    "kv_split",
    "fragmentation",
    "staging_copies",
    "max_lanes_per_gpu",
    "mla_copies",
    "handoff_seconds",
    "admission_seconds",
    "handshake_seconds",
    "unequal_tp",
    "first_token",
    "released_by",
    "direction",
    "serial_below_tokens",
)
"""Scenario fields that replace the engine's of the same name."""


YES_NO = (
    "host_bounce",
    "cross_layer",
    "posts_while_sending",
    "skips_held",
    "early_prefix",
    "nominal_link",
    "keeps_all_chunked",
    "gathers_copied_heads",
    "nvfp4_equal_tp",
    "same_node_only",
)
"""Scenario fields that say yes or no to the engine's of the same name."""


def engine_as_asked(s: Structure) -> Engine:
    """The engine of a structure. Raises UnknownNameError, and BadScenarioError where two of its values exclude each other.

    Its fixed handoff is that of the prefill accelerator where the engine was measured on it. A share of nominal or a
    latency that is asked for counts in place of the engine's, which sees to the rest of the link (`link_as_asked`).
    """
    engine = registry.find("engine", s.engine, registry.engines())
    changes: dict[str, Any] = {}
    if s.prefill_accelerator in engine.handoff_seconds_on:
        changes["handoff_seconds"] = engine.handoff_seconds_on[s.prefill_accelerator]
    changes |= {name: getattr(s, name) for name in SAME_NAME if getattr(s, name) is not None}
    chosen = {"gathers": s.gather, **{name: getattr(s, name) for name in YES_NO}}
    changes |= {name: answer == "yes" for name, answer in chosen.items() if answer is not None}
    if s.achieved is not None or s.latency_seconds is not None:
        changes["nominal_link"] = False
    asked = engine.model_copy(update=changes) if changes else engine
    if asked.released_by == "prefill" and asked.first_token == "decode":
        raise BadScenarioError("released_by: got 'prefill', which cannot release a token that decode makes; allowed: decode")
    return asked


def link_as_asked(s: Structure) -> Link:
    """The link of a structure. Raises UnknownNameError.

    Where links are taken as nominal, what is not asked for stays nominal.
    """
    link = registry.find("link", s.link, registry.links())
    asked = {"achieved": s.achieved, "latency": s.latency_seconds}
    changes: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
    nominal = registry.engines()[s.engine].nominal_link if s.nominal_link is None else s.nominal_link == "yes"
    if changes and nominal:
        changes = {"achieved": 1.0, "latency": 0.0, "message_seconds": 0.0} | changes
    return link.model_copy(update=changes) if changes else link
