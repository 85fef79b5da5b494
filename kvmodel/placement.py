"""One side of the handoff: a model's weights and cache laid out on accelerators."""

from __future__ import annotations

from dataclasses import dataclass

from kvmodel.dtypes import BYTES_PER_ELEMENT, MATMUL_DTYPE
from kvmodel.records.hardware import Accelerator
from kvmodel.records.model import ModelSpec


@dataclass(frozen=True, slots=True)
class Placement:
    """One side of the handoff: a model's weights and cache laid out on accelerators."""

    model: ModelSpec
    accelerator: Accelerator
    tp: int
    attention_dp: int
    ep: int
    kv_dtype: str
    weight_dtype: str
    keeps_all_chunked: bool = False

    @property
    def attention_tp(self) -> int:
        """Ranks that share one request's attention."""
        return max(1, self.tp // self.attention_dp)

    @property
    def expert_shards(self) -> int:
        """Ranks over which routed experts are spread."""
        return max(self.tp, self.ep)

    @property
    def routes_tokens(self) -> bool:
        """Whether ranks keep their own tokens and send each to its experts: every rank an attention replica, experts whole."""
        return self.ep > 1 and self.attention_dp == self.tp > 1

    @property
    def spans_nodes(self) -> bool:
        """Whether the tensor-parallel ranks do not fit in one node."""
        return self.tp > self.accelerator.gpus_per_node

    @property
    def stored_dtype(self) -> str:
        """Format in which the linear layers are stored."""
        return self.model.weight_dtype if self.weight_dtype == "auto" else self.weight_dtype

    @property
    def dense_bytes(self) -> float:
        """Bytes of one parameter of the linear layers."""
        return BYTES_PER_ELEMENT[self.stored_dtype]

    @property
    def expert_bytes(self) -> float:
        """Bytes of one parameter of a routed expert."""
        published = self.model.expert_dtype or self.model.weight_dtype
        return BYTES_PER_ELEMENT[published if self.weight_dtype == "auto" else self.weight_dtype]

    @property
    def matmul_dtype(self) -> str:
        """Format in which most of the matrix multiplication runs; NVFP4 weights are unpacked to BF16 where tensor cores have no FP4.

        vLLM and SGLang do so in their Marlin kernels (https://github.com/sgl-project/sglang/pull/19652).
        """
        format_ = MATMUL_DTYPE[self.stored_dtype]
        return "bf16" if format_ == "nvfp4" and not self.accelerator.peak_nvfp4 else format_

    @property
    def peak(self) -> float:
        """FLOP/s of one accelerator at that format; the next wider one where it has none."""
        a = self.accelerator
        fp8 = a.peak_fp8 or a.peak_bf16
        return {"bf16": a.peak_bf16, "fp8": fp8, "nvfp4": a.peak_nvfp4 or a.peak_bf16}[self.matmul_dtype]
