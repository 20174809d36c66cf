"""The part of xllamacpp that Bicameral uses."""

from collections.abc import Callable
from enum import IntEnum
from typing import Any

class ggml_type(IntEnum):
    GGML_TYPE_F32 = 0
    GGML_TYPE_F16 = 1
    GGML_TYPE_BF16 = 30

class llama_flash_attn_type(IntEnum):
    LLAMA_FLASH_ATTN_TYPE_ENABLED = 1

class CommonParamsModel:
    path: str

class CpuParams:
    n_threads: int

class CommonAdapterLoraInfo:
    path: str
    scale: float
    def __init__(self, path: str = "", scale: float = 1.0) -> None: ...

class CommonParams:
    model: CommonParamsModel
    cpuparams: CpuParams
    cpuparams_batch: CpuParams
    n_ctx: int
    n_batch: int
    n_ubatch: int
    n_parallel: int
    lora_adapters: list[CommonAdapterLoraInfo]
    lora_init_without_apply: bool
    n_threads_http: int
    cache_ram_mib: int
    cache_idle_slots: bool
    n_cache_reuse: int
    n_ctx_checkpoints: int
    slot_prompt_similarity: float
    slot_save_path: str
    ctx_shift: bool
    kv_unified: bool
    cache_type_k: ggml_type
    cache_type_v: ggml_type
    flash_attn_type: llama_flash_attn_type
    hostnames: list[str]
    port: int
    api_keys: list[str]
    ui: bool
    endpoint_slots: bool
    offline: bool
    verbosity: int
    warmup: bool
    def __init__(self) -> None: ...

class Server:
    def __init__(self, common_params: CommonParams) -> None: ...
    def handle_completions(self, prompt: dict[str, Any], callback: Callable[[dict[str, Any]], bool | None]) -> None: ...
    @property
    def listening_address(self) -> str: ...
