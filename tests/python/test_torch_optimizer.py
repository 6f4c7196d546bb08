# SPDX-License-Identifier: Apache-2.0
"""DistributedOptimizer: two ranks do what one process does with all of the data."""

from __future__ import annotations

import time
import warnings
from typing import Any

from rank_cases import cases_of, run_cases

try:
    import torch
    from torch import nn
except ImportError:
    torch = None  # type: ignore[assignment]
else:
    import rueda.torch as hvd


def new_model(seed: int = 1) -> Any:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))


def batch(rank: int, step: int) -> tuple[Any, Any]:
    """What a rank has in a step."""
    generator = torch.Generator().manual_seed(1000 * step + rank)
    x = torch.randn(6, 4, generator=generator, dtype=torch.float32)
    return x, torch.randint(3, (6,), generator=generator)


def train(model: Any, optimizer: Any, ranks: list[int], steps: int = 3, scale: float = 1.0) -> None:
    """Steps with the mean of the losses of these ranks."""
    for step in range(steps):
        optimizer.zero_grad()
        batches = [batch(rank, step) for rank in ranks]
        losses = [nn.functional.cross_entropy(model(x), y) for x, y in batches]
        (scale * sum(losses) / len(losses)).backward()
        optimizer.step()


def new_optimizer(model: Any, kind: str = "SGD", **options: Any) -> Any:
    options = {"lr": 0.1, **({"momentum": 0.9} if kind == "SGD" else {}), **options}
    return getattr(torch.optim, kind)(model.parameters(), **options)


def all_ranks() -> list[int]:
    return list(range(hvd.size()))


def assert_same(model: Any, other: Any, tolerance: float = 1e-5) -> None:
    for one, two in zip(model.parameters(), other.parameters()):
        torch.testing.assert_close(one.data, two.data, rtol=tolerance, atol=tolerance)


def check_like_one_process(kind: str = "SGD", scale: float = 1.0, tolerance: float = 1e-5,
                           **options: Any) -> None:  # fmt: skip
    """Train together, and alone with the data of all ranks: the result is the same."""
    alone, together = new_model(), new_model()
    train(alone, new_optimizer(alone, kind), all_ranks(), scale=scale)
    optimizer = hvd.DistributedOptimizer(
        new_optimizer(together, kind), named_parameters=together.named_parameters(), **options
    )
    train(together, optimizer, [hvd.rank()])
    assert_same(alone, together, tolerance)


def raises(kind: type[BaseException], call: Any, words: str = "") -> None:
    try:
        call()
    except kind as error:
        assert words in str(error), str(error)
    else:
        raise AssertionError(f"no {kind.__name__}")


# ---- The same as one process ------------------------------------------------


def case_an_average_is_what_one_process_has_with_all_data() -> None:
    check_like_one_process()


def case_other_optimizers_work_as_well() -> None:
    for kind in ("Adam", "AdamW", "RMSprop", "Adagrad"):
        check_like_one_process(kind)


def case_a_sum_is_as_many_times_as_large() -> None:
    check_like_one_process(scale=float(hvd.size()), op=hvd.Sum)


def case_dividing_before_the_sum_changes_nothing() -> None:
    check_like_one_process(gradient_predivide_factor=2.0)


def case_groups_change_nothing() -> None:
    check_like_one_process(groups=2)
    check_like_one_process(groups=2, gradient_predivide_factor=2.0)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        check_like_one_process(num_groups=100)
    assert any(one.category is DeprecationWarning for one in seen)


def case_groups_can_be_lists_of_parameters() -> None:
    alone, together = new_model(), new_model()
    train(alone, new_optimizer(alone), all_ranks())
    groups = [[together[0].weight, together[2].bias]]
    optimizer = hvd.DistributedOptimizer(
        new_optimizer(together), together.named_parameters(), groups=groups
    )
    train(together, optimizer, [hvd.rank()])
    assert_same(alone, together)


def case_compressed_gradients_are_nearly_the_same() -> None:
    check_like_one_process(compression=hvd.Compression.fp16, tolerance=5e-3)
    check_like_one_process(compression=hvd.Compression.bf16, tolerance=4e-2)
    check_like_one_process(compression=hvd.Compression.fp16, groups=1, tolerance=5e-3)


def case_a_compressor_can_be_ones_own() -> None:
    class Halving:
        @staticmethod
        def compress(tensor: Any) -> tuple[Any, Any]:
            return tensor / 2, "halved"

        @staticmethod
        def decompress(tensor: Any, ctx: Any) -> Any:
            assert ctx == "halved"
            return tensor * 2

    check_like_one_process(compression=Halving)


def case_parameters_need_no_names() -> None:
    model = new_model()
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD([{"params": model[i].parameters()} for i in (0, 2)], lr=1.0)
    )
    names = list(optimizer._parameter_names.values())
    assert names == [f"allreduce.noname.{i}.{j}" for i in (0, 1) for j in (0, 1)]
    train(model, optimizer, [hvd.rank()])
    assert_same_on_all_ranks(model)


def assert_same_on_all_ranks(model: Any) -> None:
    for param in model.parameters():
        torch.testing.assert_close(hvd.allgather(param.data.unsqueeze(0))[0], param.data)


def case_several_passes_are_added_up() -> None:
    alone, together = new_model(), new_model()
    passes = 2
    one = new_optimizer(alone)
    one.zero_grad()
    for step in range(passes):
        for rank in all_ranks():
            x, y = batch(rank, step)
            (nn.functional.cross_entropy(alone(x), y) / hvd.size()).backward()
    one.step()
    optimizer = hvd.DistributedOptimizer(
        new_optimizer(together), together.named_parameters(), backward_passes_per_step=passes
    )
    optimizer.zero_grad()
    for step in range(passes):
        x, y = batch(hvd.rank(), step)
        nn.functional.cross_entropy(together(x), y).backward()
    optimizer.step()
    assert_same(alone, together)
    optimizer.set_backward_passes_per_step(1)
    assert optimizer.backward_passes_per_step == 1
    train(together, optimizer, [hvd.rank()], steps=1)


def case_a_step_before_all_passes_reduces_what_is_there() -> None:
    alone, together = new_model(), new_model()
    train(alone, new_optimizer(alone), all_ranks(), steps=2)
    optimizer = hvd.DistributedOptimizer(
        new_optimizer(together), together.named_parameters(), backward_passes_per_step=3
    )
    train(together, optimizer, [hvd.rank()], steps=2)
    assert_same(alone, together)


def case_torch_without_hooks_for_parameters_will_do() -> None:
    from rueda.torch import reducer

    before, reducer._HAS_HOOKS = reducer._HAS_HOOKS, False
    try:
        check_like_one_process()
    finally:
        reducer._HAS_HOOKS = before


def case_memory_formats_do_not_matter() -> None:
    torch.manual_seed(1)
    alone, together = nn.Conv2d(3, 4, 3), nn.Conv2d(3, 4, 3)
    together.load_state_dict(alone.state_dict())
    if hvd.rank() == 0:
        together = together.to(memory_format=torch.channels_last)
    x = torch.randn(hvd.size(), 2, 3, 8, 8, generator=torch.Generator().manual_seed(2))
    optimizer = hvd.DistributedOptimizer(new_optimizer(together), together.named_parameters())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        together(x[hvd.rank()]).square().mean().backward()
        optimizer.step()
    one = new_optimizer(alone)
    alone(x.flatten(0, 1)).square().mean().backward()
    one.step()
    assert_same(alone, together)


# ---- Communication while others compute -------------------------------------


class Slow(torch.autograd.Function if torch is not None else object):  # type: ignore[misc]
    """Takes its time in the backward pass, and looks at a gradient meanwhile."""

    watched: Any = None
    seen: list[list[float]] = []

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        deadline = time.monotonic() + 20
        time.sleep(0.1)
        while Slow.watched.grad[0].item() != 0.5 and time.monotonic() < deadline:
            time.sleep(0.01)
        Slow.seen.append(Slow.watched.grad.tolist())
        return grad


def case_gradients_arrive_while_the_backward_pass_goes_on() -> None:
    first, last = nn.Parameter(torch.ones(4)), nn.Parameter(torch.ones(4))
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD([first, last], lr=0.0), [("first", first), ("last", last)]
    )
    Slow.watched = last
    # Backward, the gradient of `last` comes first, which is 0 on one rank and 1
    # on the other. Then comes the sleep, before all gradients are there.
    hidden = Slow.apply(first * 1.0)
    (hidden + last * float(hvd.rank())).sum().backward()
    assert Slow.seen == [[0.5] * 4]
    optimizer.step()
    assert last.grad.tolist() == [0.5] * 4


def case_parameters_may_change_type_and_shape() -> None:
    param = nn.Parameter(torch.ones(4))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([param], lr=0.0), [("p", param)])
    shapes = [torch.ones(4), torch.ones(4).double(), torch.ones(2, 3).double(), torch.ones(6)]
    for data in shapes:
        optimizer.zero_grad(set_to_none=True)  # which was not the default before torch 2.0
        param.data = data
        (param * float(hvd.rank())).sum().backward()
        optimizer.step()
        assert param.grad.dtype is data.dtype and param.grad.shape == data.shape
        assert param.grad.eq((hvd.size() - 1) / 2).all(), param.grad


def case_the_loss_is_that_of_ddp() -> None:
    import os

    import torch.distributed as dist

    store = [""]
    if hvd.rank() == 0:
        from ranks import free_port

        store = [f"tcp://127.0.0.1:{free_port()}"]
    store = hvd.broadcast_object(store, root_rank=0)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", init_method=store[0], rank=hvd.rank(), world_size=hvd.size())
    try:
        theirs, ours = new_model(), new_model()
        train(nn.parallel.DistributedDataParallel(theirs), new_optimizer(theirs), [hvd.rank()], 10)
    finally:
        dist.destroy_process_group()
    optimizer = hvd.DistributedOptimizer(new_optimizer(ours), ours.named_parameters())
    train(ours, optimizer, [hvd.rank()], 10)
    x, y = batch(hvd.rank(), 99)
    losses = [nn.functional.cross_entropy(model(x), y).item() for model in (theirs, ours)]
    assert abs(losses[0] - losses[1]) <= 1e-5, losses


# ---- Misuse -----------------------------------------------------------------


def case_wrong_arguments_are_refused() -> None:
    model = new_model()
    named = list(model.named_parameters())

    def make(**options: Any) -> Any:
        return lambda: hvd.DistributedOptimizer(new_optimizer(model), **options)

    raises(ValueError, make(named_parameters=model.parameters()), "tuples")
    raises(ValueError, make(named_parameters=[("a", p) for _, p in named]), "unique")
    raises(ValueError, make(named_parameters=named[:-1]), "parameter 3 of group 0")
    raises(ValueError, make(backward_passes_per_step=0))
    raises(ValueError, make(op=hvd.Sum, gradient_predivide_factor=2.0))
    raises(ValueError, make(groups=0))
    raises(ValueError, make(groups=("a",)))
    raises(ValueError, make(groups=[["weight"]]))
    raises(ValueError, make(groups=[[named[0][1]], [named[0][1]]]))
    distributed = make()()
    raises(ValueError, lambda: hvd.DistributedOptimizer(distributed), "already")


def case_gradients_may_not_be_zeroed_while_they_travel() -> None:
    model = new_model()
    optimizer = hvd.DistributedOptimizer(new_optimizer(model), model.named_parameters())
    x, y = batch(hvd.rank(), 0)
    nn.functional.cross_entropy(model(x), y).backward()
    raises(AssertionError, optimizer.zero_grad, "optimizer.step()")
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
    assert model[0].weight.grad is not None
    optimizer.zero_grad(set_to_none=True)
    assert model[0].weight.grad is None


def case_one_backward_pass_too_many_is_told() -> None:
    model = new_model()
    optimizer = hvd.DistributedOptimizer(new_optimizer(model), model.named_parameters())
    x, y = batch(hvd.rank(), 0)
    nn.functional.cross_entropy(model(x), y).backward()
    loss = nn.functional.cross_entropy(model(x), y)
    raises(AssertionError, loss.backward, "backward_passes_per_step")
    optimizer.synchronize()
    train(model, optimizer, [hvd.rank()], steps=1)


def case_a_second_reduction_is_warned_of_once() -> None:
    model = new_model()
    optimizer = hvd.DistributedOptimizer(new_optimizer(model), model.named_parameters())
    x, y = batch(hvd.rank(), 0)
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.synchronize()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        optimizer.step()
    words = [str(one.message) for one in seen]
    assert len(words) == 1
    assert "optimizer.step() called without optimizer.skip_synchronize()" in words[0]


def case_a_gradient_that_is_changed_on_its_way_is_warned_of() -> None:
    model = new_model()
    optimizer = hvd.DistributedOptimizer(new_optimizer(model), model.named_parameters())
    x, y = batch(hvd.rank(), 0)
    nn.functional.cross_entropy(model(x), y).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.001)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        optimizer.step()
    assert any("optimizer.synchronize()" in str(one.message) for one in seen)


def case_gradients_may_be_views_of_one_buffer() -> None:
    alone, together = new_model(), new_model()
    train(alone, new_optimizer(alone), all_ranks())
    buffer = torch.zeros(sum(param.numel() for param in together.parameters()))
    start = 0
    for param in together.parameters():
        param.grad = buffer[start : start + param.numel()].view_as(param)
        start += param.numel()
    optimizer = hvd.DistributedOptimizer(new_optimizer(together), together.named_parameters())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for step in range(3):
            buffer.zero_()
            x, y = batch(hvd.rank(), step)
            nn.functional.cross_entropy(together(x), y).backward()
            optimizer.step()
    assert_same(alone, together)


def case_a_warning_that_is_an_error_leaves_nothing_under_way() -> None:
    for options in ({}, {"groups": 2}):
        model = new_model()
        optimizer = hvd.DistributedOptimizer(
            new_optimizer(model), model.named_parameters(), **options
        )
        x, y = batch(hvd.rank(), 0)
        nn.functional.cross_entropy(model(x), y).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.001)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            raises(UserWarning, optimizer.step, "optimizer.synchronize()")
        train(model, optimizer, [hvd.rank()])


def case_a_scaler_that_does_not_wait_is_warned_of() -> None:
    new_scaler = getattr(getattr(torch, "amp", None), "GradScaler", None)
    if new_scaler is None:
        return  # only for CUDA then
    for kind, options in (("SGD", {}), ("Adam", {"fused": True})):
        for is_on, waits in ((True, False), (True, True), (False, False)):
            model = new_model()
            optimizer = hvd.DistributedOptimizer(
                new_optimizer(model, kind, **options), model.named_parameters()
            )
            torch.optim.lr_scheduler.StepLR(optimizer, 1)
            scaler = new_scaler("cpu", enabled=is_on)
            x, y = batch(hvd.rank(), 0)
            scaler.scale(nn.functional.cross_entropy(model(x), y)).backward()
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                if waits:
                    optimizer.synchronize()
                    with optimizer.skip_synchronize():
                        scaler.step(optimizer)
                else:
                    scaler.step(optimizer)
            told = [one for one in seen if "scaler.step() looked" in str(one.message)]
            assert bool(told) == (is_on and not waits), (kind, is_on, waits)
            hvd.barrier()


test_case = cases_of(__name__)

if __name__ == "__main__":
    run_cases(globals())
