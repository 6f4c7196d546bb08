# SPDX-License-Identifier: Apache-2.0
"""Names, order and defaults of arguments, as scripts for Horovod use them."""

from __future__ import annotations

import importlib
import inspect

import pytest

pytest.importorskip("torch", reason="missing tool: torch")

_SCALES = "prescale_factor=1.0, postscale_factor=1.0"
_REDUCE = f"average=None, name=None, op=None, {_SCALES}, process_set=all"
_SCATTER = f"op=0, process_set=all, {_SCALES}"
_NO_COMPRESSION = "compression=NoneCompressor"
_COMPRESSED = _REDUCE.replace("op=None", f"{_NO_COMPRESSION}, op=None")
_NAMED = "name=None, process_set=all"

TORCH = {
    "init": "comm=None, process_sets=None",
    **dict.fromkeys(
        ["shutdown", "is_initialized", "rank", "size", "local_rank", "local_size", "cross_rank",
         "cross_size", "mpi_threads_supported", "mpi_enabled", "mpi_built", "gloo_enabled",
         "gloo_built", "nccl_built", "ddl_built", "ccl_built", "cuda_built", "rocm_built",
         "stop_timeline"],
        "",
    ),
    "start_timeline": "file_path, mark_cycles=False",
    "ProcessSet": "ranks_or_comm",
    "add_process_set": "process_set",
    "remove_process_set": "process_set",
    "allreduce": f"tensor, {_COMPRESSED}",
    "allreduce_": f"tensor, {_REDUCE}",
    "allreduce_async": f"tensor, {_REDUCE}",
    "allreduce_async_": f"tensor, {_REDUCE}",
    "grouped_allreduce": f"tensors, {_COMPRESSED}",
    "grouped_allreduce_": f"tensors, {_REDUCE}",
    "grouped_allreduce_async": f"tensors, {_REDUCE}",
    "grouped_allreduce_async_": f"tensors, {_REDUCE}",
    "sparse_allreduce_async": "tensor, name, op, process_set=all",
    "allgather": f"tensor, {_NAMED}",
    "allgather_async": f"tensor, {_NAMED}",
    "grouped_allgather": f"tensors, {_NAMED}",
    "grouped_allgather_async": f"tensors, {_NAMED}",
    "broadcast": f"tensor, root_rank, {_NAMED}",
    "broadcast_": f"tensor, root_rank, {_NAMED}",
    "broadcast_async": f"tensor, root_rank, {_NAMED}",
    "broadcast_async_": f"tensor, root_rank, {_NAMED}",
    "alltoall": f"tensor, splits=None, {_NAMED}",
    "alltoall_async": f"tensor, splits=None, {_NAMED}",
    "reducescatter": f"tensor, name=None, {_NO_COMPRESSION}, {_SCATTER}",
    "reducescatter_async": f"tensor, name=None, {_SCATTER}",
    "grouped_reducescatter": f"tensors, name=None, {_NO_COMPRESSION}, {_SCATTER}",
    "grouped_reducescatter_async": f"tensors, name=None, {_SCATTER}",
    "join": "device=-1",
    "barrier": "process_set=all",
    "poll": "handle",
    "synchronize": "handle",
    "DistributedOptimizer": "optimizer, named_parameters=None, compression=NoneCompressor, "
    "backward_passes_per_step=1, op=0, gradient_predivide_factor=1.0, num_groups=0, groups=None, "
    "sparse_as_dense=False, process_set=all, broadcast=False, gradients=None",  # two are ours
    "broadcast_parameters": "params, root_rank",
    "broadcast_optimizer_state": "optimizer, root_rank, model=None",
    "broadcast_object": "obj, root_rank=0, name=None, process_set=all",
    # A set is more than Horovod takes.
    "allgather_object": "obj, name=None, process_set=all",
    "SyncBatchNorm": "num_features, eps=1e-05, momentum=0.1, affine=True, "
    "track_running_stats=True, process_set=all",
}  # fmt: skip
ELASTIC = {
    "TorchState": "model=None, optimizer=None, **kwargs",
    "ElasticSampler": "dataset, shuffle=True, seed=0",
    "run": "func=None, repair=False",  # the second is ours: @run(repair=True)
}
DATA = {
    "AsyncDataLoaderMixin": "async_loader_queue_size=64, debug_data_loader=False, *args, **kwargs",
}
RUN = {
    "run": "func, args=(), kwargs=None, num_proc=1, min_num_proc=None, max_num_proc=None, "
    "slots=None, reset_limit=None, cooldown_range=None, hosts=None, hostfile=None, "
    "host_discovery_script=None, start_timeout=None, ssh_port=None, ssh_identity_file=None, "
    "disable_cache=None, output_filename=None, verbose=None, use_gloo=None, use_mpi=None, "
    "mpi_args=None, network_interface=None, network_interfaces=None, executable=None, np=None, "
    "min_np=None, max_np=None",
}
UTIL = {
    "extension_available": "ext_base_name, verbose=False",
    "gpu_available": "ext_base_name, verbose=False",
    **dict.fromkeys(
        ["mpi_built", "gloo_built", "nccl_built", "ddl_built", "ccl_built"], "verbose=False"
    ),
    "env": "**kwargs",
    "split_list": "l, n",
    "num_rank_is_power_2": "num_rank",
    "is_iterable": "x",
    "is_version_greater_equal_than": "ver, target",
    "get_ext_suffix": "",
    "get_extension_full_path": "pkg_path, *args",
}
ALL = [
    (module, name, wanted)
    for module, names in (
        ("horovod.torch", TORCH),
        ("horovod.torch.mpi_ops", {"is_homogeneous": ""}),
        ("horovod.torch.elastic", ELASTIC),
        ("horovod.data", DATA),
        ("horovod", RUN),
        ("horovod.common.util", UTIL),
    )
    for name, wanted in names.items()
]


def words_of(parameter: inspect.Parameter) -> str:
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    if parameter.default is parameter.empty:
        return stars + parameter.name
    from rueda.torch import global_process_set

    default = parameter.default
    text = "all" if default is global_process_set else getattr(default, "__name__", repr(default))
    return f"{parameter.name}={text}"


@pytest.mark.parametrize(("module", "name", "wanted"), ALL, ids=lambda text: text or "nothing")
def test_arguments(module: str, name: str, wanted: str) -> None:
    found = inspect.signature(getattr(importlib.import_module(module), name))
    assert ", ".join(words_of(one) for one in found.parameters.values()) == wanted
