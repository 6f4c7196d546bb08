# SPDX-License-Identifier: Apache-2.0
"""torch.distributed on Rueda: each operation, on three ranks."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="missing tool: torch")

import torch.distributed as dist  # noqa: E402
from c10d_cases import cases_of, run_cases  # noqa: E402

SIZE = 3
ALL = range(SIZE)
Op = dist.ReduceOp


def me() -> int:
    return dist.get_rank()


def mine(shape, dtype=torch.float32, salt: int = 0, rank: int | None = None) -> torch.Tensor:
    """Small whole numbers that depend on the rank; any rank can make those of another."""
    rank = me() if rank is None else rank
    count = torch.Size(shape).numel()
    numbers = (torch.arange(count) * 7 + rank * 3 + salt) % 5 + 1
    return numbers.to(dtype).view(shape)


def everyone(shape, dtype=torch.float32, salt: int = 0) -> list[torch.Tensor]:
    return [mine(shape, dtype, salt, rank) for rank in ALL]


def raises(error, words: str, call, *args, **more) -> None:
    with pytest.raises(error, match=words):
        call(*args, **more)


# ---- Reductions -----------------------------------------------------------------

TYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8,
         torch.int32, torch.int64]  # fmt: skip


def case_allreduce_of_all_types() -> None:
    for dtype in TYPES:
        tensor = mine((5, 3), dtype)
        dist.all_reduce(tensor)
        assert torch.equal(tensor, torch.stack(everyone((5, 3), dtype)).sum(0).to(dtype)), dtype


def case_allreduce_by_all_reductions() -> None:
    rows = torch.stack(everyone((7,), torch.int32))
    wanted = {
        Op.SUM: rows.sum(0),
        Op.PRODUCT: rows.prod(0),
        Op.MIN: rows.amin(0),
        Op.MAX: rows.amax(0),
        Op.BAND: rows[0] & rows[1] & rows[2],
        Op.BOR: rows[0] | rows[1] | rows[2],
        Op.BXOR: rows[0] ^ rows[1] ^ rows[2],
    }
    for op, want in wanted.items():
        tensor = mine((7,), torch.int32)
        dist.all_reduce(tensor, op)
        assert torch.equal(tensor, want.to(torch.int32)), op
    tensor = mine((7,))
    dist.all_reduce(tensor, Op.AVG)
    assert torch.allclose(tensor, rows.float().mean(0))


def case_allreduce_of_odd_tensors() -> None:
    # With gaps, transposed, empty, single, complex, large.
    base = torch.zeros(6, 4)
    view = base[::2, 1:3]
    view.copy_(mine((3, 2)))
    dist.all_reduce(view)
    assert torch.equal(base[::2, 1:3], torch.stack(everyone((3, 2))).sum(0))
    assert base.sum() == view.sum()
    turned = mine((3, 2)).t()
    dist.all_reduce(turned)
    assert torch.equal(turned, torch.stack(everyone((3, 2))).sum(0).t())
    dist.all_reduce(torch.empty(0))
    single = torch.tensor(float(me()))
    dist.all_reduce(single)
    assert single.item() == 3
    pairs = torch.complex(mine((4,)), mine((4,), salt=1))
    dist.all_reduce(pairs)
    assert torch.equal(pairs.imag, torch.stack(everyone((4,), salt=1)).sum(0))
    large = torch.full((3_000_000,), float(me()))
    dist.all_reduce(large)
    assert (large == 3).all()


def case_allreduce_of_sparse_tensors() -> None:
    # Each rank has other rows, and another number of them.
    rows = torch.arange(me() + 1)
    tensor = torch.sparse_coo_tensor(rows[None], torch.ones(me() + 1, 2), (5, 2))
    dist.all_reduce(tensor)
    assert tensor.to_dense()[:, 0].tolist() == [3, 2, 1, 0, 0]


def case_parameters_of_a_model_are_reduced() -> None:
    weight = torch.nn.Parameter(mine((4,)))
    dist.all_reduce(weight.detach())
    assert torch.equal(weight.detach(), torch.stack(everyone((4,))).sum(0))


def case_coalesced_forms() -> None:
    tensors = [mine((k + 1,), salt=k) for k in range(4)]
    with dist._coalescing_manager(async_ops=True) as manager:
        for tensor in tensors:
            dist.all_reduce(tensor)
    manager.wait()
    for k, tensor in enumerate(tensors):
        assert torch.equal(tensor, torch.stack(everyone((k + 1,), salt=k)).sum(0))
    outputs = [torch.zeros(SIZE * 2), torch.zeros(SIZE * 3)]
    group = dist.group.WORLD
    group.allgather_into_tensor_coalesced(outputs, [mine((2,)), mine((3,))]).wait()
    assert torch.equal(outputs[1], torch.cat(everyone((3,))))
    shares = [torch.zeros(2), torch.zeros(1)]
    group.reduce_scatter_tensor_coalesced(shares, [mine((6,)), mine((3,))]).wait()
    assert torch.equal(shares[0], torch.stack(everyone((6,))).sum(0)[2 * me() : 2 * me() + 2])


def case_reduce() -> None:
    for root in ALL:
        tensor = mine((4,), salt=root)
        dist.reduce(tensor, root)
        total = torch.stack(everyone((4,), salt=root)).sum(0)
        assert torch.equal(tensor, total if root == me() else mine((4,), salt=root))


def case_reduce_scatter() -> None:
    rows = torch.stack(everyone((SIZE, 4)))
    for op, want in ((Op.SUM, rows.sum(0)), (Op.MAX, rows.amax(0)), (Op.PRODUCT, rows.prod(0))):
        output = torch.zeros(4)
        dist.reduce_scatter(output, list(mine((SIZE, 4)).unbind(0)), op)
        assert torch.equal(output, want[me()]), op
        output = torch.zeros(4)
        dist.reduce_scatter_tensor(output, mine((SIZE, 4)), op)
        assert torch.equal(output, want[me()]), op
    # Into a part of the source.
    source = mine((SIZE, 4))
    dist.reduce_scatter_tensor(source[me()], source)
    assert torch.equal(source[me()], rows.sum(0)[me()])
    # Of different sizes.
    output = torch.zeros(me() + 1)
    dist.reduce_scatter(output, [mine((k + 1,), salt=k) for k in ALL])
    assert torch.equal(output, torch.stack(everyone((me() + 1,), salt=me())).sum(0))


# ---- Broadcast and allgather ----------------------------------------------------------


def case_broadcast() -> None:
    for root in ALL:
        for dtype in (*TYPES, torch.bool, torch.complex64):
            tensor = mine((3, 2), dtype)
            dist.broadcast(tensor, root)
            assert torch.equal(tensor, mine((3, 2), dtype, rank=root)), dtype
    wide = torch.zeros(4, 4)
    wide[:, 0] = mine((4,))
    dist.broadcast(wide[:, 0], 1)
    assert torch.equal(wide[:, 0], mine((4,), rank=1))


def case_allgather() -> None:
    for dtype in (*TYPES, torch.bool, torch.complex64):
        outputs = [torch.zeros(2, 3, dtype=dtype) for _ in ALL]
        dist.all_gather(outputs, mine((2, 3), dtype))
        for one, want in zip(outputs, everyone((2, 3), dtype)):
            assert torch.equal(one, want), dtype
    # Each rank has another number of rows.
    outputs = [torch.zeros(rank + 1) for rank in ALL]
    dist.all_gather(outputs, mine((me() + 1,)))
    for rank, one in enumerate(outputs):
        assert torch.equal(one, mine((rank + 1,), rank=rank))


def case_allgather_into_one_tensor() -> None:
    output = torch.zeros(SIZE * 4)
    dist.all_gather_into_tensor(output, mine((4,)))
    assert torch.equal(output, torch.cat(everyone((4,))))
    stacked = torch.zeros(SIZE, 4)
    dist.all_gather_into_tensor(stacked, mine((4,)))
    assert torch.equal(stacked, torch.stack(everyone((4,))))
    # The source is its own part of the output, as FSDP has it.
    output = torch.zeros(SIZE, 4)
    output[me()] = mine((4,))
    dist.all_gather_into_tensor(output, output[me()])
    assert torch.equal(output, torch.stack(everyone((4,))))


def case_objects() -> None:
    found = [None] * SIZE
    dist.all_gather_object(found, {"rank": me(), "long": "x" * (1000 * me())})
    assert [one["rank"] for one in found] == list(ALL)
    assert len(found[2]["long"]) == 2000
    told = [("from", me())]
    dist.broadcast_object_list(told, 1)
    assert told == [("from", 1)]
    gathered = [None] * SIZE if me() == 0 else None
    dist.gather_object(f"rank {me()}", gathered, 0)
    assert gathered is None or gathered == [f"rank {rank}" for rank in ALL]
    given = [None]
    dist.scatter_object_list(given, [10, 11, 12] if me() == 2 else None, 2)
    assert given == [10 + me()]


# ---- All to all, to and from a root ---------------------------------------------------


def case_all_to_all() -> None:
    output = torch.zeros(SIZE, 2)
    dist.all_to_all_single(output, mine((SIZE, 2)))
    assert torch.equal(output, torch.stack([one[me()] for one in everyone((SIZE, 2))]))
    # Rank r sends r + 1 rows to rank 0, and so on.
    given = [me() + 1, 0, 2]
    got = [[rank + 1, 0, 2][me()] for rank in ALL]
    source = torch.full((sum(given), 2), float(me()))
    output = torch.zeros(sum(got), 2)
    dist.all_to_all_single(output, source, got, given)
    assert output[:, 0].tolist() == [float(rank) for rank in ALL for _ in range(got[rank])]
    outputs = [torch.zeros(rank + 1) for rank in ALL]
    dist.all_to_all(outputs, [torch.full((me() + 1,), 10.0 * me() + to) for to in ALL])
    assert [one.tolist() for one in outputs] == [[10.0 * r + me()] * (r + 1) for r in ALL]


def case_gather_and_scatter() -> None:
    for root in ALL:
        outputs = [torch.zeros(2, 2) for _ in ALL] if root == me() else None
        dist.gather(mine((2, 2), salt=root), outputs, root)
        for one, want in zip(outputs or (), everyone((2, 2), salt=root)):
            assert torch.equal(one, want)
        output = torch.zeros(3, dtype=torch.int64)
        sources = [mine((3,), torch.int64, salt=to) for to in ALL] if root == me() else None
        dist.scatter(output, sources, root)
        assert torch.equal(output, mine((3,), torch.int64, salt=me(), rank=root))


# ---- Messages -------------------------------------------------------------------------


def case_send_and_recv() -> None:
    after, before = (me() + 1) % SIZE, (me() - 1) % SIZE
    work = dist.isend(mine((4,)), after)
    tensor = torch.zeros(4)
    assert dist.recv(tensor, before) == before
    work.wait()
    assert torch.equal(tensor, mine((4,), rank=before))
    # By tag, not by time.
    if me() == 0:
        works = [dist.isend(torch.full((2,), float(tag)), 1, tag=tag) for tag in (5, 6)]
    else:
        works = []
    if me() == 1:
        for tag in (6, 5):
            tensor = torch.zeros(2)
            dist.recv(tensor, 0, tag=tag)
            assert (tensor == tag).all()
    for work in works:
        work.wait()
    ops = [
        dist.P2POp(dist.isend, mine((100_000,)), after),
        dist.P2POp(dist.irecv, large := torch.zeros(100_000), before),
    ]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    assert torch.equal(large, mine((100_000,), rank=before))


def case_recv_from_any_source() -> None:
    if me() > 0:
        dist.send(torch.full((3,), float(me())), 0, tag=4)
        dist.send(torch.full((2,), 10.0 * me()), 0)
        dist.send(torch.ones(5), 0, tag=9)
        return
    # By tag, in the order in which they come; each message once.
    for tag, factor, count in ((0, 10.0, 2), (4, 1.0, 3)):
        senders = []
        for _ in range(SIZE - 1):
            tensor = torch.zeros(count)
            senders.append(dist.recv(tensor, tag=tag))
            assert (tensor == factor * senders[-1]).all(), (tag, senders, tensor)
        assert sorted(senders) == list(range(1, SIZE)), senders
    # Where a rank is named, its message is not given to others.
    wide = torch.zeros(5, 2)
    named = dist.irecv(wide[:, 0], 2, tag=9)
    other = torch.zeros(5)
    assert dist.recv(other, tag=9) == 1 and (other == 1).all()
    named.wait()
    assert (wide[:, 0] == 1).all() and (wide[:, 1] == 0).all()


def case_recv_from_any_source_of_a_group() -> None:
    """The sender is told by its rank in the job, and messages of other groups do not count."""
    group = dist.new_group([0, 2], use_local_synchronization=True) if me() != 1 else None
    if me() == 2:
        dist.send(torch.full((4,), 2.0), 0)
        dist.send(torch.full((4,), 3.0), 0, group=group)
    if me() == 0:
        tensor = torch.zeros(4)
        work = dist.irecv(tensor, group=group)
        future = work.get_future()
        future.wait()
        assert work._source_rank() == 1 and (tensor == 3).all()
        assert dist.recv(tensor) == 2 and (tensor == 2).all()


def case_a_message_of_another_size_than_expected_is_an_error() -> None:
    if me() == 1:
        dist.send(torch.ones(3), 0)
        dist.send(torch.ones(0), 0)
    if me() == 0:
        raises(RuntimeError, "another size", dist.recv, torch.zeros(2))
        raises(RuntimeError, "sent nothing", dist.recv, torch.zeros(2))


def case_a_monitored_barrier_names_who_is_missing() -> None:
    group = dist.new_group(list(ALL))
    for _ in range(3):
        group.monitored_barrier()
    if me() != 1:
        raises(RuntimeError, r"ranks \[1\] did not come to the monitored barrier within 0.5 s",
               group.monitored_barrier, timedelta(seconds=0.5))  # fmt: skip
    dist.barrier()
    if me() == 1:
        group.monitored_barrier(timedelta(seconds=30))  # the others came to it before
    dist.barrier()


def case_a_member_that_never_comes_to_a_new_group_is_told_of() -> None:
    limit = timedelta(seconds=0.5)
    if me() == 1:  # its lowest member never makes it
        raises(RuntimeError, r"rank 0 makes a process group of the ranks \[0, 1\]",
               dist.new_group, [0, 1], timeout=limit, use_local_synchronization=True)  # fmt: skip
    if me() == 0:  # nor does the other one
        raises(RuntimeError, "some of them did not come", dist.new_group, [0, 2],
               timeout=limit, use_local_synchronization=True)  # fmt: skip
    dist.barrier()


def case_messages_pass_collectives() -> None:
    """A receive that waits holds up no collective."""
    tensor = torch.zeros(1)
    work = dist.irecv(tensor, 1) if me() == 0 else None
    dist.barrier()
    total = torch.ones(1)
    dist.all_reduce(total)
    assert total.item() == SIZE
    if me() == 1:
        dist.send(torch.ones(1), 0)
    if work is not None:
        assert work.wait() and tensor.item() == 1


# ---- Works and futures -----------------------------------------------------------------


def case_works_and_their_futures() -> None:
    tensor = mine((4,))
    work = dist.all_reduce(tensor, async_op=True)
    assert work.wait() and work.is_completed() and work.is_success()
    assert torch.equal(work.result()[0], tensor)
    tensor = mine((4,))
    future = dist.all_reduce(tensor, async_op=True).get_future()
    doubled = future.then(lambda done: done.value()[0] * 2)
    assert torch.equal(doubled.wait(), torch.stack(everyone((4,))).sum(0) * 2)
    # A future that is asked for when all is over.
    work = dist.barrier(async_op=True)
    work.wait()
    work.get_future().wait()
    # Works that no thread waits for keep their memory.
    for _ in range(50):
        dist.all_reduce(torch.ones(1000), async_op=True)
    dist.barrier()


def _in_a_backward_pass(call: Any) -> None:
    """Call it from a hook."""
    x = torch.ones(3, requires_grad=True)
    x.register_hook(lambda _: call())
    x.sum().backward()


def case_works_of_a_backward_pass_have_ended_with_it() -> None:
    found: list[Any] = []

    def start() -> None:
        tensor = mine((4,))
        found.append((tensor, dist.all_reduce(tensor, async_op=True).get_future()))

    _in_a_backward_pass(lambda: [start() for _ in range(3)] and None)
    for tensor, future in found:
        assert future.done()
        assert future.value()[0] is tensor
        assert torch.equal(tensor, torch.stack(everyone((4,))).sum(0))


def case_a_backward_pass_may_wait_for_its_works() -> None:
    tensors = [mine((4,)) for _ in range(3)]

    def start() -> None:
        dist.all_reduce(tensors[0], async_op=True).wait()
        dist.all_reduce(tensors[1], async_op=True).get_future().wait()
        work = dist.all_reduce(tensors[2], async_op=True)
        work.get_future()
        work.wait()

    _in_a_backward_pass(start)
    for tensor in tensors:
        assert torch.equal(tensor, torch.stack(everyone((4,))).sum(0))


def case_the_end_of_a_backward_pass_does_not_wait_for_ever() -> None:
    tensor = torch.ones(3)
    if me() == 0:
        futures: list[Any] = []
        _in_a_backward_pass(
            lambda: futures.append(dist.all_reduce(tensor, async_op=True).get_future())
        )
        dist.send(tensor[:1].clone(), 1)  # without which rank 1 does not begin
        futures[0].wait()
    elif me() == 1:
        dist.recv(torch.zeros(1), 0)
        dist.all_reduce(tensor)
    else:
        dist.all_reduce(tensor)
    assert tensor[0].item() == SIZE


def case_a_thread_waits_for_the_work_of_another() -> None:
    tensor = torch.ones(3)
    work = dist.all_reduce(tensor, async_op=True)
    thread = threading.Thread(target=work.wait)
    thread.start()
    thread.join(60)
    assert tensor[0].item() == SIZE


def case_a_time_limit_ends_a_wait() -> None:
    group = dist.new_group([0, 1], timeout=timedelta(seconds=60))
    if me() == 0:
        work = dist.irecv(torch.zeros(1), 1, group=group)
        raises(RuntimeError, "recv number .* timed out after 0.2 s", work.wait,
               timedelta(seconds=0.2))  # fmt: skip
    dist.barrier()
    if me() == 1:
        dist.send(torch.ones(1), 0, group=group)
    if me() == 0:
        work.wait()


def case_a_future_ends_with_its_time_limit() -> None:
    group = dist.new_group([0, 1], timeout=timedelta(seconds=1))
    if me() == 0:
        future = dist.irecv(torch.zeros(1), 1, group=group).get_future()
        raises(RuntimeError, "timed out after 1 s", future.wait)
    dist.barrier()
    if me() == 1:
        dist.send(torch.ones(1), 0, group=group)


# ---- What is wrong ----------------------------------------------------------------------


def case_what_is_wrong_is_refused() -> None:
    raises(ValueError, "do not make 5", dist.all_gather_into_tensor, torch.zeros(5), torch.ones(2))
    raises(
        ValueError,
        "types",
        dist.all_gather_into_tensor,
        torch.zeros(SIZE),
        torch.ones(1, dtype=torch.int32),
    )
    raises(ValueError, "split sizes", dist.all_to_all_single, torch.zeros(4), torch.zeros(4),
           [1, 1, 1], [1, 1, 1])  # fmt: skip
    raises(ValueError, "not supported", dist.all_reduce, torch.ones(2).to(torch.float8_e4m3fn))
    raises(ValueError, "from 0 to", dist.irecv, torch.zeros(1), tag=-1)
    if me() == 0:
        raises(ValueError, "", dist.send, torch.zeros(1), 0)


def case_sizes_that_do_not_fit_are_found() -> None:
    """What another rank sends is not written over what lies behind."""
    output = torch.zeros(SIZE)
    given = [1, 1, 1] if me() > 0 else [2, 2, 2]
    call = lambda: dist.all_to_all_single(output, torch.ones(sum(given)), [1, 1, 1], given)  # noqa: E731
    raises(ValueError, "expects 3 numbers from the others, which sent 4", call)


def case_names_and_numbers() -> None:
    assert dist.get_backend() == "rueda"
    group = dist.group.WORLD
    assert (group.rank(), group.size(), group.name()) == (me(), SIZE, "rueda")
    before = group._get_sequence_number_for_group()
    dist.barrier()
    assert group._get_sequence_number_for_group() == before + 1


test_case = cases_of(__name__, SIZE)

if __name__ == "__main__":
    run_cases(globals())
