# SPDX-License-Identifier: Apache-2.0
"""Gradients in shared memory: as without it, but they stay where they are."""

from __future__ import annotations

import gc
import warnings
from pathlib import Path
from typing import Any

from rank_cases import cases_of, run_cases, run_job
from test_torch_optimizer import assert_same, batch, new_model, new_optimizer, raises, train

try:
    import torch
    from torch import nn
except ImportError:
    torch = None  # type: ignore[assignment]
else:
    import rueda.torch as hvd

STEPS = 6  # of which those from the fourth on are in shared memory


def loss_of(model: Any, rank: int, step: int) -> Any:
    x, y = batch(rank, step)
    return nn.functional.cross_entropy(model(x), y)


def all_ranks() -> list[int]:
    return list(range(hvd.size()))


def shared(model: Any, **options: Any) -> Any:
    """A distributed optimizer whose gradients are in shared memory, after three steps."""
    optimizer = hvd.DistributedOptimizer(
        new_optimizer(model), model.named_parameters(), gradients="shared", **options
    )
    train(model, optimizer, [hvd.rank()])
    return optimizer


def alone(model: Any) -> Any:
    optimizer = new_optimizer(model)
    train(model, optimizer, all_ranks())
    return optimizer


def places(model: Any) -> list[int]:
    return [param.grad.data_ptr() for param in model.parameters()]


def is_shared(optimizer: Any) -> bool:
    return optimizer._reducer.shared is not None


def case_gradients_stay_at_their_places_and_are_those_of_one_process() -> None:
    model, plain = new_model(), new_model()
    optimizer, one = shared(model), alone(plain)
    assert is_shared(optimizer)
    before = places(model)
    for set_to_none in (True, False):
        for step in range(3):
            optimizer.zero_grad(set_to_none=set_to_none)
            assert places(model) == before
            loss_of(model, hvd.rank(), step).backward()
            assert places(model) == before
            optimizer.step()
            one.zero_grad()
            (sum(loss_of(plain, rank, step) for rank in all_ranks()) / hvd.size()).backward()
            one.step()
    assert places(model) == before
    assert_same(plain, model)


def case_one_operation_for_all_small_gradients() -> None:
    model = new_model()
    optimizer = shared(model)
    loss_of(model, hvd.rank(), 0).backward()
    buckets = optimizer._reducer.shared._buckets
    assert len(buckets) == 1 and buckets[0].core is not None  # handed over by its hook
    assert len(optimizer._handles) == 4
    raises(AssertionError, optimizer.zero_grad, "synchronize()")
    optimizer.step()
    assert optimizer._handles == {}


def case_large_gradients_have_buckets_of_their_own() -> None:
    torch.manual_seed(1)
    model, plain = (nn.Sequential(nn.Linear(600, 500), nn.Linear(500, 3)) for _ in range(2))
    plain.load_state_dict(model.state_dict())
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters(), gradients="shared"
    )
    hvd.broadcast_parameters(model.state_dict(), 0)
    hvd.broadcast_parameters(plain.state_dict(), 0)
    one = torch.optim.SGD(plain.parameters(), lr=0.1)
    data = torch.randn(STEPS, hvd.size(), 4, 600, generator=torch.Generator().manual_seed(5))
    for step in range(STEPS):
        optimizer.zero_grad()
        model(data[step, hvd.rank()]).square().mean().backward()
        optimizer.step()
        one.zero_grad()
        sum(plain(data[step, rank]).square().mean() / hvd.size() for rank in all_ranks()).backward()
        one.step()
    buckets = optimizer._reducer.shared._buckets
    assert sorted(bucket.is_lone for bucket in buckets) == [False, True]
    assert all(p.grad is v for b in buckets for p, v in zip(b.params, b.views))
    assert_same(plain, model)


def case_gradients_are_clipped() -> None:
    model, plain = new_model(), new_model()
    optimizer, one = shared(model), alone(plain)
    for step in range(3):
        optimizer.zero_grad()
        loss_of(model, hvd.rank(), step).backward()
        optimizer.synchronize()
        nn.utils.clip_grad_norm_(model.parameters(), 0.05)
        with optimizer.skip_synchronize():
            optimizer.step()
        one.zero_grad()
        (sum(loss_of(plain, rank, step) for rank in all_ranks()) / hvd.size()).backward()
        nn.utils.clip_grad_norm_(plain.parameters(), 0.05)
        one.step()
    assert_same(plain, model)


def case_a_grad_scaler_skips_the_same_steps() -> None:
    new_scaler = getattr(getattr(torch, "amp", None), "GradScaler", None)
    if new_scaler is None:
        return  # only for CUDA then
    model = new_model()
    optimizer, scaler = shared(model), new_scaler("cpu", init_scale=4.0)
    for step in range(3):
        optimizer.zero_grad()
        loss = loss_of(model, hvd.rank(), step)
        if step == 1 and hvd.rank() == 0:
            loss = loss * float("inf")
        scaler.scale(loss).backward()
        optimizer.synchronize()
        scaler.unscale_(optimizer)
        with optimizer.skip_synchronize():
            scaler.step(optimizer)
        scaler.update()
    assert scaler.get_scale() == 2.0
    for param in model.parameters():
        assert torch.equal(hvd.broadcast(param.data, 0), param.data)


def case_passes_are_added_up() -> None:
    def check(model: Any, optimizer: Any, accumulate: Any) -> None:
        plain = new_model()
        plain.load_state_dict(model.state_dict())
        hvd.broadcast_parameters(plain.state_dict(), 0)
        one = torch.optim.SGD(plain.parameters(), lr=0.1)
        optimizer.param_groups[0]["momentum"] = 0
        for first in (0, 2):
            optimizer.zero_grad()
            accumulate(optimizer, model, first)
            optimizer.step()
            one.zero_grad()
            for number in (first, first + 1):
                losses = [loss_of(plain, rank, number) for rank in all_ranks()]
                (sum(losses) / len(losses)).backward()
            one.step()
        assert is_shared(optimizer)
        assert_same(plain, model)

    def two_passes(optimizer: Any, model: Any, first: int) -> None:
        loss_of(model, hvd.rank(), first).backward()
        assert optimizer._handles == {}
        loss_of(model, hvd.rank(), first + 1).backward()
        assert len(optimizer._handles) == 4

    def within_no_sync(optimizer: Any, model: Any, first: int) -> None:
        with optimizer.no_sync():
            loss_of(model, hvd.rank(), first).backward()
            assert optimizer._handles == {}
        loss_of(model, hvd.rank(), first + 1).backward()
        assert len(optimizer._handles) == 4

    model = new_model()
    optimizer = shared(model)
    check(model, optimizer, within_no_sync)
    optimizer.set_backward_passes_per_step(2)
    check(model, optimizer, two_passes)


def case_compiled_models() -> None:
    if not hasattr(torch, "compile"):
        return
    model, plain = new_model(), new_model()
    optimizer, one = shared(model), alone(plain)
    compiled = torch.compile(model, backend="aot_eager")
    for step in range(2):
        optimizer.zero_grad()
        loss_of(compiled, hvd.rank(), step).backward()
        optimizer.step()
        one.zero_grad()
        (sum(loss_of(plain, rank, step) for rank in all_ranks()) / hvd.size()).backward()
        one.step()
    assert is_shared(optimizer)
    assert_same(plain, model)


def case_gradients_that_a_program_moves_come_back() -> None:
    """By the model's zero_grad(), by hand, and with a graph in the way."""
    model, plain = new_model(), new_model()
    optimizer, one = shared(model), alone(plain)
    for step in range(3):
        model.zero_grad(set_to_none=True)
        loss_of(model, hvd.rank(), step).backward()
        first = next(model.parameters())
        first.grad = first.grad.clone()
        optimizer.step()
        one.zero_grad()
        (sum(loss_of(plain, rank, step) for rank in all_ranks()) / hvd.size()).backward()
        one.step()
    views = [view for bucket in optimizer._reducer.shared._buckets for view in bucket.views]
    assert {id(param.grad) for param in model.parameters()} == set(map(id, views))
    assert_same(plain, model)
    optimizer.zero_grad()
    raises(AssertionError, lambda: _backward_with_graph(model, optimizer), "create_graph")


def _backward_with_graph(model: Any, optimizer: Any) -> None:
    model.zero_grad(set_to_none=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loss_of(model, hvd.rank(), 0).backward(create_graph=True)
    optimizer.step()


def case_a_rank_that_does_not_use_a_parameter_gives_zeros() -> None:
    model = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])
    for param in model.parameters():
        param.data.fill_(0.5)
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters(), gradients="shared"
    )
    x = torch.ones(1, 2)
    for step in range(STEPS):
        optimizer.zero_grad()
        used = [model[0], model[1]] if step < 3 or hvd.rank() == 0 else [model[1]]
        sum(layer(x).sum() for layer in used).backward()
        optimizer.step()
        share = 1.0 if step < 3 else 1.0 / hvd.size()
        assert torch.allclose(model[0].weight.grad, torch.full((2, 2), share))
        assert torch.allclose(model[1].weight.grad, torch.ones(2, 2))
    assert is_shared(optimizer)


def case_frozen_parameters_keep_their_values() -> None:
    model = new_model()
    optimizer = shared(model)
    first = next(model.parameters())
    first.requires_grad_(False)
    before = first.detach().clone()
    for step in range(2):
        optimizer.zero_grad()
        loss_of(model, hvd.rank(), step).backward()
        optimizer.step()
    assert torch.equal(first, before)
    first.requires_grad_(True)
    optimizer.zero_grad()
    loss_of(model, hvd.rank(), 2).backward()
    optimizer.step()
    assert not torch.equal(first, before)


def case_parameters_that_change_their_type_have_private_gradients() -> None:
    model = new_model()
    optimizer = shared(model)
    for param in model.parameters():
        param.data = param.data.double()
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.full((1, 4), 1.0 + hvd.rank(), dtype=torch.float64)).sum().backward()
        optimizer.synchronize()
        for param in model.parameters():
            assert param.grad.dtype is torch.float64
            assert torch.equal(hvd.broadcast(param.grad, 0), param.grad)
    assert not is_shared(optimizer)


def case_a_change_in_flight_is_found() -> None:
    model = new_model()
    optimizer = shared(model)
    loss_of(model, hvd.rank(), 0).backward()
    raises(AssertionError, lambda: loss_of(model, hvd.rank(), 0).backward(), "once more")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        optimizer.synchronize()
    assert any("was changed while it was being reduced" in str(one.message) for one in seen)
    with optimizer.skip_synchronize():
        optimizer.step()


def case_groups_that_are_added_and_state_that_is_loaded() -> None:
    model = new_model()
    optimizer = shared(model)
    more = nn.Linear(3, 1)
    hvd.broadcast_parameters(more.state_dict(), 0)
    optimizer.add_param_group({"params": list(more.parameters())})
    state = optimizer.state_dict()
    loss_of(model, hvd.rank(), 0).backward()
    optimizer.load_state_dict(state)
    optimizer.zero_grad()
    x, _ = batch(hvd.rank(), 1)
    more(model(x)).sum().backward()
    optimizer.step()
    for param in [*model.parameters(), *more.parameters()]:
        assert torch.equal(hvd.broadcast(param.data, 0), param.data)
        assert torch.equal(hvd.broadcast(param.grad, 0), param.grad)


def case_ranks_that_join_begin_again() -> None:
    model = new_model()
    optimizer = shared(model)
    for step in range(2 + hvd.rank()):  # rank 0 has one batch less
        optimizer.zero_grad()
        loss_of(model, hvd.rank(), step).backward()
        optimizer.step()
    hvd.join()
    assert not is_shared(optimizer)
    hvd.broadcast_parameters(model.state_dict(), root_rank=hvd.size() - 1)
    train(model, optimizer, [hvd.rank()], steps=4)
    assert is_shared(optimizer)


def case_ranks_that_do_not_agree_have_private_gradients() -> None:
    model, plain = new_model(), new_model()
    way = "shared" if hvd.rank() == 0 else "private"
    optimizer = hvd.DistributedOptimizer(
        new_optimizer(model), model.named_parameters(), gradients=way
    )
    train(model, optimizer, [hvd.rank()], steps=STEPS)
    train(plain, new_optimizer(plain), all_ranks(), steps=STEPS)
    assert not is_shared(optimizer)
    assert_same(plain, model)


def case_what_cannot_be_shared_is_private() -> None:
    for options in (
        {"compression": hvd.Compression.bf16},
        {"groups": 2},
        {"op": hvd.Adasum},
    ):
        model = new_model()
        optimizer = hvd.DistributedOptimizer(
            new_optimizer(model), model.named_parameters(), gradients="shared", **options
        )
        train(model, optimizer, [hvd.rank()], steps=STEPS)
        assert optimizer._reducer is None or not is_shared(optimizer)
    plain = new_optimizer(new_model())
    raises(ValueError, lambda: hvd.DistributedOptimizer(plain, gradients="x"), '"auto" or')


def case_the_faster_way_is_chosen_by_all_alike() -> None:
    model, plain = new_model(), new_model()
    optimizer = hvd.DistributedOptimizer(
        new_optimizer(model), model.named_parameters(), gradients="auto"
    )
    train(model, optimizer, [hvd.rank()], steps=STEPS)
    train(plain, new_optimizer(plain), all_ranks(), steps=STEPS)
    assert_same(plain, model)
    chosen = hvd.allgather(torch.tensor([is_shared(optimizer)], dtype=torch.uint8))
    assert chosen.tolist() in ([0] * hvd.size(), [1] * hvd.size())


def case_by_default_they_are_private() -> None:
    model = new_model()
    optimizer = hvd.DistributedOptimizer(new_optimizer(model), model.named_parameters())
    train(model, optimizer, [hvd.rank()], steps=STEPS)
    assert not is_shared(optimizer)


def case_gradients_outlive_their_job() -> None:
    model = new_model()
    optimizer = shared(model)
    train(model, optimizer, [hvd.rank()], steps=1)
    kept, values = (
        [p.grad for p in model.parameters()],
        [p.grad.clone() for p in model.parameters()],
    )
    hvd.shutdown()
    assert not is_shared(optimizer)
    assert all(map(torch.equal, kept, values))
    del optimizer
    gc.collect()
    for grad in kept:
        grad.add_(1.0)
    hvd.init()
    again = shared(model)
    assert is_shared(again)
    assert all(torch.equal(grad, value + 1.0) for grad, value in zip(kept, values))


def case_memory_comes_back() -> None:
    def used() -> int:
        rows = Path("/proc/self/smaps").read_text().split("memfd:rueda")
        return len(rows)

    model = new_model()
    counts = []
    for _ in range(4):
        optimizer = shared(model)
        model.zero_grad(set_to_none=True)
        del optimizer
        gc.collect()
        counts.append(used())
    assert counts[-1] <= counts[0] + 1, counts


if torch is not None and not hasattr(torch.Tensor, "register_post_accumulate_grad_hook"):
    for _name in [name for name in globals() if name.startswith("case_")]:
        del globals()[_name]  # before torch 2.1 gradients are always private

test_case = cases_of(__name__)


def _logs(*words: str, **more: str) -> list[str]:
    here = str(Path(__file__).with_name("programs") / "shared_gradients.py")
    return [done.stdout + done.stderr
            for done in run_job(here, *words, RUEDA_LOG_LEVEL="debug", **more)]  # fmt: skip


def test_what_was_chosen_is_in_the_log() -> None:
    for log in _logs("auto"):
        assert "gradients lie in" in log and "us in private memory" in log, log


def test_jobs_that_are_repaired_keep_gradients_private() -> None:
    for log in _logs("shared", RUEDA_REPAIR="1"):
        assert "gradients lie in private memory" in log, log
        assert "passed" in log, log


if __name__ == "__main__":
    run_cases(globals())
