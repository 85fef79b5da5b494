"""One handoff, fully described: every input of the model, declared once.

The slider, its help text, the URL key, the command-line flag and the test strategy all come from
the fields below.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import Field, ValidationError

from kvmodel.dtypes import KvDtype, WeightDtype, WireDtype
from kvmodel.errors import BadScenarioError
from kvmodel.records.base import Record
from kvmodel.records.engine import Overlap
from kvmodel.records.model import ModelSpec

R = TypeVar("R", bound=Record)

MAX_PROMPT_TOKENS = 1_048_576

Tp = Annotated[int, Field(ge=1, le=64)]
Held = Annotated[int, Field(ge=0, le=MAX_PROMPT_TOKENS)]
Measured = Annotated[float, Field(ge=1e-6, le=100_000)]
Fixed = Annotated[float, Field(ge=0, le=3600)]
YesNo = Literal["no", "yes"]


class Inputs(Record):
    """A record that people fill in: what it cannot take is named in a sentence. Raises BadScenarioError."""

    def __init__(self, **fields: Any) -> None:
        refuse_truth(fields, type(self))
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise BadScenarioError(describe_errors(error, type(self))) from None

    def changed(self) -> dict[str, Any]:
        """The fields that differ from the defaults, in the order of declaration."""
        return {name: getattr(self, name) for name, field in type(self).model_fields.items() if getattr(self, name) != field.default}


class Scenario(Inputs):
    """Inputs of one handoff. Immutable; change it with `with_changes`, which validates."""

    model: str | ModelSpec = Field("llama-3-70b", title="Model")
    """The model, by id or alias, or a specification of your own."""
    prompt_tokens: int = Field(8192, ge=1, le=MAX_PROMPT_TOKENS, title="Prompt tokens")
    """Tokens of the prompt, history included."""
    output_tokens: int = Field(500, ge=1, le=MAX_PROMPT_TOKENS, title="Output tokens")
    """Tokens generated for the request."""
    batch: int = Field(1, ge=1, le=1024, title="Batch")
    """Requests that arrive together and are prefilled and handed off together."""
    prefill_held_tokens: Held = Field(0, title="Tokens prefill holds")
    """Leading prompt tokens whose KV prefill already has; no more than the prompt counts."""
    decode_held_tokens: Held = Field(0, title="Tokens decode holds")
    """Leading prompt tokens whose KV decode already has; whole blocks count."""
    kv_dtype: KvDtype = Field("auto", title="KV dtype")
    """Format of the KV cache in memory; auto follows the model's configuration."""
    weight_dtype: WeightDtype = Field("auto", title="Weight dtype")
    """Format of the linear layers; auto is as published."""
    wire_dtype: WireDtype = Field("same", title="Wire dtype")
    """Format while crossing the link; a narrower one is quantized before and restored after."""
    prefill_accelerator: str = Field("h100-sxm", title="Prefill GPU")
    """Accelerator of the prefill side."""
    decode_accelerator: str = Field("h100-sxm", title="Decode GPU")
    """Accelerator of the decode side."""
    prefill_tp: Tp = Field(8, title="Prefill TP")
    """Tensor-parallel ranks of one prefill instance."""
    decode_tp: Tp = Field(8, title="Decode TP")
    """Tensor-parallel ranks of one decode instance."""
    prefill_pp: Tp = Field(1, title="Prefill PP")
    """Pipeline stages of one prefill instance."""
    decode_pp: Tp = Field(1, title="Decode PP")
    """Pipeline stages of one decode instance."""
    ep: int = Field(1, ge=1, le=512, title="Expert parallel")
    """Ranks over which each layer's experts are spread, in place of TP for them; 1 = with TP."""
    prefill_attention_dp: Tp = Field(1, title="Prefill attention DP")
    """Attention replicas inside the prefill instance, each with TP / DP ranks and whole requests."""
    decode_attention_dp: Tp = Field(1, title="Decode attention DP")
    """Attention replicas inside the decode instance, each with TP / DP ranks and whole requests."""
    link: str = Field("ib-ndr-400", title="Link")
    """What the cache crosses."""
    lanes: Annotated[int, Field(ge=1, le=512)] | Literal["auto"] = Field(1, title="Lanes")
    """Links used side by side; auto takes the NICs of the narrower side. 1 is what the published scenario has."""
    shared_by: int = Field(1, ge=1, le=1024, title="Handoffs sharing a lane")
    """Handoffs that share each lane at the same time."""
    engine: str = Field("ideal", title="Engine")
    """How the handoff is done. Dynamo runs vLLM, SGLang or TensorRT-LLM: the engine is the one it runs."""
    overlap: Overlap | None = Field(None, title="Overlap")
    """What crosses while prefill computes: nothing, whole chunks, single layers, groups of layers, or layers that decode starts on."""
    group_layers: Annotated[int, Field(ge=1, le=512)] | None = Field(None, title="Layers of a group")
    """Layers that leave together where overlap is layer-group; None is the size that leaves least exposed."""
    block_tokens: int | None = Field(None, ge=1, le=65_536, title="Block tokens")
    """Tokens of a cache block; None is the engine's."""
    chunk_tokens: int | None = Field(None, ge=16, le=MAX_PROMPT_TOKENS, title="Chunk tokens")
    """Tokens of a prefill chunk; None is the engine's."""
    prefill_seconds: Measured | None = Field(None, title="Measured prefill, s")
    """Your measured prefill time, in place of the modelled one."""
    decode_step_seconds: Measured | None = Field(None, title="Measured decode step, s")
    """Your measured decode step, in place of the modelled one."""
    link_gbytes_per_s: Measured | None = Field(None, title="Measured bandwidth, GB/s a lane")
    """Your measured bandwidth of one lane, one direction, in place of the link's."""
    decode_batch: int = Field(1, ge=1, le=4096, title="Decode batch")
    """Requests decoded together in one step, this one among them."""

    achieved: Annotated[float, Field(gt=0, le=1)] | None = Field(None, title="Achieved share of nominal")
    """Share of the link's nominal bandwidth that transfers reach; None is the link's."""
    latency_seconds: Fixed | None = Field(None, title="Link latency, s")
    """From the last byte sent to the last byte usable; None is the link's."""
    message_seconds: Annotated[float, Field(ge=0, le=1)] | None = Field(None, title="Cost of a message, s")
    """Time to post one message; None is the engine's, or the link's."""
    posting_threads: Annotated[int, Field(ge=1, le=64)] | None = Field(None, title="Posting threads")
    """Threads that post messages side by side; None is the engine's."""
    outstanding_messages: Annotated[int, Field(ge=1, le=MAX_PROMPT_TOKENS)] | None = Field(None, title="Messages in flight")
    """Messages in flight on a lane before the engine waits for the oldest; None is the engine's."""
    kv_split: Annotated[int, Field(ge=1, le=2)] | None = Field(None, title="Messages for K and V")
    """2 where K and V of a block are separate messages; None is the engine's."""
    fragmentation: Annotated[float, Field(ge=0, le=1)] | None = Field(None, title="Fragmentation")
    """Share of a layer's blocks that need a message of their own, 0 for one run a layer; None is the engine's."""
    cross_layer: YesNo | None = Field(None, title="Layers of a block together")
    """Whether one message carries a block of all layers, as a layout with blocks outermost allows; None is the engine's way."""
    gather: YesNo | None = Field(None, title="Gather before sending")
    """Whether blocks are copied into one run a layer before sending and apart afterwards; None is the engine's way."""
    staging_copies: Annotated[int, Field(ge=0, le=4)] | None = Field(None, title="Staging copies")
    """Extra passes of the bytes through device memory, both sides together; None is the engine's."""
    host_bounce: YesNo | None = Field(None, title="Through host memory")
    """Whether the bytes go through host memory on both sides; None is the engine's way."""
    max_lanes_per_gpu: Annotated[int, Field(ge=1, le=64)] | None = Field(None, title="Rails a GPU may use")
    """NICs one rank may use, where lanes are derived; None is the engine's."""
    nics_per_gpu: Annotated[float, Field(gt=0, le=8)] | None = Field(None, title="NICs a GPU")
    """NICs a GPU has in the nodes of both sides, where lanes are derived; None is the usual node's."""
    mla_copies: Literal["per-rank", "single", "split"] | None = Field(None, title="MLA copies")
    """One latent for each decode rank, for a single reader, or in parts to all and gathered there; None is the engine's way."""
    handoff_seconds: Fixed | None = Field(None, title="Fixed handoff, s")
    """Engine's own dispatch and notification; None is the engine's."""
    admission_seconds: Fixed | None = Field(None, title="Admission, s")
    """Until decode admits the request; None is the engine's."""
    handshake_seconds: Fixed | None = Field(None, title="Handshake, s")
    """Once for a pair of instances, on first contact; None is the engine's."""
    posts_while_sending: YesNo | None = Field(None, title="Posts while sending")
    """Whether messages are posted beside the wire (the slower counts) or before it (they add); None is the engine's way."""
    skips_held: YesNo | None = Field(None, title="Leaves out held blocks")
    """Whether blocks that decode already holds stay where they are; None is the engine's way."""
    early_prefix: YesNo | None = Field(None, title="Sends a held prefix early")
    """Whether the prefix that prefill holds leaves before the first new token is computed; None is the engine's way."""
    unequal_tp: Literal["blocks", "tokens", "refused"] | None = Field(None, title="Between unequal TP")
    """A slice of every block, a slice of every token, or no handoff at all; None is the engine's way."""
    first_token: Literal["prefill", "decode"] | None = Field(None, title="First token made by")
    """Side that computes the first token; None is the engine's way."""
    released_by: Literal["prefill", "decode"] | None = Field(None, title="First token released by")
    """Side that sends the first token to the user; None is the engine's way."""
    direction: Literal["push", "pull"] | None = Field(None, title="Direction")
    """Whether prefill's ranks write and post the messages or decode's read and post them; None is the engine's way."""
    serial_below_tokens: Held | None = Field(None, title="Whole below, tokens")
    """Prompts shorter than this cross whole after prefill, whatever the overlap; None is the engine's, under its own overlap."""
    nominal_link: YesNo | None = Field(None, title="Link as nominal")
    """Whether the link's nominal bandwidth is reached, with no latency and no cost a message of the link's; None is the engine's way."""
    keeps_all_chunked: YesNo | None = Field(None, title="Keeps all of local chunks")
    """Whether layers of chunked local attention keep every token, and not only those of the last chunk; None is the engine's way."""
    gathers_copied_heads: YesNo | None = Field(None, title="Fewer readers of copied heads")
    """Whether fewer decode ranks may read from prefill ranks that hold copies of KV heads; None is the engine's way."""
    nvfp4_equal_tp: YesNo | None = Field(None, title="NVFP4 at equal TP only")
    """Whether an NVFP4 cache between sides of different TP is refused; None is the engine's way."""
    same_node_only: YesNo | None = Field(None, title="Inside a node only")
    """Whether links that leave the node are refused; None is the engine's way."""
    contact: Literal["warm", "first"] = Field("warm", title="Contact")
    """Whether the two instances have met; a first contact waits for the handshake."""

    def with_changes(self, **changes: Any) -> Scenario:
        """A validated copy with some fields replaced. Raises BadScenarioError."""
        return Scenario(**{**{name: getattr(self, name) for name in type(self).model_fields}, **changes})


def refuse_truth(fields: Mapping[str, Any], record: type[Record]) -> None:
    """Refuse True and False, which Python counts as 1 and 0, where a number is due. Raises BadScenarioError."""
    for name, value in fields.items():
        if isinstance(value, bool) and name in record.model_fields:
            raise BadScenarioError(f"{name}: got {value}; allowed: {allowed_values(record, name)}")


def need_scenario(scenario: object) -> None:
    """Refuse anything but a Scenario, in a sentence. Raises BadScenarioError."""
    if not isinstance(scenario, Scenario):
        raise BadScenarioError(f"scenario: got {type(scenario).__name__}; allowed: a Scenario, as in Scenario(model='llama-3-70b')")


def describe_errors(error: ValidationError, record: type[Record]) -> str:
    """One sentence for each field at fault: its name, what came, what is allowed."""
    sentences: dict[str, str] = {}
    for item in error.errors():
        name = str(item["loc"][0]) if item["loc"] else "scenario"
        came = repr(item.get("input"))
        came = came if len(came) <= 60 else came[:57] + "..."
        allowed = allowed_values(record, name) if name in record.model_fields else f"one of {', '.join(record.model_fields)}"
        sentences.setdefault(name, f"{name}: got {came}; allowed: {allowed}")
    return "; ".join(list(sentences.values())[:3])


def allowed_values(record: type[Record], name: str) -> str:
    """What a field takes, in words: `a whole number from 1 to 1,024`."""
    field = record.model_fields[name]
    words, numbers, kind, optional = [], [], "", False
    for annotation in [field.annotation, *get_args(field.annotation)]:
        optional |= annotation is type(None)
        if getattr(annotation, "__origin__", None) is Literal or type(annotation).__name__ == "_LiteralGenericAlias":
            words += [str(value) for value in get_args(annotation)]
        for part in (annotation, *get_args(annotation)):
            kind = {int: "a whole number", float: "a number"}.get(part, kind) if isinstance(part, type) else kind
    low, high = bounds(record, name)
    if kind:
        numbers = [f"{kind} from {_plain(low)} to {high:,}" if low is not None else f"{kind} above 0 up to {high:,}"]
    if not numbers and not words:
        words = ["an id from `kv-handoff list`"]
    return " or ".join([*numbers, *([", ".join(words)] if words else []), *(["none"] if optional else [])])


def _plain(low: float) -> str:
    """A bound as people write it."""
    return f"{low:,}" if low >= 1 or low == 0 else f"{low:f}".rstrip("0")


def bounds(record: type[Record], name: str) -> tuple[float | None, float | None]:
    """Lowest and highest value a numeric field takes; None where the bound is open or absent."""
    field = record.model_fields[name]
    metadata = list(field.metadata)
    for annotation in get_args(field.annotation):
        metadata += getattr(annotation, "__metadata__", ())
    flat = [m for item in metadata for m in (getattr(item, "metadata", None) or [item])]
    low = next((item.ge for item in flat if hasattr(item, "ge")), None)
    high = next((item.le for item in flat if hasattr(item, "le")), None)
    return low, high


_WHOLE = re.compile(r"[+-]?\d{1,18}", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(\d{1,18}(\.\d{0,30})?|\.\d{1,30})(e[+-]?\d{1,2}|e-\d{3})?", re.ASCII | re.IGNORECASE)


def from_text(texts: Mapping[str, str], base: Scenario | None = None) -> Scenario:
    """Read fields as people type them, on the command line or in a link.

    A whole number is digits only: `8,192`, `1e6` and `0,8` are refused, never reinterpreted.
    `none` stands for no value. Raises BadScenarioError naming the field, what came, what is allowed.
    """
    start = base or Scenario()
    return start.with_changes(**{name: read_field(Scenario, name, text) for name, text in texts.items()})


def parse_text(record: type[R], texts: Mapping[str, str]) -> R:
    """A record from texts, its other fields at their defaults. Raises BadScenarioError."""
    return record(**{name: read_field(record, name, text) for name, text in texts.items()})


def read_field(record: type[Record], name: str, text: str) -> Any:
    """The value a text stands for in one field; bounds are checked by the record itself."""
    if name not in record.model_fields:
        raise BadScenarioError(f"no input is called {name[:60]!r}; allowed: {', '.join(record.model_fields)}")
    types = {part for part in _flatten(record.model_fields[name].annotation) if isinstance(part, type)}
    text = text.strip()
    if text.lower() in ("none", "") and type(None) in types:
        return None
    if int in types and _WHOLE.fullmatch(text):
        return int(text)
    if float in types and _DECIMAL.fullmatch(text):
        return float(text)
    if types & {int, float} and not (name == "lanes" and text.lower() == "auto"):
        shown = text if len(text) <= 60 else text[:57] + "..."
        raise BadScenarioError(f"{name}: got {shown!r}; allowed: {allowed_values(record, name)}")
    return text.lower()


def _flatten(annotation: Any) -> list[Any]:
    return [annotation, *(leaf for part in get_args(annotation) for leaf in _flatten(part))]
