# SPDX-License-Identifier: Apache-2.0
"""The compiled module; src/bind/core/core.h says what its functions do."""

from typing import Any, Callable

version: str

def init(
    rank: int,
    size: int,
    timeout_ms: int,
    store: str | None,
    exchange: Callable[[bytes], bytes] | None,
    process_sets: str | None,
    /,
) -> None: ...
def shutdown() -> None: ...
def is_initialized() -> bool: ...
def rank() -> int: ...
def size() -> int: ...
def local_rank() -> int: ...
def local_size() -> int: ...
def cross_rank() -> int: ...
def cross_size() -> int: ...
def is_homogeneous() -> bool: ...
def elastic_term() -> int: ...
def elastic_is_refused() -> bool: ...
def elastic_set_progress(progress: int, /) -> None: ...
def elastic_news(timeout_ms: int, /) -> tuple[int, int] | None: ...
def fail(why: str, /) -> bool: ...
def check_every() -> int: ...
def digest(address: int, bytes: int, seed: int, /) -> int: ...
def timeline_start(path: str, mark_cycles: bool, /) -> None: ...
def timeline_stop() -> None: ...
def set_create(ranks: tuple[int, ...], /) -> int: ...
def set_destroy(number: int, /) -> None: ...
def set_ranks(number: int, /) -> list[int] | None: ...
def submit(
    kind: int,
    name: str | None,
    set: int,
    dtype: int,
    send: int,
    recv: int,
    shape: tuple[int, ...],
    reduction: int = 0,
    root: int = 0,
    prescale: float = 1.0,
    postscale: float = 1.0,
    splits: tuple[int, ...] | None = None,
    room: Any = None,
    compression: int = 0,
    priority: int = 0,
    device: int | None = None,
    stream: int | None = None,
) -> int: ...
def submit_group(orders: list[tuple[Any, ...] | dict[str, Any]], /) -> list[int]: ...
def poll(handle: int, /) -> bool: ...
def wait(handle: int, /) -> None: ...
def wait_for(handle: int, members: int, /) -> tuple[int, int, tuple[int, ...]]: ...
def forget(handle: int, /) -> None: ...
def settle(gradients: list[Any], passes: int, odd: list[Any], /) -> Exception | None: ...
def learn(type: type, /) -> bool: ...
def object_count(purpose: int, name: str, set: int, /) -> int: ...
def seal_object(
    purpose: int, name: str, set: int, sequence: int, memory: int, length: int, /
) -> bytes: ...
def object_length(
    purpose: int, name: str, set: int, sequence: int, sender: int, head: bytes, /
) -> int: ...
def open_object(
    purpose: int,
    name: str,
    set: int,
    sequence: int,
    sender: int,
    head: bytes,
    memory: int,
    length: int,
    /,
) -> None: ...
def room() -> Any: ...
def take(room: Any, dtype: int, shape: tuple[int, ...], /) -> Any: ...

class Gradient:
    param: Any
    sent: Any
    handle: int
    version: int
    came_ns: int
    passes_left: int
    may_be_brought: bool
    is_fast: bool
    def prepare(
        self,
        key: bytes,
        dtype: Any,
        number: int,
        layout: Any,
        shape: tuple[int, ...],
        process_set: Any,
        reduction: int,
        prescale: float,
        postscale: float,
        in_flight: list[Any],
        slow_path: Callable[..., None],
        /,
    ) -> None: ...
    def lead(
        self, brings: tuple[Any, ...] | None, opens: tuple[Any, ...] | None, /
    ) -> None: ...
    def __call__(self, *args: Any) -> None: ...

KIND_ALLREDUCE: int
KIND_ALLGATHER: int
KIND_BROADCAST: int
KIND_ALLTOALL: int
KIND_REDUCE_SCATTER: int
KIND_BARRIER: int
KIND_JOIN: int
DTYPE_UINT8: int
DTYPE_INT8: int
DTYPE_UINT16: int
DTYPE_INT16: int
DTYPE_INT32: int
DTYPE_INT64: int
DTYPE_FLOAT16: int
DTYPE_FLOAT32: int
DTYPE_FLOAT64: int
DTYPE_BOOL: int
DTYPE_BFLOAT16: int
REDUCTION_SUM: int
REDUCTION_AVERAGE: int
REDUCTION_MIN: int
REDUCTION_MAX: int
REDUCTION_PRODUCT: int
REDUCTION_ADASUM: int
COMPRESS_NONE: int
COMPRESS_FP16: int
COMPRESS_BF16: int
