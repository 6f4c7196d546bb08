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
def is_initialized() -> bool:
    """Is this process a rank of a job: after ``init()``, and before ``shutdown()``?"""
def rank() -> int:
    """My number in the job, from 0."""
def size() -> int:
    """How many ranks the job has."""
def local_rank() -> int:
    """My number among the ranks of this host, from 0."""
def local_size() -> int:
    """How many ranks of the job are on this host."""
def cross_rank() -> int:
    """My host's number among the hosts that have a rank of my local rank, from 0."""
def cross_size() -> int:
    """How many hosts have a rank of my local rank."""
def is_homogeneous() -> bool:
    """Has every host as many ranks?"""
def elastic_term() -> int: ...
def elastic_is_refused() -> bool: ...
def elastic_set_progress(progress: int, /) -> None: ...
def elastic_change(timeout_ms: int, /) -> tuple[int, int] | None: ...
def elastic_leave() -> None: ...
def elastic_add(key: str, count: int, /) -> int: ...
def elastic_notice(agent: int, /) -> int: ...
def fail(why: str, /) -> bool: ...
def step() -> None: ...
def check_every() -> int: ...
def has_timeline() -> int: ...
def has_dynamic_sets() -> int: ...
def repairs() -> bool: ...
def gpu_metrics() -> tuple[list[dict[str, Any]], str]: ...
def digest(address: int, bytes: int, seed: int, /) -> int: ...
def envelope_opener() -> tuple[bytes, bytes]: ...
def envelope_seal(public: bytes, secret: bytes, /) -> bytes: ...
def envelope_open(public: bytes, opener: bytes, envelope: bytes, /) -> bytes: ...
def timeline_start(path: str, mark_cycles: bool, /) -> None: ...
def timeline_stop() -> None: ...
def set_create(ranks: tuple[int, ...], /) -> int: ...
def set_destroy(number: int, /) -> None: ...
def set_ranks(number: int, /) -> list[int] | None: ...
def set_open(number: int, ranks: tuple[int, ...], /) -> int: ...
def set_close(number: int, /) -> int: ...
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
    ordered: bool = False,
    peer: int = 0,
    tag: int = 0,
) -> int: ...
def submit_group(orders: list[tuple[Any, ...] | dict[str, Any]], /) -> list[int]: ...
def poll(handle: int, /) -> bool: ...
def wait(handle: int, /) -> None: ...
def wait_until(handle: int, timeout_ms: int, /) -> bool: ...
def wait_message(handle: int, timeout_ms: int, /) -> tuple[int, int] | None: ...
def ends() -> Any: ...
def tell_end(ends: Any, handle: int, /) -> None: ...
def next_ends(ends: Any, timeout_ms: int, /) -> list[int]: ...
def ring_ends(ends: Any, /) -> None: ...
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
    stream: int
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
    def lead(self, brings: tuple[Any, ...] | None, opens: tuple[Any, ...] | None, /) -> None: ...
    def __call__(self, *args: Any) -> None: ...

KIND_ALLREDUCE: int
KIND_ALLGATHER: int
KIND_BROADCAST: int
KIND_ALLTOALL: int
KIND_REDUCE_SCATTER: int
KIND_BARRIER: int
KIND_JOIN: int
KIND_SEND: int
KIND_RECV: int
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
