"""Number formats: of activations, of weights, of experts, of the cache."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kvmodel.config.reader import Reader
from kvmodel.config.text import shown
from kvmodel.dtypes import StoredDtype
from kvmodel.errors import BadConfigError

_NAMES: dict[str, StoredDtype] = {
    "bfloat16": "bf16",
    "bf16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "fp16": "fp16",
    "float32": "fp32",
    "float": "fp32",
    "fp32": "fp32",
}
_ALGORITHMS: dict[str, StoredDtype] = {
    "fp8": "fp8",
    "fp8_pb_wo": "fp8",
    "fp8_per_channel_per_token": "fp8",
    "fbgemm_fp8": "fp8",
    "mxfp8": "fp8",
    "nvfp4": "nvfp4",
    "nvfp4_awq": "nvfp4",
    "w4a8_awq": "int4",
    "w4a16_awq": "int4",
    "int8": "int8",
    "int8_sq": "int8",
    "w8a8_sq_per_channel": "int8",
}
_EXPERTS: dict[str, StoredDtype] = {"fp4": "mxfp4", "mxfp4": "mxfp4", "fp8": "fp8", "nvfp4": "nvfp4", "int4": "int4"}
_CACHES: dict[str, StoredDtype] = {"fp8": "fp8", "fp8_e4m3": "fp8", "static": "fp8", "nvfp4": "nvfp4", "int8": "int8"}
_QUARK: dict[str, StoredDtype] = {"fp4": "mxfp4", "fp8_e4m3": "fp8", "fp8": "fp8", "int8": "int8", "int4": "int4", "uint4": "int4"}


@dataclass(frozen=True, slots=True)
class Formats:
    """Formats of one model."""

    dtype: StoredDtype
    weight: StoredDtype
    expert: StoredDtype | None
    kv: StoredDtype | None


def formats_of(reader: Reader) -> Formats:
    """Formats as the file states them; quantized weights say nothing about the cache."""
    dtype = _activations(reader)
    quantization = _quantization(reader)
    weight = _weights(quantization) or dtype
    expert = _experts(reader, quantization)
    if _only_experts(quantization):
        weight, expert = dtype, expert or weight
    return Formats(dtype, weight, expert, _cache(reader, quantization))


def dtype_named(name: str, path: str) -> StoredDtype:
    """The format of a torch name. Raises BadConfigError for others."""
    known = _NAMES.get(name.removeprefix("torch.").lower())
    if known is None:
        raise BadConfigError(f"config: {path}: got {shown(name)}; allowed: bfloat16, float16, float32")
    return known


def _activations(reader: Reader) -> StoredDtype:
    stated = reader.text("torch_dtype")
    if stated is None or stated == "auto":
        reader.note("torch_dtype", "bfloat16", "derived", why="in which models are served")
        return "bf16"
    dtype = dtype_named(stated, reader.find("torch_dtype")[1])
    if dtype == "fp32":
        reader.warn("torch_dtype is float32: engines serve such files in bf16 or fp16; pass kv_dtype to count those")
    return dtype


def _quantization(reader: Reader) -> Mapping[str, Any]:
    """`quantization_config`, or the `quantization` object of ModelOpt's hf_quant_config.json."""
    for name in ("quantization_config", "compression_config", "quantization"):
        found = reader.stated(name)[0]
        if isinstance(found, Mapping) and found:
            inside = found.get("quantization")
            return inside if isinstance(inside, Mapping) else found
        if found is not None and name != "quantization" and not isinstance(found, Mapping):
            raise BadConfigError(f"config: {reader.path(name)}: got {shown(found)}; allowed: an object")
    return {}


def _weights(quantization: Mapping[str, Any]) -> StoredDtype | None:
    algorithm = str(quantization.get("quant_algo") or "").lower()
    method = str(quantization.get("quant_method") or "").lower()
    if algorithm in _ALGORITHMS:
        return _ALGORITHMS[algorithm]
    group = _weight_group(quantization)
    if group:
        return _bits(group.get("num_bits"), str(group.get("type")), group.get("group_size"))
    if method in ("awq", "gptq", "auto-round", "gptq_marlin", "awq_marlin", "hqq", "aqlm", "autoround"):
        return _bits(quantization.get("bits", quantization.get("w_bit", 4)), "int", None)
    if method == "quark":
        return _quark_dtype(quantization.get("global_quant_config"))
    if method == "bitsandbytes":
        return "int4" if quantization.get("load_in_4bit") else "int8"
    return {"mxfp4": "mxfp4", "fp8": "fp8", "fbgemm_fp8": "fp8", "modelopt": "fp8", "modelopt_fp4": "nvfp4"}.get(method)  # type: ignore[return-value]


def _quark_dtype(node: Any) -> StoredDtype | None:
    """The first format AMD Quark names in an object, of weights before that of activations."""
    if isinstance(node, list):
        return next(filter(None, map(_quark_dtype, node[:16])), None)
    if not isinstance(node, Mapping):
        return None
    named = node.get("dtype")
    if isinstance(named, str) and named.lower() in _QUARK:
        return _QUARK[named.lower()]
    inside = [node[key] for key in ("weight", "output_tensors") if key in node] or list(node.values())[:16]
    return next(filter(None, map(_quark_dtype, inside)), None)


def _weight_group(quantization: Mapping[str, Any]) -> Mapping[str, Any]:
    groups = quantization.get("config_groups")
    for group in groups.values() if isinstance(groups, Mapping) else ():
        weights = group.get("weights") if isinstance(group, Mapping) else None
        if isinstance(weights, Mapping):
            return weights
    return {}


def _bits(bits: Any, kind: str, group_size: Any) -> StoredDtype | None:
    if kind.startswith("float"):
        return {4: "mxfp4" if group_size == 32 else "nvfp4", 8: "fp8"}.get(bits) if isinstance(bits, int) else None
    return {4: "int4", 8: "int8", 3: "int4", 2: "int4"}.get(bits) if isinstance(bits, int) else None  # type: ignore[return-value]


def _only_experts(quantization: Mapping[str, Any]) -> bool:
    """MXFP4 files, and files whose attention is left out of the quantization, narrow the experts alone."""
    left_out = quantization.get("ignore") or quantization.get("modules_to_not_convert") or quantization.get("exclude_modules")
    names = " ".join(str(item) for item in left_out) if isinstance(left_out, list) else ""
    return str(quantization.get("quant_method")).lower() == "mxfp4" or ("self_attn" in names and "shared_experts" in names)


def _experts(reader: Reader, quantization: Mapping[str, Any]) -> StoredDtype | None:
    stated = quantization.get("expert_dtype") or reader.stated("expert_dtype")[0]
    return _EXPERTS.get(stated) if isinstance(stated, str) else None


def _cache(reader: Reader, quantization: Mapping[str, Any]) -> StoredDtype | None:
    """What the checkpoint asks of the cache: `kv_cache_scheme`, `kv_cache_quant_algo`."""
    root = reader.find("quantization_config")[1]
    scheme = quantization.get("kv_cache_scheme") or reader.stated("kv_cache_scheme")[0]
    algorithm = quantization.get("kv_cache_quant_algo")
    if isinstance(scheme, Mapping):
        found, path = _bits(scheme.get("num_bits"), str(scheme.get("type", "float")), 16), f"{root}.kv_cache_scheme"
    elif isinstance(algorithm or scheme, str) and str(algorithm or scheme).lower() not in ("none", "auto"):
        found, path = _CACHES.get(str(algorithm or scheme).lower()), f"{root}.kv_cache_quant_algo"
    elif isinstance(quantization.get("kv_cache_quant_config"), Mapping):
        found, path = _quark_dtype(quantization["kv_cache_quant_config"]), f"{root}.kv_cache_quant_config"
        if found is None:
            return None
    else:
        return None
    if found is None:
        raise BadConfigError(f"config: {path}: got {shown(algorithm or scheme)}; understood: 8-bit float or integer, NVFP4")
    reader.note("kv_cache_scheme", found, "file", path)
    return found
