# SPDX-License-Identifier: Apache-2.0
"""no_sync(), and what scripts in the wild use of Horovod's optimizer."""

from __future__ import annotations

from typing import Any

from rank_cases import cases_of, run_cases
from test_torch_optimizer import assert_same, batch, new_model, new_optimizer, raises, train

try:
    import torch
    from torch import nn
except ImportError:
    torch = None  # type: ignore[assignment]
else:
    import rueda.torch as hvd


def loss_of(model: Any, rank: int, step: int) -> Any:
    x, y = batch(rank, step)
    return nn.functional.cross_entropy(model(x), y)


def distributed(model: Any, **options: Any) -> Any:
    return hvd.DistributedOptimizer(new_optimizer(model), model.named_parameters(), **options)


def alone_with_sums(steps: list[list[int]]) -> Any:
    """One process: for each step the numbers of the batches that are added up."""
    model = new_model()
    optimizer = new_optimizer(model)
    for numbers in steps:
        optimizer.zero_grad()
        for number in numbers:
            losses = [loss_of(model, rank, number) for rank in range(hvd.size())]
            (sum(losses) / len(losses)).backward()
        optimizer.step()
    return model


# ---- no_sync() ----------------------------------------------------------------


def case_passes_within_no_sync_are_added_up_and_reduced_once() -> None:
    model = new_model()
    optimizer = distributed(model)
    for numbers in ([0, 1, 2], [3], [4, 5]):
        optimizer.zero_grad()
        with optimizer.no_sync():
            for number in numbers[:-1]:
                loss_of(model, hvd.rank(), number).backward()
                assert not optimizer._handles
        loss_of(model, hvd.rank(), numbers[-1]).backward()
        assert len(optimizer._handles) == 4
        optimizer.step()
    assert_same(alone_with_sums([[0, 1, 2], [3], [4, 5]]), model)


def case_no_sync_does_not_count_for_passes_per_step() -> None:
    model = new_model()
    optimizer = distributed(model, backward_passes_per_step=2)
    for first in (0, 3):
        optimizer.zero_grad()
        loss_of(model, hvd.rank(), first).backward()
        with optimizer.no_sync():
            loss_of(model, hvd.rank(), first + 1).backward()
        assert not optimizer._handles
        loss_of(model, hvd.rank(), first + 2).backward()
        optimizer.step()
    assert_same(alone_with_sums([[0, 1, 2], [3, 4, 5]]), model)


def case_a_step_within_no_sync_reduces_what_is_there() -> None:
    model = new_model()
    optimizer = distributed(model)
    for number in (0, 1):
        optimizer.zero_grad()
        with optimizer.no_sync():
            loss_of(model, hvd.rank(), number).backward()
            optimizer.step()
    optimizer.zero_grad()
    loss_of(model, hvd.rank(), 2).backward()
    optimizer.step()
    assert_same(alone_with_sums([[0], [1], [2]]), model)


def case_no_sync_does_not_hide_a_pass_too_many() -> None:
    model = new_model()
    optimizer = distributed(model)
    loss_of(model, hvd.rank(), 0).backward()
    with optimizer.no_sync():
        raises(AssertionError, lambda: loss_of(model, hvd.rank(), 1).backward(), "once more")
    optimizer.synchronize()


def case_no_sync_works_where_nothing_is_reduced() -> None:
    only = hvd.add_process_set([0])
    for options in ({"op": hvd.Adasum}, {"process_set": only}):
        model = new_model()
        optimizer = distributed(model, **options)
        with optimizer.no_sync():
            loss_of(model, hvd.rank(), 0).backward()
        optimizer.step()


# ---- Names ----------------------------------------------------------------------


def case_scripts_submit_gradients_and_see_what_is_in_flight() -> None:
    model, plain = new_model(), new_model()
    optimizer = distributed(model)
    params = list(model.parameters())
    assert optimizer._requires_update == set(params)
    assert optimizer._allreduce_delay == dict.fromkeys(params, 1)
    assert optimizer._handles == {}
    with optimizer.no_sync():  # so that no hook does it
        loss_of(model, hvd.rank(), 0).backward()
    for param in params:
        handle, _ = optimizer._allreduce_grad_async(param)
        assert optimizer._handles[param][0] == handle
        assert optimizer._allreduce_delay[param] == 0
    raises(AssertionError, lambda: optimizer._allreduce_grad_async(params[0]), "in flight")
    optimizer.step()
    assert optimizer._handles == {}
    train(plain, new_optimizer(plain), list(range(hvd.size())), steps=1)
    assert_same(plain, model)


def case_a_hook_can_be_asked_for_and_called() -> None:
    model = new_model()
    optimizer = distributed(model)
    param = next(model.parameters())
    with optimizer.no_sync():
        loss_of(model, hvd.rank(), 0).backward()
    optimizer._make_hook(param)(param)
    assert list(optimizer._handles) == [param]
    optimizer.step()
    raises(ValueError, lambda: optimizer._make_hook(torch.zeros(3)), "not one whose gradient")


def case_hooks_are_registered_for_unfrozen_parameters() -> None:
    model = new_model()
    frozen = next(model.parameters()).requires_grad_(False)
    optimizer = distributed(model)
    assert frozen not in optimizer._requires_update
    frozen.requires_grad_(True)
    optimizer._register_hooks()
    assert frozen in optimizer._requires_update


def case_what_has_no_meaning_names_its_replacement() -> None:
    optimizer = distributed(new_model())
    raises(AttributeError, lambda: optimizer._grad_accs, "_register_hooks()")
    raises(
        TypeError, lambda: type(optimizer)([torch.zeros(1)], lr=0.1), "hvd.DistributedOptimizer("
    )


def case_the_classes_have_the_names_of_horovod() -> None:
    from horovod.torch.optimizer import _DistributedAdasumOptimizer, _DistributedOptimizer

    plain, adasum = distributed(new_model()), distributed(new_model(), op=hvd.Adasum)
    assert isinstance(plain, _DistributedOptimizer)
    assert not isinstance(plain, _DistributedAdasumOptimizer)
    assert isinstance(adasum, _DistributedAdasumOptimizer)
    assert not isinstance(new_optimizer(new_model()), _DistributedOptimizer)


def case_dir_shows_what_scripts_use() -> None:
    assert sorted(hvd.__all__) == dir(hvd)
    assert all(hasattr(hvd, name) for name in dir(hvd))
    assert not {"annotations", "reducer", "submit"} & set(dir(hvd))


test_case = cases_of(__name__)

if __name__ == "__main__":
    run_cases(globals())
