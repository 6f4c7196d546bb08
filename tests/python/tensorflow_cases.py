# SPDX-License-Identifier: Apache-2.0
"""What rueda.tensorflow does; each case is run by all ranks at once.

test_tensorflow_ops.py starts the ranks, and reads the names of the cases from this file
without importing it, or runs those that it names. Rank 0 has one thread for ops, the
others have as many as TensorFlow chooses.
"""

from __future__ import annotations

import json
import os
import random
import socket
import sys
import tempfile
import threading
import time
import traceback
import warnings
from pathlib import Path
from typing import Any, Callable

import horovod.tensorflow as hvd
import numpy as np
import rueda.tensorflow
import tensorflow as tf
from rueda.tensorflow.data import compute_worker
from rueda.tensorflow.data.board import Board, BoardClient
from rueda.tensorflow.data.compute_service import TfDataServiceConfig

CASES: dict[str, Callable[[], None]] = {}

v1 = tf.compat.v1

DTYPES = [
    tf.uint8, tf.int8, tf.uint16, tf.int16, tf.int32, tf.int64, tf.float16, tf.bfloat16,
    tf.float32, tf.float64,
]  # fmt: skip


def case(function: Callable[[], None]) -> Callable[[], None]:
    CASES[function.__name__] = function
    return function


def same(got: Any, wanted: Any) -> None:
    got, wanted = np.asarray(got), np.asarray(wanted)
    assert got.shape == wanted.shape, f"{got.shape}, not {wanted.shape}"
    assert np.array_equal(got, wanted), f"{got}, not {wanted}"


def near(got: Any, wanted: Any) -> None:
    np.testing.assert_allclose(np.asarray(got), np.asarray(wanted), rtol=1e-5, atol=1e-6)


def raises(kind: Any, words: str, function: Callable[..., Any], *args: Any, **more: Any) -> None:
    try:
        function(*args, **more)
    except kind as error:
        assert words in str(error), f'"{words}" is not in "{error}"'
        return
    raise AssertionError(f"{function} raised nothing")


def ways(function: Callable[..., Any], *tensors: Any) -> list[Any]:
    """The result where ops run at once, in a function, and in a graph of TensorFlow 1."""
    results = [function(*tensors), tf.function(function)(*tensors)]
    values = [np.asarray(tensor) for tensor in tensors]
    types = [tf.as_dtype(tensor.dtype) for tensor in tensors]
    with tf.Graph().as_default(), v1.Session() as session:
        inputs = [v1.placeholder(dtype, value.shape) for dtype, value in zip(types, values)]
        results.append(session.run(function(*inputs), dict(zip(inputs, values))))
    return results


# ---- Collectives -------------------------------------------------------------


@case
def every_type_and_reduction() -> None:
    ranks = range(1, hvd.size() + 1)
    for dtype in DTYPES:
        mine = tf.cast(tf.range(1, 4) * (hvd.rank() + 1), dtype)
        for op, reduce in (
            (hvd.Sum, sum), (hvd.Min, min), (hvd.Max, max), (hvd.Product, np.prod),
        ):  # fmt: skip
            wanted = [reduce([i * rank for rank in ranks]) for i in range(1, 4)]
            got = hvd.allreduce(mine, op=op)
            assert got.dtype == dtype
            same(tf.cast(got, tf.float64), wanted)
    flags = tf.constant([False, True, hvd.rank() == 0])
    same(hvd.allreduce(flags, op=hvd.Max), [False, True, True])
    same(hvd.allreduce(flags, op=hvd.Min), [False, True, False])


@case
def reductions_in_every_way() -> None:
    rank, size = hvd.rank(), hvd.size()
    mine = tf.range(10, dtype=tf.float32) * (rank + 1)
    mean = np.arange(10) * (size + 1) / 2
    for got in ways(hvd.allreduce, mine):
        near(got, mean)
    for got in ways(lambda x: hvd.allreduce(x, op=hvd.Sum, prescale_factor=2.0), mine):
        near(got, mean * size * 2)
    for got in ways(lambda x: hvd.grouped_allreduce([x, x[:1], tf.cast(x, tf.int32)]), mine):
        near(got[0], mean)
        near(got[1], mean[:1])
        same(got[2], (np.arange(10) * sum(range(1, size + 1))) // size)
    for got in ways(lambda x: hvd.allreduce(x, compression=hvd.Compression.bf16), mine):
        assert np.allclose(got, mean, rtol=0.02)
    for got in ways(lambda x: hvd.reducescatter(x, op=hvd.Sum), mine[:5]):
        rows = [3, 2] if size == 2 else [2, 1, 1, 1]
        first = sum(rows[:rank])
        near(got, (mean * size)[first : first + rows[rank]])
    variable = tf.Variable([1.0 + rank])
    near(hvd.allreduce(variable, op=hvd.Sum), [size * (size + 1) / 2])


@case
def rows_in_every_way() -> None:
    rank, size = hvd.rank(), hvd.size()
    mine = tf.fill([rank + 1, 2], rank)
    wanted = np.concatenate([np.full([one + 1, 2], one) for one in range(size)])
    for got in ways(hvd.allgather, mine):
        same(got, wanted)
    for got in ways(lambda x: hvd.grouped_allgather([x, x[:0], x]), mine):
        same(got[0], wanted)
        same(got[1], np.zeros([0, 2]))
        same(got[2], wanted)
    for got in ways(lambda x: hvd.broadcast(x, size - 1), tf.fill([3], rank)):
        same(got, [size - 1] * 3)
    sent = tf.range(size * 2) + 100 * rank
    for got in ways(hvd.alltoall, sent):
        same(got, np.concatenate([np.arange(2) + 2 * rank + 100 * one for one in range(size)]))
    splits = list(range(size))
    for rows, counts in ways(lambda x: hvd.alltoall(x, splits), tf.range(sum(splits)) + 100 * rank):
        first = sum(splits[:rank])
        same(rows, [100 * one + first + i for one in range(size) for i in range(rank)])
        same(counts, [rank] * size)


@case
def shapes_are_known_before() -> None:
    @tf.function
    def shapes(x: Any) -> Any:
        assert hvd.allreduce(x).shape.as_list() == [4, 3]
        assert hvd.broadcast(x, 0).shape.as_list() == [4, 3]
        assert [one.shape.as_list() for one in hvd.grouped_allreduce([x, x[0]])] == [[4, 3], [3]]
        for one in (hvd.allgather(x), hvd.reducescatter(x), hvd.alltoall(x)):
            assert one.shape.as_list() == [None, 3]
        assert hvd.alltoall(x, [4] + [0] * (hvd.size() - 1))[1].shape.rank == 1
        raises(ValueError, "rank", hvd.allgather, tf.constant(1.0))
        return hvd.size_op()

    graph = shapes.get_concrete_function(tf.ones([4, 3])).graph
    assert any(node.op == "HorovodAllreduce" for node in graph.as_graph_def().node)


@case
def numbers_are_asked_when_a_graph_runs() -> None:
    @tf.function
    def numbers() -> list[Any]:
        return [
            hvd.rank_op(), hvd.size_op(), hvd.local_rank_op(), hvd.local_size_op(),
            hvd.process_set_included_op(), hvd.allreduce(tf.constant(1.0), op=hvd.Sum),
        ]  # fmt: skip

    rank, size = hvd.rank(), hvd.size()
    for _ in range(2):
        same([float(one) for one in numbers()], [rank, size, rank, size, 1, size])
    hvd.shutdown()
    place = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith(
        ("HOROVOD_", "RUEDA_"))}  # fmt: skip
    os.environ.update(RUEDA_RANK="0", RUEDA_SIZE="1", RUEDA_JOB=f"alone-{os.getpid()}")
    try:
        hvd.init()
        # Also the sum of a constant is no number that was kept in the graph.
        same([float(one) for one in numbers()], [0, 1, 0, 1, 1, 1])
        hvd.shutdown()
    finally:
        for name in ("RUEDA_RANK", "RUEDA_SIZE", "RUEDA_JOB"):
            del os.environ[name]
        os.environ.update(place)
    raises(tf.errors.FailedPreconditionError, "init()", numbers)
    hvd.init()
    same([float(one) for one in numbers()], [rank, size, rank, size, 1, size])


@case
def many_ops_are_in_flight_in_any_order() -> None:
    """Each rank makes 64 ops in an order of its own; rank 0 has one thread for them."""
    count, rank, size = 64, hvd.rank(), hvd.size()
    order = list(range(count))
    random.Random(rank).shuffle(order)

    @tf.function
    def run(x: Any) -> list[Any]:
        results = {i: hvd.allreduce(x * (i + 1.0), op=hvd.Sum, name=f"many_{i}") for i in order}
        return [results[i] for i in range(count)]

    wanted = [(i + 1) * sum(range(1, size + 1)) for i in range(count)]
    for _ in range(5):
        near([one[0] for one in run(tf.fill([100], rank + 1.0))], wanted)
    options = v1.ConfigProto(inter_op_parallelism_threads=1, use_per_session_threads=True)
    with tf.Graph().as_default(), v1.Session(config=options) as session:
        ops = {
            i: hvd.allreduce(tf.fill([3], (i + 1.0) * (rank + 1)), op=hvd.Sum, name=f"s_{i}")
            for i in order
        }
        for _ in range(3):
            near([one[0] for one in session.run([ops[i] for i in range(count)])], wanted)


@case
def ops_of_one_graph_overlap() -> None:
    """Rank 0 comes late to all 16 ops: together they take one delay, and not 16."""
    count, delay = 16, 0.3

    def pause(x: Any) -> Any:
        if hvd.rank() == 0:
            time.sleep(delay)
        return x

    @tf.function
    def run() -> Any:
        late = tf.py_function(pause, [1.0], tf.float32)
        late.set_shape([])
        return tf.add_n([hvd.allreduce(late, op=hvd.Sum, name=f"late_{i}") for i in range(count)])

    assert float(run()) == count * hvd.size()
    start = time.monotonic()
    assert float(run()) == count * hvd.size()
    assert time.monotonic() - start < count * delay


@case
def iterations_of_a_loop_run_one_by_one() -> None:
    @tf.function
    def run(x: Any) -> Any:
        return tf.map_fn(lambda y: hvd.allreduce(y, op=hvd.Sum), x, parallel_iterations=1)

    same(run(tf.range(16.0)), np.arange(16) * hvd.size())


@case
def sparse_tensors() -> None:
    rank, size = hvd.rank(), hvd.size()
    mine = tf.IndexedSlices(tf.fill([1, 2], 1.0 + rank), tf.constant([rank]), tf.constant([9, 2]))
    sums = [hvd.allreduce(mine, op=hvd.Sum)] + hvd.grouped_allreduce(
        [tf.ones(2), mine], op=hvd.Sum
    )[1:]
    for got in sums:
        assert isinstance(got, tf.IndexedSlices)
        same(got.indices, range(size))
        same(got.values[:, 0], [1.0 + one for one in range(size)])
        same(got.dense_shape, [9, 2])
    near(hvd.allreduce(mine).values[0], [1 / size, 1 / size])
    raises(NotImplementedError, "sparse", hvd.allreduce, mine, op=hvd.Max)
    raises(NotImplementedError, "sparse", hvd.allreduce, mine, op=hvd.Adasum)
    for got in (
        hvd.allreduce(mine, prescale_factor=2.0, postscale_factor=3.0),
        hvd.grouped_allreduce([mine], prescale_factor=6.0)[0],
    ):
        near(got.values[0], [6 / size, 6 / size])


@case
def gradients_of_collectives() -> None:
    rank, size = hvd.rank(), hvd.size()
    x = tf.Variable(tf.ones([size, 2]))

    def gradient_of(function: Callable[[Any], Any]) -> Any:
        with tf.GradientTape() as tape:
            y = function(tf.convert_to_tensor(x)) * (rank + 1.0)
        return tape.gradient(y, x)

    total, mean = sum(range(1, size + 1)), (size + 1) / 2
    ones = np.ones([size, 2])
    for run in (gradient_of, tf.function(gradient_of, autograph=False)):
        near(run(lambda x: hvd.allreduce(x, op=hvd.Sum)), ones * total)
        near(run(lambda x: hvd.allreduce(x)), ones * mean)
        near(run(lambda x: hvd.grouped_allreduce([x, x])[0]), ones * mean)
        near(run(hvd.allgather), ones * mean)
        near(run(lambda x: hvd.grouped_allgather([x])[0]), ones * mean)
        near(run(lambda x: hvd.broadcast(x, 0)), ones * (mean if rank == 0 else 0))
        back = np.repeat(np.arange(1.0, size + 1), 2).reshape(size, 2)
        near(run(hvd.alltoall), back)
        near(run(lambda x: hvd.reducescatter(x, op=hvd.Sum)), back * size)
        near(run(lambda x: hvd.reducescatter(x)), back)


@case
def ranks_that_differ_are_named() -> None:
    rank = hvd.rank()
    wrong = tf.errors.FailedPreconditionError
    raises(wrong, "Mismatched ALLREDUCE tensor shapes", hvd.allreduce, tf.ones(rank + 1))
    raises(wrong, "Mismatched data types", hvd.allreduce,
           tf.ones(3, tf.float32 if rank == 0 else tf.float64), name="types")  # fmt: skip
    raises(wrong, "Mismatched", tf.function(hvd.allreduce), tf.ones(rank + 1))
    raises(wrong, "Mismatched", hvd.allgather, tf.ones([2, rank + 1]))
    raises(wrong, "root", hvd.broadcast, tf.ones(2), rank)
    bad = tf.errors.InvalidArgumentError
    raises(bad, "splits", hvd.alltoall, tf.ones(4), [1])
    raises(bad, "negative", hvd.alltoall, tf.ones(4), [-1] * hvd.size())
    raises(bad, "", hvd.alltoall, tf.ones(4), [5] * hvd.size())
    raises(bad, "rows", hvd.grouped_reducescatter, [tf.ones(2), tf.constant(1.0)])
    raises(wrong, "Mismatched", hvd.grouped_allreduce, [tf.ones(2), tf.ones(rank + 1)])
    near(hvd.grouped_allreduce([tf.ones(2), tf.ones(2)])[1], [1, 1])
    unknown = hvd.ProcessSet([0])
    unknown.process_set_id = 10
    raises(ValueError, "never made", hvd.allreduce, tf.ones(1), process_set=unknown)
    raises(ValueError, "not registered", hvd.allreduce, tf.ones(1),
           process_set=hvd.ProcessSet([0]))  # fmt: skip
    raises((TypeError, bad), "string", hvd.allreduce, tf.constant("text"))
    near(hvd.allreduce(tf.ones(2)), [1, 1])


@case
def compiled_functions_are_never_wrong() -> None:
    """XLA has no such op: it says so, or leaves the op out of what it compiles."""

    @tf.function(jit_compile=True)
    def compiled(x: Any) -> Any:
        return hvd.allreduce(x * 2.0, op=hvd.Sum) + 1.0

    raises(tf.errors.InvalidArgumentError, "Horovod", compiled, tf.ones(2))

    @tf.function(jit_compile=True)
    def inner(x: Any) -> Any:
        return x * 2.0

    @tf.function
    def outer(x: Any) -> Any:
        return inner(hvd.allreduce(inner(x), op=hvd.Sum))

    near(outer(tf.ones(2)), [4.0 * hvd.size()] * 2)


@case
def process_sets() -> None:
    rank, size = hvd.rank(), hvd.size()
    mine = hvd.add_process_set([0])
    others = hvd.add_process_set(range(1, size))
    here = mine if rank == 0 else others
    there = others if rank == 0 else mine
    near(hvd.allreduce(tf.constant(rank + 1.0), op=hvd.Sum, process_set=here),
         1 if rank == 0 else sum(range(2, size + 1)))  # fmt: skip
    assert int(hvd.size_op(here.process_set_id)) == len(here.ranks)
    same([int(hvd.process_set_included_op(one.process_set_id)) for one in (here, there)], [1, 0])
    raises(tf.errors.InvalidArgumentError, "", hvd.allreduce, tf.ones(1), process_set=there)
    variable = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        loss = variable * (rank + 1.0)
    tape = hvd.DistributedGradientTape(tape, process_set=others)
    near(tape.gradient(loss, [variable])[0],
         1.0 if rank == 0 else np.mean(range(2, size + 1)))  # fmt: skip
    hvd.remove_process_set(mine)
    hvd.remove_process_set(others)


@case
def join_and_barrier() -> None:
    rank, size = hvd.rank(), hvd.size()
    hvd.barrier()
    if rank == 0:
        time.sleep(0.1)
        near(hvd.allreduce(tf.ones(2), op=hvd.Sum, name="alone"), [1, 1])
    last = int(hvd.join())
    assert 0 <= last < size
    with tf.Graph().as_default(), v1.Session() as session:
        session.run(hvd.barrier())
        assert 0 <= session.run(hvd.join()) < size


# ---- Training ------------------------------------------------------------------


@case
def tapes() -> None:
    rank, size = hvd.rank(), hvd.size()
    dense, table = tf.Variable(tf.ones([2])), tf.Variable(tf.ones([4, 2]))
    local, unused = tf.Variable(3.0), tf.Variable(1.0)
    sources = [dense, table, local, unused]

    def gradients(**options: Any) -> list[Any]:
        with tf.GradientTape() as tape:
            row = tf.gather(table, [rank % 4])
            loss = tf.reduce_sum(dense * (rank + 1.0)) + tf.reduce_sum(row) + local * 4.0
        tape = hvd.DistributedGradientTape(tape, **options)
        assert isinstance(tape, tf.GradientTape)
        tape.register_local_source(local)
        return tape.gradient(loss, sources)

    mean = (size + 1) / 2
    for options in (
        {}, {"groups": 2}, {"groups": [[table, dense]]}, {"gradient_predivide_factor": 2.0},
        {"sparse_as_dense": True}, {"compression": hvd.Compression.fp16},
    ):  # fmt: skip
        if "compression" in options or "gradient_predivide_factor" in options:
            options["sparse_as_dense"] = True
        for run in (gradients, tf.function(gradients)):
            got = run(**options)
            near(got[0], [mean, mean])
            assert isinstance(got[1], tf.IndexedSlices) != bool(options.get("sparse_as_dense"))
            near(tf.convert_to_tensor(got[1])[:size], np.ones([size, 2]) / size)
            near(got[2], 4.0 / size)
            assert got[3] is None
    raises(ValueError, "predivide", hvd.DistributedGradientTape, tf.GradientTape(),
           op=hvd.Sum, gradient_predivide_factor=2.0)  # fmt: skip
    raises(ValueError, "groups", hvd.DistributedGradientTape, tf.GradientTape(), groups=-1)
    with hvd.DistributedGradientTape(tf.GradientTape(persistent=True), op=hvd.Sum) as tape:
        loss = {"y": dense * (rank + 1.0)}["y"]
    near(tape.gradient(loss, dense), [mean * size] * 2)
    near(tape.gradient(loss, {"x": dense})["x"], [mean * size] * 2)
    pair = tape.get_local_and_global_gradients(loss, [dense])
    assert pair[0] == [] and pair[1][0][0] is dense


@case
def optimizers_of_tensorflow_1() -> None:
    rank, size = hvd.rank(), hvd.size()
    mean = (size + 1) / 2
    with tf.Graph().as_default(), v1.Session() as session:
        weight = v1.get_variable("weight", initializer=tf.constant([float(rank), 2.0]))
        inner = v1.train.MomentumOptimizer(0.5, 0.9)
        optimizer = hvd.DistributedOptimizer(inner)
        train = optimizer.minimize(tf.reduce_sum(weight) * (rank + 1.0))
        hook = hvd.BroadcastGlobalVariablesHook(0)
        hook.begin()
        session.run(v1.global_variables_initializer())
        hook.after_create_session(session, None)
        same(session.run(weight), [0.0, 2.0])
        session.run(train)
        near(session.run(weight), [-0.5 * mean, 2.0 - 0.5 * mean])
        assert optimizer.get_slot_names() == ["momentum"]
    with tf.Graph().as_default(), v1.Session() as session:
        weight = v1.get_variable("weight", initializer=tf.constant([10.0]))
        optimizer = hvd.DistributedOptimizer(
            v1.train.GradientDescentOptimizer(1.0), backward_passes_per_step=3,
            average_aggregated_gradients=True,
        )  # fmt: skip
        step = v1.train.get_or_create_global_step()
        train = optimizer.minimize(weight[0] * (rank + 1.0), global_step=step)
        session.run([v1.global_variables_initializer(), v1.local_variables_initializer()])
        for i in range(1, 8):
            session.run(train)
            near(session.run(weight), [10.0 - (i // 3) * mean])
            assert session.run(step) == i
    with tf.Graph().as_default(), v1.Session() as session:
        weight = v1.get_variable("weight", initializer=tf.constant([1.0, 1.0]))
        optimizer = hvd.DistributedOptimizer(v1.train.GradientDescentOptimizer(1.0), op=hvd.Adasum)
        train = optimizer.minimize(tf.reduce_sum(weight))
        session.run(v1.global_variables_initializer())
        for i in range(1, 3):
            session.run(train)
            near(session.run(weight), [1.0 - i] * 2)
    raises(ValueError, "graphs", hvd.DistributedOptimizer,
           v1.train.GradientDescentOptimizer(1.0), backward_passes_per_step=2)  # fmt: skip


@case
def variables_that_are_no_resources() -> None:
    """Those of scripts that call disable_v2_behavior(); reading one may not copy it."""
    rank, size = hvd.rank(), hvd.size()
    v1.disable_control_flow_v2()
    try:
        for more in ({"op": hvd.Adasum}, {"backward_passes_per_step": 2}, {}):
            with tf.Graph().as_default(), v1.Session() as session:
                weight = v1.get_variable("weight", [2], use_resource=False)
                optimizer = hvd.DistributedOptimizer(v1.train.MomentumOptimizer(0.1, 0.9), **more)
                train = optimizer.minimize(tf.reduce_sum((weight - rank) ** 2))
                session.run([v1.global_variables_initializer(), v1.local_variables_initializer()])
                session.run(hvd.broadcast_global_variables(0))
                before = session.run(weight)
                for _ in range(4):
                    session.run(train)
                after = session.run(weight)
                assert not np.allclose(before, after)
                same(hvd.allgather_object(after.tolist()), [after.tolist()] * size)
    finally:
        v1.enable_control_flow_v2()


@case
def variables_and_objects() -> None:
    rank, size = hvd.rank(), hvd.size()
    root = size - 1
    for inplace in (False, True):
        variables = [tf.Variable([float(rank)]), tf.Variable(rank), tf.Variable([rank > 0, True])]
        hvd.broadcast_variables(variables, root, inplace=inplace)
        same(variables[0], [float(root)])
        same(variables[1], root)
        same(variables[2], [True, True])
    variable = tf.Variable(float(rank))
    same(hvd.broadcast_([variable], 0)[0], 0.0)
    same(variable, 0.0)
    variable.assign(float(rank))

    @tf.function
    def in_graph() -> None:
        hvd.broadcast_variables([variable], root)

    in_graph()
    same(variable, float(root))
    hvd.broadcast_variables([], 0)
    assert hvd.broadcast_object({"of": rank}, root) == {"of": root}
    assert hvd.broadcast_object_fn(0)(rank) == 0
    assert hvd.allgather_object([rank]) == [[one] for one in range(size)]
    raises(RuntimeError, "broadcast_variables", hvd.broadcast_global_variables, 0)


@case
def elastic_states() -> None:
    rank = hvd.rank()
    variable = tf.Variable(float(rank))
    state = hvd.elastic.TensorFlowState([variable], epoch=rank)
    state.sync()
    same(variable, 0.0)
    assert state.epoch == 0
    variable.assign(5.0)
    state.epoch = 3
    state.restore()
    same(variable, 0.0)
    assert state.epoch == 0
    state.epoch = 4
    variable.assign(2.0)
    state.commit()
    variable.assign(9.0)
    state.restore()
    same(variable, 2.0)
    with tf.Graph().as_default(), v1.Session() as session:
        old = v1.get_variable("old", initializer=tf.constant(float(rank)))
        session.run(v1.global_variables_initializer())
        state = hvd.elastic.TensorFlowState([old], session, step=1)
        state.sync()
        same(session.run(old), 0.0)
        session.run(old.assign(7.0))
        state.restore()
        same(session.run(old), 0.0)

    calls = []

    @hvd.elastic.run
    def train(state: Any) -> str:
        calls.append(state.epoch)
        if len(calls) == 1:
            raise tf.errors.UnknownError(None, None, "rank 1 is gone [Op:HorovodAllreduce]")
        return "done"

    plain = hvd.elastic.TensorFlowState([variable], epoch=1)
    assert train(plain) == "done" and calls == [1, 1]


@case
def batch_normalization() -> None:
    rank, size = hvd.rank(), hvd.size()
    every = np.random.RandomState(1).rand(3 * size + size * (size - 1) // 2, 4).astype("float32")
    first = 3 * rank + rank * (rank - 1) // 2
    mine = every[first : first + 3 + rank]
    layer = hvd.SyncBatchNormalization(axis=-1, momentum=0.0)
    got = layer(mine, training=True)
    wanted = (every - every.mean(0)) / np.sqrt(every.var(0) + 1e-3)
    np.testing.assert_allclose(got, wanted[first : first + 3 + rank], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(layer.moving_mean, every.mean(0), rtol=1e-4)
    assert layer.name == "sync_batch_normalization"
    raises(ValueError, "fused", hvd.SyncBatchNormalization, fused=True)


# ---- Do ranks agree? ---------------------------------------------------------


def alarms(function: Callable[..., None], *args: Any) -> list[str]:
    """What is said about parameters while this runs."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        function(*args)
    return [str(one.message) for one in said if "parameter" in str(one.message)]


class Steps:
    """Steps with two tapes, as a pair of networks has; the second has a local variable."""

    def __init__(self, start: float) -> None:
        self.one = [tf.Variable([start]), tf.Variable([[start]])]
        self.two = [tf.Variable([2 * start]), tf.Variable([hvd.rank() + 1.0])]

    def __call__(self, x: Any) -> Any:
        for variables in (self.one, self.two):
            with tf.GradientTape() as tape:
                loss = sum(tf.reduce_sum(one * one * x) for one in variables)
            tape = hvd.DistributedGradientTape(tape)
            if variables is self.two:
                tape.register_local_source(self.two[1])
            for one, gradient in zip(variables, tape.gradient(loss, variables)):
                one.assign_sub(0.1 * gradient)
        return loss


def take(steps: Steps, is_graph: bool, broadcasts_after: int | None = None, count: int = 4) -> None:
    run = tf.function(steps) if is_graph else steps
    for number in range(count):
        run(tf.constant(1.0 + hvd.rank()))
        if number == broadcasts_after:
            hvd.broadcast_variables([*steps.one, steps.two[0]], root_rank=0)


@case
def variables_that_were_never_broadcast_are_reported() -> None:
    for is_graph in (False, True):
        said = alarms(take, Steps(1.0 + hvd.rank()), is_graph)
        if hvd.rank() > 0:
            assert said == [], said
            continue
        assert len(said) == 2, said  # one for each tape
        assert "(2 of 2 parameters differ)" in said[0] + said[1], said
        assert "(1 of 1 parameters differ)" in said[0] + said[1], said
        assert all("hvd.broadcast_variables(" in words for words in said), said


@case
def a_broadcast_after_the_first_step_is_no_reason_for_alarm() -> None:
    for is_graph in (False, True):
        assert alarms(take, Steps(1.0 + hvd.rank()), is_graph, 0) == []
        assert alarms(take, Steps(1.0), is_graph) == []


def go_apart(is_graph: bool) -> None:
    """After the second step one variable is no longer the same."""
    steps = Steps(1.0)
    run = tf.function(steps) if is_graph else steps
    for number in range(4):
        run(tf.constant(1.0))
        if number == 1:
            steps.one[1].assign([[5.0 + hvd.rank()]])


@case
def later_steps_are_compared_on_request() -> None:
    hvd.shutdown()
    os.environ["RUEDA_CHECK"] = "every:2"
    try:
        hvd.init()
        for is_graph in (False, True):
            said = alarms(go_apart, is_graph)
            assert len(said) == (hvd.rank() == 0), said
            assert all("(1 of 2 parameters differ)" in words for words in said), said
        hvd.shutdown()
        os.environ["RUEDA_CHECK"] = "off"
        hvd.init()
        assert alarms(take, Steps(1.0 + hvd.rank()), True) == []
    finally:
        del os.environ["RUEDA_CHECK"]


@case
def a_graph_that_was_never_broadcast_is_reported() -> None:
    for is_broadcast in (True, False):
        with tf.Graph().as_default(), v1.Session() as session:
            variable = v1.get_variable("w", initializer=tf.constant([1.0 + hvd.rank()]))
            optimizer = hvd.DistributedOptimizer(v1.train.GradientDescentOptimizer(0.1))
            step = optimizer.minimize(tf.reduce_sum(variable * variable))
            start = hvd.broadcast_global_variables(0)
            session.run(v1.global_variables_initializer())
            if is_broadcast:
                session.run(start)

            said = alarms(session.run, [step]) + alarms(session.run, [step])
            assert len(said) == (hvd.rank() == 0 and not is_broadcast), said


# ---- Others --------------------------------------------------------------------


@case
def a_cluster_for_strategies() -> None:
    known = os.environ.pop("TF_CONFIG", None)
    try:
        config = json.loads(hvd.tf_config())
        assert config["task"] == {"type": "worker", "index": hvd.rank()}
        workers = config["cluster"]["worker"]
        assert hvd.allgather_object(workers) == [workers] * hvd.size()
        assert len(set(workers)) == hvd.size()
        assert all(one.startswith("localhost:") for one in workers), workers
        assert hvd.tf_config() == os.environ["TF_CONFIG"] == json.dumps(config)
        if hvd.rank() == 0:
            os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": ["a:1"]}, "task": {}})
        assert json.loads(hvd.tf_config())["cluster"]["worker"] != workers
    finally:
        os.environ.pop("TF_CONFIG", None)
        if known is not None:
            os.environ["TF_CONFIG"] = known


def ask_board(place: tuple[str, int], line: bytes) -> bytes:
    """What a stranger gets who sends this line."""
    with socket.create_connection(place, timeout=10) as connection:
        connection.recv(100)
        connection.sendall(line)
        connection.shutdown(socket.SHUT_WR)
        return connection.recv(100)


@case
def words_on_a_board_need_the_key() -> None:
    board = Board(b"k" * 32)
    try:
        client = BoardClient(board.addresses(), b"k" * 32)
        client.put("a/1", "one")
        client.put("a/1", "one")
        raises(ValueError, "a/1 is one already", client.put, "a/1", "two")
        assert client.wait("a/", 1, 5, "a") == {"a/1": "one"}
        raises(TimeoutError, "waited 0.2 s for the rest", client.wait, "a/", 2, 0.2, "the rest")
        stranger = BoardClient(board.addresses(), b"x" * 32)
        raises(ConnectionError, "cannot be reached", stranger.put, "a/2", "three")
        for line in (b"", b"\n", b"\xff" * 70000 + b"\n", b"0 {}\n", b"[" * 5000 + b"\n"):
            assert ask_board(board.addresses()["lo"][0], line) == b""
        assert client.wait("a/", 1, 5, "a") == {"a/1": "one"}
    finally:
        board.close()
    raises(ConnectionError, "cannot be reached", client.put, "a/3", "late")


@case
def data_comes_from_workers_of_a_service() -> None:
    path = hvd.broadcast_object(str(Path(tempfile.mkdtemp()) / "service.json"))
    arguments = (1, "compute", path, 60)
    worker = threading.Thread(target=compute_worker.main, args=arguments, daemon=True)
    worker.start()
    config = TfDataServiceConfig.read(path, wait_for_file_creation=True)
    assert os.stat(path).st_mode & 0o077 == 0  # the key is in it
    raises(IndexError, "no dispatcher 1", config.compute_client().register_dispatcher, 1, "x")
    shares = tf.data.Dataset.range(64).batch(8)
    shares = shares.send_to_data_service(
        config, hvd.rank(), hvd.size(), processing_mode="distributed_epoch", reuse_dataset=True
    )
    mine = [int(one) for batch in shares.as_numpy_iterator() for one in batch]
    every = [one for part in hvd.allgather_object(mine) for one in part]
    assert sorted(every) == list(range(64)), every
    if hvd.rank() == 0:
        config.compute_client().shutdown()
    worker.join(60)
    assert not worker.is_alive()


@case
def names() -> None:
    assert hvd is rueda.tensorflow
    assert hvd.is_master() == (hvd.rank() == 0)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        same(hvd.allreduce(tf.constant(1), average=False), hvd.size())
    assert any("average" in str(one.message) for one in said)
    assert hvd.util.refs_to_vars(hvd.vars_to_refs([v := tf.Variable(1)])) == [v]
    missing = [name for name in hvd.__all__ if not hasattr(hvd, name)]
    assert not missing, missing


# ---- All of them ---------------------------------------------------------------


def attempt(function: Callable[[], None]) -> str:
    try:
        hvd.init()
        function()
        hvd.barrier()
        return ""
    except BaseException:
        return traceback.format_exc()
    finally:
        hvd.shutdown()


def main() -> None:
    if os.environ["HOROVOD_RANK"] == "0":
        tf.config.threading.set_inter_op_parallelism_threads(1)
    os.environ["HOROVOD_DYNAMIC_PROCESS_SETS"] = "1"
    names = sys.argv[2:] or list(CASES)
    results = {name: attempt(CASES[name]) for name in names}
    Path(sys.argv[1], f"{os.environ['HOROVOD_RANK']}.json").write_text(json.dumps(results))


if __name__ == "__main__":
    main()
