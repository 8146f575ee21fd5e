"""What the prefix cache may share: prompt blocks only, told apart by all their streams.

vLLM hashes the ids of stream 0, so a block with generated audio is not identified by its
hash. (Neither is a prompt with audio of its own: ``engine_adapter.wire.prompt_salt``.)
"""

from __future__ import annotations

import hashlib
import os

from vllm.v1.core.kv_cache_utils import BlockHash
from vllm.v1.request import Request


def keep_generated_blocks_private(request: Request, block_size: int) -> None:
    """Gives blocks beyond the prompt hashes that only this request can know.

    Nobody else finds them, while the request itself finds its own again after a
    preemption. The prompt's full blocks were hashed when the request was made.
    """
    if request._block_hasher is None:
        return
    secret = os.urandom(16)

    def private_hashes(request: Request) -> list[BlockHash]:
        full = request.num_tokens // block_size
        return [
            BlockHash(hashlib.sha256(secret + index.to_bytes(8, "big")).digest())
            for index in range(len(request.block_hashes), full)
        ]

    request._block_hasher = private_hashes
