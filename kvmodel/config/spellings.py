"""What families call the same fact: the usual key of a `config.json`, then other spellings of it.

A dot reaches into a nested object. Sources: transformers 5.24.0 (`attribute_map` of the configuration
classes) and vLLM 0.33.0 transformers_utils/config.py.
"""

from __future__ import annotations

SPELLINGS: dict[str, tuple[str, ...]] = {
    "num_hidden_layers": ("n_layer", "n_layers", "num_layers", "num_transformer_layers"),
    "hidden_size": ("n_embd", "d_model", "n_embed"),
    "num_attention_heads": ("n_head", "n_heads", "num_heads", "attention_heads", "num_query_heads"),
    "num_key_value_heads": (
        "num_kv_heads",
        "n_head_kv",
        "multi_query_group_num",
        "num_attention_groups",
        "attn_config.kv_n_heads",
        "kv_n_heads",
    ),
    "head_dim": ("attention_head_dim", "kv_channels", "hidden_size_per_head", "n_embd_head"),
    "intermediate_size": ("ffn_dim", "n_inner", "ffn_hidden_size", "ff_intermediate_size"),
    "vocab_size": ("padded_vocab_size",),
    "max_position_embeddings": ("n_positions", "max_seq_len", "model_max_length", "seq_length", "n_ctx", "max_sequence_length"),
    "torch_dtype": ("dtype",),
    "sliding_window": ("attention_window_size", "sliding_window_size", "window_size", "attn_config.sliding_window_size"),
    "sliding_window_pattern": ("_sliding_window_pattern", "global_attn_every_n_layers"),
    "num_experts": ("n_routed_experts", "num_local_experts", "moe_num_experts", "ffn_config.moe_num_experts"),
    "num_experts_per_tok": (
        "num_experts_per_token",
        "experts_per_token",
        "moe_topk",
        "moe_k",
        "moe_top_k",
        "top_k_experts",
        "ffn_config.moe_top_k",
    ),
    "moe_intermediate_size": ("expert_ffn_hidden_size", "expert_intermediate_size", "ffn_config.ffn_hidden_size"),
    "shared_expert_intermediate_size": ("moe_shared_expert_intermediate_size", "share_expert_dim", "shared_intermediate_size"),
    "n_shared_experts": ("num_shared_experts", "num_shared_expert", "moe_num_shared_experts"),
    "first_k_dense_replace": ("num_dense_layers",),
    "index_head_dim": ("sparse_attention_config.sparse_index_dim",),
    "index_n_heads": ("sparse_attention_config.sparse_num_index_heads",),
    "index_topk_blocks": ("sparse_attention_config.sparse_topk_blocks",),
    "index_block_size": ("sparse_attention_config.sparse_block_size",),
    "num_nextn_predict_layers": ("mtp_num_hidden_layers", "num_mtp_modules", "num_mtp_layers"),
    "mamba_num_heads": ("mamba_n_heads", "n_mamba_heads"),
    "mamba_head_dim": ("mamba_d_head", "mamba_headdim"),
    "mamba_d_state": ("ssm_state_size", "state_size"),
    "mamba_d_conv": ("conv_kernel", "conv_L_cache", "linear_conv_kernel_dim", "linear_attn_config.short_conv_kernel_size"),
    "mamba_n_groups": ("n_groups", "mamba_ngroups"),
    "mamba_expand": ("expand",),
    "mamba_ssm_dtype": ("mamba_ssm_cache_dtype",),
    "linear_num_heads": ("linear_attn_config.num_heads",),
    "linear_head_dim": ("linear_attn_config.head_dim",),
}

CANONICAL: dict[str, str] = {other: name for name, others in SPELLINGS.items() for other in others}
"""The usual key for each other spelling."""

PARAMETERS_ONLY = frozenset(
    {
        "attn_output_gate",
        "decoder_sparse_step",
        "enable_moe_block",
        "expert_layer_offset",
        "expert_layer_period",
        "expansion_ratio",
        "first_k_dense_replace",
        "interleave_moe_layer_step",
        "intermediate_size",
        "intermediate_size_mlp",
        "max_position_embeddings",
        "mlp_layer_types",
        "mlp_only_layers",
        "moe_intermediate_size",
        "moe_latent_size",
        "moe_layer_end_index",
        "moe_layer_freq",
        "moe_layer_interval",
        "moe_layer_start_index",
        "n_shared_experts",
        "num_experts",
        "num_experts_per_tok",
        "o_groups",
        "o_lora_rank",
        "q_lora_rank",
        "shared_expert_intermediate_size",
        "tie_word_embeddings",
        "use_double_wide_mlp",
        "vocab_size",
    }
)
"""Fields that size weights and leave the cache alone."""
