"""Cost model of the KV-cache handoff between prefill and decode in disaggregated LLM serving.

Everything inside is in base units: bytes, seconds, FLOP, tokens, bytes per second in one direction.

>>> import kvmodel
>>> result = kvmodel.evaluate(kvmodel.Scenario(model="llama-3-70b", prompt_tokens=8192))
>>> result.kv.prompt_bytes
2684354560.0
"""

from kvmodel.config import ParsedConfig, parse_model_config
from kvmodel.critical import CriticalLengths, Interval, critical_lengths
from kvmodel.errors import BadConfigError, BadQuantityError, BadScenarioError, KvModelError, UnknownNameError
from kvmodel.evaluate import evaluate, remedies, sweep
from kvmodel.quantity import parse_quantity
from kvmodel.records.engine import Engine
from kvmodel.records.hardware import Accelerator, Link
from kvmodel.records.model import ModelSpec
from kvmodel.registry import find_model
from kvmodel.results import Evaluation
from kvmodel.scenario import Scenario
from kvmodel.turn import Turn, TurnResult, agent_turn

__all__ = [
    "Accelerator",
    "BadConfigError",
    "BadQuantityError",
    "BadScenarioError",
    "CriticalLengths",
    "Engine",
    "Evaluation",
    "Interval",
    "KvModelError",
    "Link",
    "ModelSpec",
    "ParsedConfig",
    "Scenario",
    "Turn",
    "TurnResult",
    "UnknownNameError",
    "agent_turn",
    "critical_lengths",
    "evaluate",
    "find_model",
    "parse_model_config",
    "parse_quantity",
    "remedies",
    "sweep",
]
__version__ = "0.1.0"
