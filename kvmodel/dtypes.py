"""Number formats: bytes an element takes in a cache, in weights and on the wire."""

from __future__ import annotations

from typing import Literal

KvDtype = Literal[
    "auto",
    "bf16",
    "fp16",
    "fp32",
    "fp8",
    "int8",
    "int4",
    "nvfp4",
    "fp8_per_token_head",
    "int8_per_token_head",
    "int4_per_token_head",
    "fp8_ds_mla",
    "nvfp4_ds_mla",
]
WeightDtype = Literal["auto", "bf16", "fp16", "fp32", "fp8", "int8", "int4", "nvfp4", "mxfp4"]
WireDtype = Literal["same", "bf16", "fp16", "fp32", "fp8", "int8", "int4", "nvfp4"]
StoredDtype = Literal["bf16", "fp16", "fp32", "fp8", "int8", "int4", "nvfp4", "mxfp4"]

BYTES_PER_ELEMENT: dict[str, float] = {
    "fp32": 4.0,
    "bf16": 2.0,
    "fp16": 2.0,
    "fp8": 1.0,
    "int8": 1.0,
    "int4": 0.5,
    "nvfp4": 0.5 + 1 / 16,
    "mxfp4": 0.5 + 1 / 32,
}
"""Bytes an element, block scales included (NVFP4: one FP8 scale for 16 elements; MXFP4: one for 32)."""

PACKED_MLA_ROW_BYTES: dict[str, int] = {"fp8_ds_mla": 656, "nvfp4_ds_mla": 352}
"""Bytes of one token of one layer in vLLM's packed MLA rows, for a latent of 512 and 64 rotary elements.

fp8_ds_mla: 512 FP8 + 4 FP32 scales + 64 BF16; nvfp4_ds_mla: 512 FP4 + 64 FP8 + 32 scales.
Source: vLLM 0.33.0, vllm/v1/attention/backends/mla/flashmla_sparse.py.
"""

PACKED_COMPRESSED_ROW_BYTES: dict[str, int] = {"fp8_ds_mla": 584}
"""Bytes of one cached row of DeepSeek V4, of 512 elements: 448 FP8, 64 rotary BF16, 8 of scales.

Source: vLLM 0.33.0, vllm/models/deepseek_v4/attention.py.
"""

PER_TOKEN_HEAD_BYTES: dict[str, float] = {"fp8_per_token_head": 1.0, "int8_per_token_head": 1.0, "int4_per_token_head": 0.5}
"""Bytes an element where an engine keeps an FP32 scale beside each key and each value head of each token.

Source: vLLM 0.33.0, vllm/v1/attention/backends/triton_attn.py (names of its `--kv-cache-dtype`).
"""

PER_TOKEN_HEAD_SCALE_BYTES = 8.0
"""Bytes of the two FP32 scales of one head of one token, one for the key and one for the value."""

INDEX_DTYPE = "fp8"
"""Format in which an indexer's products run: its keys are cached in FP8 (DeepGEMM `fp8_mqa_logits`, as vLLM and SGLang call it)."""

MATMUL_DTYPE: dict[str, str] = {
    "fp32": "bf16",
    "bf16": "bf16",
    "fp16": "bf16",
    "fp8": "fp8",
    "int8": "bf16",
    "int4": "bf16",
    "nvfp4": "nvfp4",
    "mxfp4": "bf16",
}
"""Format in which the tensor cores multiply weights stored in a given format.

Integer and MXFP4 weights are unpacked to BF16 by the common kernels; FP8 and NVFP4 weights are
multiplied as they are where the accelerator can.
"""
