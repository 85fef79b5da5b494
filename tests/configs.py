"""Smallest configurations that several tests start from; sizes as their pages on Hugging Face state them."""

from __future__ import annotations

from datetime import date
from typing import Any

from kvmodel.records.model import LayerGroup, ModelSpec, Moe, NoAttention

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
}
QWEN3: dict[str, Any] = {
    "model_type": "qwen3",
    "num_hidden_layers": 36,
    "hidden_size": 2560,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "torch_dtype": "bfloat16",
}
A3B = ModelSpec(
    id="a3b",
    name="A3B",
    family="made up",
    hidden=2048,
    vocab=0,
    groups=(LayerGroup(count=40, attention=NoAttention(), ffn=Moe(experts=262, top_k=8, inter=512, shared_inter=8010)),),
    source="definition: 35 B parameters of which a token visits 3 B, to 0.2 %",
    checked=date(2026, 11, 29),
)
