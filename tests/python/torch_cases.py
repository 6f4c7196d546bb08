# SPDX-License-Identifier: Apache-2.0
"""What every rank does in tests of rueda.torch: a function for each case.

    ruedarun -np 2 python torch_cases.py FOLDER

runs all of them, each between an init() and a shutdown(), and each rank writes to
FOLDER/<rank>.json how they went: "" or a traceback. test_torch_ops.py reads that.
"""

from __future__ import annotations

import copy
import gc
import json
import os
import pickle
import sys
import threading
import traceback
import warnings
from pathlib import Path
from typing import Any, Callable

import rueda.torch as hvd
import torch

CASES: dict[str, Callable[[], None]] = {}

DTYPES = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16,
          torch.float32, torch.float64, torch.bfloat16]  # fmt: skip
SHAPES = [(), (0,), (3, 0), (1,), (17,), (5, 7), (2, 3, 4)]


def case(function: Callable[[], None]) -> Callable[[], None]:
    CASES[function.__name__] = function
    return function


def same(got: torch.Tensor, wanted: torch.Tensor) -> None:
    assert got.shape == wanted.shape, f"{got.shape}, not {wanted.shape}"
    assert got.dtype == wanted.dtype, f"{got.dtype}, not {wanted.dtype}"
    assert torch.equal(got, wanted), f"{got}, not {wanted}"


def raises(kind: Any, words: str, function: Callable[..., Any], *args: Any, **more: Any) -> None:
    try:
        function(*args, **more)
    except kind as error:
        assert words in str(error), f'"{words}" is not in "{error}"'
        return
    raise AssertionError(f"{function.__name__} raised nothing")


def numbers(shape: tuple[int, ...], dtype: torch.dtype, rank: int) -> torch.Tensor:
    """Small ones, which have exact sums and products in every type."""
    count = torch.Size(shape).numel()
    values = torch.arange(count) % 3 + 1 if rank == 0 else torch.arange(count) % 2 + 1
    return values.reshape(shape).to(dtype)


def of_all(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    return torch.stack([numbers(shape, dtype, rank).double() for rank in range(hvd.size())])


def mine(shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return numbers(shape, dtype, hvd.rank())


# ---- Allreduce --------------------------------------------------------------


def expected(op: int, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    every = of_all(shape, dtype)
    if op == hvd.Average:
        average = every.sum(0) / hvd.size()
        return (average if dtype.is_floating_point else average.trunc()).to(dtype)
    if op == hvd.Min:
        return every.min(0).values.to(dtype)
    if op == hvd.Max:
        return every.max(0).values.to(dtype)
    return (every.sum(0) if op == hvd.Sum else every.prod(0)).to(dtype)


@case
def every_type_and_reduction() -> None:
    for dtype in DTYPES:
        for op in (hvd.Average, hvd.Sum, hvd.Min, hvd.Max, hvd.Product):
            tensor = mine((17,), dtype)
            before = tensor.clone()
            same(hvd.allreduce(tensor, op=op), expected(op, (17,), dtype))
            same(tensor, before)


@case
def every_shape_and_way() -> None:
    for shape in SHAPES:
        wanted = expected(hvd.Sum, shape, torch.float32)
        same(hvd.allreduce(mine(shape), op=hvd.Sum), wanted)
        same(hvd.synchronize(hvd.allreduce_async(mine(shape), op=hvd.Sum)), wanted)
        tensor = mine(shape)
        assert hvd.allreduce_(tensor, None, f"x{shape}", hvd.Sum) is tensor
        same(tensor, wanted)
        tensor = mine(shape)
        assert hvd.synchronize(hvd.allreduce_async_(tensor, op=hvd.Sum)) is tensor
        same(tensor, wanted)


@case
def booleans() -> None:
    tensor = torch.tensor([False, True, hvd.rank() == 0])
    same(hvd.allreduce(tensor, op=hvd.Max), torch.tensor([False, True, True]))
    same(hvd.allreduce(tensor, op=hvd.Min), torch.tensor([False, True, False]))
    wanted = torch.tensor([[False, True, rank == 0] for rank in range(hvd.size())]).flatten()
    same(hvd.allgather(tensor), wanted)
    same(hvd.broadcast(tensor, 0), torch.tensor([False, True, True]))


@case
def factors() -> None:
    ones = torch.ones(5)
    same(hvd.allreduce(ones, op=hvd.Sum, prescale_factor=0.5), ones * 0.5 * hvd.size())
    same(hvd.allreduce(ones, op=hvd.Sum, postscale_factor=3.0), ones * 3 * hvd.size())
    same(hvd.allreduce(ones, prescale_factor=2.0, postscale_factor=4.0), ones * 8)


@case
def average_is_the_old_argument() -> None:
    ones = torch.ones(3)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        same(hvd.allreduce(ones, average=False), ones * hvd.size())
        same(hvd.allreduce(ones, average=True), ones)
    assert [one.category for one in seen] == [DeprecationWarning] * 2, seen
    raises(ValueError, "average", hvd.allreduce, ones, average=True, op=hvd.Sum)
    raises(ValueError, "op is 77", hvd.allreduce, ones, op=77)


@case
def memory_with_gaps() -> None:
    wanted = expected(hvd.Sum, (6, 4), torch.float32)
    same(hvd.allreduce(mine((4, 6)).t(), op=hvd.Sum).t(), expected(hvd.Sum, (4, 6), torch.float32))
    buffer = torch.full((8, 4), -1.0)
    buffer[1:7] = mine((6, 4))
    hvd.allreduce_(buffer[1:7], op=hvd.Sum)
    same(buffer[1:7], wanted)
    same(buffer[0], torch.full((4,), -1.0))
    wide = torch.full((6, 8), -1.0)
    wide[:, ::2] = mine((6, 4))
    hvd.allreduce_(wide[:, ::2], op=hvd.Sum)
    same(wide[:, ::2].contiguous(), wanted)
    same(wide[:, 1::2].contiguous(), torch.full((6, 4), -1.0))
    hvd.broadcast_(wide[:, 1::2], 0)
    same(wide[:, ::2].contiguous(), wanted)


@case
def groups() -> None:
    shapes = [(3,), (2, 5), (1,), (0,)]
    wanted = [expected(hvd.Sum, shape, torch.float64) for shape in shapes]
    tensors = [mine(shape, torch.float64) for shape in shapes]
    for got in (
        hvd.grouped_allreduce(tensors, op=hvd.Sum),
        hvd.synchronize(hvd.grouped_allreduce_async(tensors, name="g", op=hvd.Sum)),
        hvd.grouped_allreduce_(tensors, op=hvd.Sum),
        tensors,
    ):
        for one, other in zip(got, wanted):
            same(one, other)
    grid = torch.stack([mine((4,)), mine((4,))], dim=1)
    hvd.grouped_allreduce_([grid[:, 0], grid[:, 1]], op=hvd.Sum)
    same(grid[:, 0].contiguous(), expected(hvd.Sum, (4,), torch.float32))
    gathered = hvd.grouped_allgather([mine((2,)), mine((1, 3))])
    same(gathered[1], torch.cat([numbers((1, 3), torch.float32, r) for r in range(hvd.size())]))


# ---- Others -----------------------------------------------------------------


@case
def groups_of_what_comes_once() -> None:
    def some(gradient: bool = False) -> Any:
        return (torch.full((hvd.size(),), float(i), requires_grad=gradient) for i in range(3))

    for gradient in (False, True):
        for reduce in (hvd.grouped_allreduce, hvd.grouped_allgather, hvd.grouped_reducescatter):
            assert [float(one[0].detach()) for one in reduce(some(gradient))] == [0, 1, 2]
    assert [float(one[0]) for one in hvd.grouped_allreduce_(some())] == [0, 1, 2]
    halves = hvd.grouped_allreduce(some(True), compression=hvd.Compression.fp16)
    assert len(halves) == 3


@case
def gather_rows() -> None:
    for dtype in DTYPES:
        for most in (0, 1, 3):
            parts = [torch.full((min(r, most), 2), r + 1).to(dtype) for r in range(hvd.size())]
            same(hvd.allgather(parts[hvd.rank()]), torch.cat(parts))
    raises(hvd.HorovodInternalError, "rank-zero tensor", hvd.allgather, torch.tensor(1.0))


@case
def broadcast_from_each() -> None:
    for root in range(hvd.size()):
        for dtype in DTYPES:
            tensor = torch.full((3, 2), hvd.rank()).to(dtype)
            same(hvd.broadcast(tensor, root), torch.full((3, 2), root).to(dtype))
            same(tensor, torch.full((3, 2), hvd.rank()).to(dtype))
            assert hvd.broadcast_(tensor, root, name=f"b{dtype}") is tensor
            same(tensor, torch.full((3, 2), root).to(dtype))
    raises(ValueError, "root rank 99", hvd.broadcast, torch.ones(1), 99)


@case
def all_to_all() -> None:
    size, rank = hvd.size(), hvd.rank()
    same(hvd.alltoall(torch.arange(size) + 10 * rank), 10 * torch.arange(size) + rank)
    splits = [rank + 1] * size
    sent = torch.full((sum(splits) + 2, 3), rank, dtype=torch.bfloat16)  # two rows stay
    got, received = hvd.alltoall(sent, splits=torch.tensor(splits, dtype=torch.int32))
    same(got, torch.cat([torch.full((r + 1, 3), r, dtype=torch.bfloat16) for r in range(size)]))
    same(received, torch.arange(1, size + 1, dtype=torch.int32))
    assert len(hvd.synchronize(hvd.alltoall_async(torch.ones(size)))) == 2
    raises(ValueError, "divide evenly", hvd.alltoall, torch.ones(size + 1))
    raises(ValueError, "add up to more", hvd.alltoall, torch.ones(1), splits=[1] * size)
    raises(ValueError, "splits for", hvd.alltoall, torch.ones(1), splits=[1] * (size + 1))
    raises(ValueError, "negative", hvd.alltoall, torch.ones(1), splits=[-1] * size)
    raises(ValueError, "int32", hvd.alltoall, torch.ones(1), splits=torch.ones(size))


@case
def scatter_reduced_rows() -> None:
    size, rank = hvd.size(), hvd.rank()
    for rows in (size, 2 * size + 1, 1, 0):
        summed = expected(hvd.Sum, (rows, 2), torch.float32)
        share, more = divmod(rows, size)
        first = rank * share + min(rank, more)
        own = summed[first : first + share + (rank < more)]
        same(hvd.reducescatter(mine((rows, 2)), op=hvd.Sum), own)
        same(hvd.synchronize(hvd.reducescatter_async(mine((rows, 2)), "r", hvd.Sum)), own)
        both = hvd.grouped_reducescatter([mine((rows, 2))] * 2, op=hvd.Sum)
        same(both[1], own)
    raises(hvd.HorovodInternalError, "rank-zero tensor", hvd.reducescatter, torch.tensor(1.0))
    raises(RuntimeError, "Sum", hvd.reducescatter, torch.ones(4), op=hvd.Adasum)


@case
def adasum() -> None:
    same(hvd.allreduce(torch.ones(9), op=hvd.Adasum), torch.ones(9))


@case
def sparse() -> None:
    rank, size = hvd.rank(), hvd.size()
    tensor = torch.sparse_coo_tensor([[0, rank + 1]], [[1.0, 2.0]] * 2, (size + 1, 2))
    for op, factor in ((hvd.Sum, 1), (hvd.Average, size)):
        finish = hvd.sparse_allreduce_async(tensor, f"s{op}", op)
        wanted = hvd.allreduce(tensor.to_dense(), op=hvd.Sum) / factor
        same(finish().to_dense(), wanted)
    empty = torch.sparse_coo_tensor(size=(4, 2))
    same(hvd.sparse_allreduce_async(empty, "none", hvd.Sum)().to_dense(), torch.zeros(4, 2))
    raises(ValueError, "sparse", hvd.allreduce, tensor)


@case
def sparse_of_another_shape() -> None:
    """Entries that are outside of the tensor are refused, and would be memory of others'."""
    rows = 3 if hvd.rank() == 0 else 9
    tensor = torch.sparse_coo_tensor([[rows - 1]], [1.0], (rows,))
    finish = hvd.sparse_allreduce_async(tensor, "shapes", hvd.Sum)
    if hvd.rank() == 0:
        raises(RuntimeError, "size", finish)
    else:
        finish()


# ---- Gradients --------------------------------------------------------------


def gradient_of(function: Callable[[torch.Tensor], torch.Tensor], rows: int) -> torch.Tensor:
    """Of the sum of what comes out, each number times its place."""
    tensor = torch.ones(rows, 2, dtype=torch.float64, requires_grad=True)
    output = function(tensor)
    output.backward(torch.arange(output.numel(), dtype=torch.float64).reshape(output.shape))
    assert tensor.grad is not None
    return tensor.grad


@case
def gradients() -> None:
    size, rank = hvd.size(), hvd.rank()
    places = torch.arange(2.0 * size, dtype=torch.float64).reshape(size, 2)
    reduced = {
        "sum": lambda x: hvd.allreduce(x, op=hvd.Sum),
        "average": lambda x: hvd.allreduce(x),
        "grouped": lambda x: hvd.grouped_allreduce([x, x.detach()], op=hvd.Sum)[0],
    }
    for name, factor in (("sum", size), ("average", 1), ("grouped", size)):
        same(gradient_of(reduced[name], size), places * factor)
    same(gradient_of(hvd.allgather, 1), places[rank : rank + 1])
    same(gradient_of(lambda x: hvd.grouped_allgather([x])[0], 1), places[rank : rank + 1])
    same(gradient_of(lambda x: hvd.broadcast(x, 1), size), places * (rank == 1))
    row = torch.tensor([[2.0 * rank, 2.0 * rank + 1]], dtype=torch.float64)
    same(gradient_of(hvd.alltoall, size), row.expand(size, 2).contiguous())
    few = gradient_of(lambda x: hvd.alltoall(x, splits=[1] * size)[0], size + 1)
    same(few[size:], torch.zeros(1, 2, dtype=torch.float64))
    first = torch.tensor([[0.0, 1.0]], dtype=torch.float64).expand(size, 2)
    same(gradient_of(lambda x: hvd.reducescatter(x, op=hvd.Sum), size), first * size)
    same(gradient_of(lambda x: hvd.reducescatter(x), size), first.contiguous())
    with torch.no_grad():
        leaf = torch.ones(2, requires_grad=True)
        assert not hvd.allreduce(leaf).requires_grad
    hvd.allreduce_(leaf, op=hvd.Sum)
    same(leaf.detach(), torch.full((2,), float(size)))


@case
def gradients_of_gradients() -> None:
    size, rank = hvd.size(), hvd.rank()
    ways = {
        "sum": (lambda x: hvd.allreduce(x, op=hvd.Sum), size * size),
        "average": (hvd.allreduce, 1),
        "grouped": (lambda x: hvd.grouped_allreduce([x, x], op=hvd.Sum)[1], size * size),
        "allgather": (hvd.allgather, 1 / size),
        "grouped allgather": (lambda x: hvd.grouped_allgather([x])[0], 1 / size),
        "broadcast": (lambda x: hvd.broadcast(x, 1), (rank == 1) / size),
        "alltoall": (hvd.alltoall, 1),
        "reducescatter": (lambda x: hvd.reducescatter(x, op=hvd.Sum), size * size),
        "grouped reducescatter": (lambda x: hvd.grouped_reducescatter([x])[0], 1),
    }
    for way, factor in ways.values():
        x = torch.full((size, 2), 3.0, dtype=torch.float64, requires_grad=True)
        (first,) = torch.autograd.grad(way(x).square().sum() / 2, x, create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), x)
        same(second, torch.full_like(x, factor))


# ---- Names, handles, sets ---------------------------------------------------


@case
def one_rank_is_the_master() -> None:
    masters = hvd.allgather_object((hvd.rank(), hvd.is_master()))
    assert masters == [(rank, rank == 0) for rank in range(hvd.size())], masters


@case
def names_in_any_order() -> None:
    order = list(range(10))
    if hvd.rank() % 2:
        order.reverse()
    tensors = [torch.full((i,), 1.0) for i in range(10)]
    handles = {i: hvd.allreduce_async(tensors[i], name=f"n{i}", op=hvd.Sum) for i in order}
    for i in range(10):
        same(hvd.synchronize(handles[i]), torch.full((i,), float(hvd.size())))


@case
def handles_are_used_once() -> None:
    handle = hvd.allreduce_async(torch.ones(2))
    assert handle == 1
    hvd.synchronize(handle)
    assert hvd.synchronize(handle) is None
    assert hvd.synchronize(12345) is None
    raises(ValueError, "12345", hvd.poll, 12345)
    handle = hvd.barrier() or hvd.allreduce_async(torch.ones(2))
    while not hvd.poll(handle):
        pass
    same(hvd.synchronize(handle), torch.ones(2))


@case
def tensors_are_kept() -> None:
    handles = [hvd.allreduce_async_(torch.full((1000,), float(i))) for i in range(50)]
    handles += [hvd.allgather_async(torch.full((10, 10), float(i))) for i in range(50)]
    gc.collect()
    for i in range(50):
        same(hvd.synchronize(handles[i]), torch.full((1000,), float(i)))
    gathered = [hvd.synchronize(handle) for handle in handles[50:]]
    for i, one in enumerate(gathered):
        same(one, torch.full((10 * hvd.size(), 10), float(i)))


@case
def a_name_is_taken_until_somebody_knows() -> None:
    """However fast the others are, and whatever the operation."""
    begin = {
        "allreduce": lambda: hvd.allreduce_async(torch.ones(2), name="n"),
        "allgather": lambda: hvd.allgather_async(torch.ones(2), name="n"),
        "group": lambda: hvd.grouped_allreduce_async_([torch.ones(2), torch.ones(3)], name="n"),
    }
    for kind, submit in begin.items():
        handle = submit()
        hvd.barrier()  # it has ended everywhere, as it came before
        raises(ValueError, "currently being processed", submit)
        hvd.synchronize(handle)
        handle = submit()
        while not hvd.poll(handle):
            pass
        other = submit()
        assert hvd.synchronize(handle) is not None, kind
        assert hvd.synchronize(other) is not None, kind


@case
def a_failure_that_was_polled_is_raised_once() -> None:
    for _ in range(2):
        handle = hvd.allreduce_async(torch.ones(2 + hvd.rank()), name="apart")
        while not hvd.poll(handle):
            pass
        assert hvd.poll(handle)
        raises(hvd.HorovodInternalError, "Mismatched", hvd.synchronize, handle)
        assert hvd.synchronize(handle) is None


@case
def the_same_name_twice() -> None:
    if hvd.rank() == 0:
        handle = hvd.allreduce_async(torch.ones(3), name="twice")
        raises(ValueError, '"allreduce.twice"', hvd.allreduce_async, torch.ones(3), name="twice")
    hvd.barrier()
    if hvd.rank() > 0:
        handle = hvd.allreduce_async(torch.ones(3), name="twice")
    same(hvd.synchronize(handle), torch.ones(3))


@case
def many_threads() -> None:
    wrong: list[str] = []

    def work(number: int) -> None:
        try:
            for i in range(20):
                got = hvd.allreduce(torch.full((7,), 1.0), name=f"t{number}.{i}", op=hvd.Sum)
                same(got, torch.full((7,), float(hvd.size())))
        except Exception:
            wrong.append(traceback.format_exc())

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong, wrong[0]


@case
def process_sets() -> None:
    size, rank = hvd.size(), hvd.rank()
    assert str(hvd.global_process_set.ranks) == str(list(range(size)))
    last = hvd.ProcessSet([size - 1])
    assert last.size() is None and last.rank() is None
    raises(ValueError, "not registered", hvd.allreduce, torch.ones(1), process_set=last)
    assert hvd.add_process_set(last) is last
    rest = hvd.add_process_set(range(size - 1))
    assert last.process_set_id == 1 and rest.process_set_id == 2
    raises(ValueError, "already", hvd.add_process_set, [size - 1])
    raises(ValueError, "already", hvd.add_process_set, range(size))
    own, other = (last, rest) if rank == size - 1 else (rest, last)
    assert own.included() and not other.included()
    raises(ValueError, "not a member", other.rank)
    raises(ValueError, "not a member", hvd.allreduce, torch.ones(1), process_set=other)
    ones = torch.ones(4)
    same(hvd.allreduce(ones, name="x", op=hvd.Sum, process_set=own), ones * own.size())
    root = own.ranks[-1]
    same(hvd.broadcast(torch.tensor([rank]), root, process_set=own), torch.tensor([root]))
    same(hvd.allgather(torch.tensor([rank]), process_set=own), torch.tensor(own.ranks))
    raises(NotImplementedError, "all ranks", hvd.allreduce, ones, op=hvd.Adasum, process_set=own)
    hvd.barrier(process_set=own)
    hvd.barrier()
    # Copies are the set itself, and pickles the set of these ranks.
    assert copy.deepcopy(last) is last and pickle.loads(pickle.dumps(last)) is last
    for copied in (copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))):
        assert copied(hvd.global_process_set) is hvd.global_process_set
    pickled = pickle.dumps(last)
    assert hvd.remove_process_set(last) and last.process_set_id is None
    assert not hvd.remove_process_set(last)
    assert not hvd.remove_process_set(hvd.global_process_set)
    gone = pickle.loads(pickled)
    assert gone.process_set_id is None and gone.ranks == [size - 1]


@case
def ranks_that_join_early_change_no_result() -> None:
    """Whatever is reduced, and in which type, some tensors larger than the others."""
    if hvd.rank() == 0:
        assert hvd.join() != 0
        return
    for dtype in [*DTYPES, torch.bool]:
        for op in (hvd.Min, hvd.Max, hvd.Product):
            given = torch.tensor([-3, 2, 0]).to(dtype)
            power = hvd.size() - 1 if op == hvd.Product and dtype is not torch.bool else 1
            wanted = given if power == 1 else given**power
            for count in (1, 1000):
                tensors = [given, given.repeat(count), given[:0]]
                got = hvd.grouped_allreduce(tensors, name=f"{count}.{dtype}.{op}", op=op)
                same(got[0], wanted)
                same(got[1], wanted.repeat(count))
    turned = hvd.allreduce(torch.tensor([-3.0, 2.0]), op=hvd.Max, prescale_factor=-2.0)
    same(turned, torch.tensor([6.0, -4.0]))
    assert hvd.join() != 0


@case
def ranks_that_join_early() -> None:
    if hvd.rank() == 0:
        assert hvd.join() != 0
        return
    ones = torch.ones(6)
    same(hvd.allreduce(ones, name="a", op=hvd.Sum), ones * (hvd.size() - 1))
    same(hvd.allreduce(ones, name="b"), ones * (hvd.size() - 1) / hvd.size())
    raises(hvd.HorovodInternalError, "join", hvd.allgather, ones, name="c")
    assert hvd.join() != 0


# ---- Errors -----------------------------------------------------------------


@case
def ranks_that_disagree() -> None:
    rank = hvd.rank()
    for i in range(3):
        raises(hvd.HorovodInternalError, "shape", hvd.allreduce, torch.ones(rank + 1), name="d")
        kind = torch.float32 if rank == 0 else torch.int32
        raises(hvd.HorovodInternalError, "int32", hvd.allreduce, torch.ones(3).to(kind), name="e")
        raises(hvd.HorovodInternalError, "root", hvd.broadcast, torch.ones(3), rank % 2, name="f")
        same(hvd.allreduce(torch.ones(i), name="d"), torch.ones(i))


@case
def views_that_are_negated_when_read() -> None:
    """Imaginary parts of what is conjugated, of one number and of several."""
    size = hvd.size()
    for count in (1, 3):
        def one(count: int = count) -> torch.Tensor:
            return torch.full((count,), complex(1, -2 - hvd.rank())).conj().imag

        wanted = torch.stack([torch.full((count,), 2.0 + rank) for rank in range(size)])
        assert one().is_neg()
        same(hvd.allreduce(one(), op=hvd.Sum), wanted.sum(0))
        same(hvd.allreduce(one()[0], op=hvd.Max), wanted.max(0).values[0])
        in_place = one()
        assert hvd.allreduce_(in_place, op=hvd.Max) is in_place
        same(in_place, wanted.max(0).values)
        same(hvd.grouped_allreduce([one()], op=hvd.Min)[0], wanted.min(0).values)
        same(hvd.allgather(one()), wanted.flatten())
        same(hvd.broadcast_(one(), 1), wanted[1])
        same(hvd.alltoall(one().repeat(size)), wanted.flatten())
        same(hvd.reducescatter(one().expand(size, count), op=hvd.Sum)[0], wanted.sum(0))
    param = torch.nn.Parameter(torch.ones(1))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([param], lr=1.0))
    param.grad = torch.full((1,), complex(1, -2 - hvd.rank())).conj().imag
    optimizer.step()
    same(param.data, 1 - torch.tensor([2.0 + rank for rank in range(size)]).mean(0, keepdim=True))


@case
def what_cannot_be() -> None:
    who = f"rank {hvd.rank()}"
    pair = torch.ones(2, dtype=torch.complex64)
    for tensor in (pair, pair.conj()):
        raises(ValueError, f"{who}: a tensor", hvd.allreduce, tensor)
        raises(ValueError, "view_as_real", hvd.allreduce_, tensor)
    raises(ValueError, "on meta", hvd.allreduce_, torch.ones(2, device="meta"))
    for collective in (hvd.allreduce, hvd.allgather, hvd.alltoall, hvd.reducescatter):
        meta = torch.ones(2, device="meta")
        raises(ValueError, f'{who}: "here": a tensor of shape (2,)', collective, meta, name="here")
    raises(ValueError, "a tensor is expected, not list", hvd.allgather, [1.0])
    raises(ValueError, "a group has", hvd.grouped_allreduce, [])
    raises(ValueError, "over", hvd.allreduce, torch.ones(1), name="x" * 100000)


@case
def forked_children() -> None:
    hvd.allreduce(torch.ones(2))
    child = os.fork()
    if child == 0:
        try:
            assert hvd.rank() >= 0
            raises(RuntimeError, "call init() in the child, or start workers (of a DataLoader",
                   hvd.allreduce_async, torch.ones(2))
            hvd.shutdown()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    same(hvd.allreduce(torch.ones(2)), torch.ones(2))


@case
def life() -> None:
    assert hvd.is_initialized()
    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    assert rank == int(os.environ["HOROVOD_RANK"]) and size == int(os.environ["HOROVOD_SIZE"])
    assert (hvd.local_rank(), hvd.local_size()) == (rank, size)
    assert (hvd.cross_rank(), hvd.cross_size()) == (0, 1)
    assert hvd.mpi_ops.is_homogeneous()
    assert hvd.gloo_enabled() and not hvd.mpi_enabled()
    raises(ValueError, "MPI", hvd.mpi_threads_supported)
    hvd.shutdown()
    hvd.shutdown()
    assert not hvd.is_initialized()
    raises(ValueError, "init()", hvd.rank)
    raises(ValueError, "has not been initialized; use hvd.init()", hvd.allreduce, torch.ones(1))
    raises(ValueError, "process_sets", hvd.init, process_sets="static")
    raises(ValueError, "process_sets", hvd.init, process_sets=[1])
    lists = [[hvd.ProcessSet([0])], [hvd.ProcessSet([0]), hvd.ProcessSet([1])], None]
    for odd in lists[1:]:
        mine = odd if rank == size - 1 else lists[0]
        raises(ValueError, "Mismatched process sets", hvd.init, process_sets=mine)
    hvd.init(process_sets=[hvd.ProcessSet([0])])
    assert hvd.mpi_ops._basics._get_process_set_ids_and_ranks() == {0: list(range(size)), 1: [0]}


@case
def timelines() -> None:
    files = [Path(sys.argv[1], f"timeline{i}.json") for i in range(2)]
    for file in files:  # the second takes over from the first
        hvd.start_timeline(str(file), mark_cycles=True)
        hvd.allreduce(torch.ones(1), name=f"in.{file.stem}")
    hvd.stop_timeline()
    hvd.stop_timeline()
    if hvd.rank() == 0:
        for file in files:
            assert json.loads(file.read_text())
            assert f"allreduce.in.{file.stem}" in file.read_text()


# ---- All of them ------------------------------------------------------------


def attempt(function: Callable[[], None]) -> str:
    try:
        hvd.init()
        function()
        if hvd.is_initialized():
            hvd.barrier()
        return ""
    except BaseException:
        return traceback.format_exc()
    finally:
        hvd.shutdown()


def main() -> None:
    torch.set_num_threads(1)
    os.environ["HOROVOD_TIMELINE"] = "DYNAMIC"
    os.environ["HOROVOD_DYNAMIC_PROCESS_SETS"] = "1"
    results = {name: attempt(function) for name, function in CASES.items()}
    Path(sys.argv[1], f"{os.environ['HOROVOD_RANK']}.json").write_text(json.dumps(results))


if __name__ == "__main__":
    main()
