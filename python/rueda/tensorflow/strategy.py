# SPDX-License-Identifier: Apache-2.0
"""A strategy of ``tf.distribute`` whose sums between workers go through Rueda.

    strategy = hvd.Strategy()  # instead of tf.distribute.MultiWorkerMirroredStrategy()

Every rank is a worker with one replica. TensorFlow has no public base class for a strategy
that it does not know, so this one is a ``MultiWorkerMirroredStrategy`` that was never
connected to a cluster: variables, replica threads and the division of datasets are its own,
and what passes between workers is replaced. :func:`_check_base` looks for each part that is
used or replaced here, and names the one that a version of TensorFlow has changed.
"""

from __future__ import annotations

import weakref
from typing import Any

import tensorflow as tf

from rueda.common.basics import Average, Sum

from . import mpi_ops
from .collectives import allreduce, grouped_allreduce
from .library import blocks, is_eager

__all__ = ["Strategy"]

_VERSIONS = "2.12 and 2.21"


def _changed(what: str) -> NotImplementedError:
    return NotImplementedError(
        f"rueda.tensorflow.Strategy does not know TensorFlow {tf.__version__}: {what} is missing "
        f"or has changed. It was tried with {_VERSIONS}; use DistributedGradientTape or "
        "rueda.keras.DistributedOptimizer instead"
    )


try:
    from tensorflow.python.distribute import (
        collective_all_reduce_strategy,
        collective_util,
        cross_device_ops,
        device_util,
        distribute_lib,
        distribute_utils,
        numpy_dataset,
        values,
    )

    _Extended: Any = collective_all_reduce_strategy.CollectiveAllReduceExtended
    _CrossDeviceOps: Any = cross_device_ops.CrossDeviceOps
except (ImportError, AttributeError) as error:
    raise _changed(str(error)) from error

# What the classes below take from the others, or put in the place of theirs.
_EXTENDED = (
    "_broadcast_to", "_distribute_datasets_from_function", "_experimental_distribute_dataset",
    "_gather_to_implementation", "_get_cross_device_ops", "_get_replica_id_in_sync_group",
    "_get_variable_creator_initial_value", "_in_multi_worker_mode", "_initialize_single_worker",
    "_input_workers_with_options", "_make_input_context", "_num_replicas_in_sync", "_reduce_to",
    "_replica_ctx_all_reduce", "_stop_check_health_thread", "_use_merge_call",
)  # fmt: skip
_OPS = (
    "_gather_implementation", "_num_between_graph_workers", "batch_reduce_implementation",
    "broadcast_implementation", "reduce_implementation",
)  # fmt: skip


def _check_base() -> None:
    for kind, names in ((_Extended, _EXTENDED), (_CrossDeviceOps, _OPS)):
        for name in names:
            if not hasattr(kind, name):
                raise _changed(f"{kind.__name__}.{name}")


# ---- Between workers --------------------------------------------------------


def _mirrored(value: Any) -> Any:
    return distribute_utils.regroup((value,), wrap_class=values.Mirrored)


def _op_of(reduce_op: Any) -> int:
    return int(Average if reduce_op == tf.distribute.ReduceOp.MEAN else Sum)


class _BetweenRanks(_CrossDeviceOps):
    """Reduces and gathers what the one replica of each rank has."""

    @property
    def _num_between_graph_workers(self) -> int:
        # One worker would be given its own value back.
        return max(mpi_ops.size(), 2)

    def reduce_implementation(
        self, reduce_op: Any, per_replica_value: Any, destinations: Any, options: Any
    ) -> Any:
        with tf.device("CPU:0"):
            return _mirrored(allreduce(per_replica_value.values[0], op=_op_of(reduce_op)))

    def batch_reduce_implementation(
        self, reduce_op: Any, value_destination_pairs: Any, options: Any
    ) -> list[Any]:
        mine = [value.values[0] for value, _ in value_destination_pairs]
        op = _op_of(reduce_op)
        with tf.device("CPU:0"):
            if is_eager() or blocks:
                return [_mirrored(one) for one in grouped_allreduce(mine, op=op)]
            return [_mirrored(allreduce(one, op=op)) for one in mine]

    def broadcast_implementation(self, tensor: Any, destinations: Any) -> Any:
        return _mirrored(tf.convert_to_tensor(tensor))

    def _gather_implementation(
        self, per_replica_value: Any, destinations: Any, axis: int, options: Any
    ) -> Any:
        mine = tf.convert_to_tensor(per_replica_value.values[0])
        axis = axis if axis >= 0 else axis + mine.shape.rank
        order = [axis, *(i for i in range(mine.shape.rank) if i != axis)]
        with tf.device("CPU:0"):
            rows = mpi_ops.allgather(tf.transpose(mine, order))
        return _mirrored(tf.transpose(rows, [order.index(i) for i in range(len(order))]))


# ---- The strategy -----------------------------------------------------------


class _Extension(_Extended):
    """One replica on this rank, and as many in sync as there are ranks."""

    def __init__(self, strategy: Any, device: str) -> None:
        # Its own would connect to the cluster of TF_CONFIG; from here on all is as there.
        distribute_lib.StrategyExtendedV1.__init__(self, strategy)
        rank, size = mpi_ops.rank(), mpi_ops.size()
        spec = tf.train.ClusterSpec({"worker": [f"rank{i}:1" for i in range(size)]})
        self._cluster_resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
            spec, task_type="worker", task_id=rank
        )
        self._cluster_spec = spec
        self._task_type, self._task_id = "worker", rank
        self._id_in_cluster, self._num_workers = rank, size
        self._is_chief = rank == 0
        self._communication_options = collective_util.Options()
        self._worker_device = device_util.canonicalize("/device:CPU:0")
        self._host_input_device = numpy_dataset.SingleDevice(self._worker_device)
        self._cross_device_ops = self._host_cross_device_ops = _BetweenRanks()
        self._initialize_single_worker([device_util.canonicalize(device)])
        self._num_devices_per_worker = 1
        self._local_device_type = "GPU" if "GPU" in device else "CPU"
        self._rpc_layer = None
        self._cfer_fn_cache = weakref.WeakKeyDictionary()
        self.experimental_enable_get_next_as_optional = True

    def _use_merge_call(self) -> bool:
        return True

    def _replica_ctx_all_reduce(self, reduce_op: Any, value: Any, options: Any = None) -> Any:
        return distribute_lib.StrategyExtendedV2._replica_ctx_all_reduce(
            self, reduce_op, value, options
        )

    def _get_variable_creator_initial_value(
        self, replica_id: int, device: str, primary_var: Any, **kwargs: Any
    ) -> Any:
        """Rank 0's."""

        def initial_value() -> Any:
            with tf.device("CPU:0"):
                mine = kwargs["initial_value"]
                mine = mine() if callable(mine) else mine
                mine = getattr(mine, "wrapped_value", mine)  # from a checkpoint
                mine = tf.convert_to_tensor(mine, dtype=kwargs.get("dtype"))
                return mpi_ops.broadcast(mine, root_rank=0)

        return initial_value

    def _get_cross_device_ops(self, value: Any) -> Any:
        return self._cross_device_ops

    def _configure(self, *args: Any, **kwargs: Any) -> None:
        """The cluster is that of the job."""

    def _update_config_proto(self, config_proto: Any) -> Any:
        return config_proto


class Strategy(tf.distribute.MultiWorkerMirroredStrategy):
    """``tf.distribute.MultiWorkerMirroredStrategy`` over the ranks of a job of Rueda's.

    One replica a rank, on ``device``: by default the first GPU that TensorFlow shows to this
    process, else the CPU. Initial values of variables are rank 0's. ``init()`` is called
    if the program has not done it.
    """

    def __init__(self, device: str | None = None) -> None:
        _check_base()
        mpi_ops.init()
        if device is None:
            device = "/device:GPU:0" if tf.config.list_logical_devices("GPU") else "/device:CPU:0"
        tf.distribute.Strategy.__init__(self, _Extension(self, device))
