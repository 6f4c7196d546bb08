# SPDX-License-Identifier: Apache-2.0
"""DistributedOptimizer as real programs use it."""

from __future__ import annotations

import copy
import io
import pickle
import time
import warnings
from typing import Any

from rank_cases import cases_of, run_cases

try:
    import torch
    from torch import nn
    from torch.utils.checkpoint import checkpoint
except ImportError:
    torch = None  # type: ignore[assignment]
else:
    import rueda.torch as hvd
    from test_torch_optimizer import (
        all_ranks,
        assert_same,
        assert_same_on_all_ranks,
        batch,
        new_model,
        new_optimizer,
        raises,
        train,
    )


def distributed(model: Any, kind: str = "SGD", **options: Any) -> Any:
    return hvd.DistributedOptimizer(
        new_optimizer(model, kind), named_parameters=model.named_parameters(), **options
    )


def backward(model: Any, step: int = 0, ranks: list[int] | None = None) -> Any:
    """The mean loss of these ranks, or of this one, differentiated."""
    ranks = [hvd.rank()] if ranks is None else ranks
    losses = [nn.functional.cross_entropy(model(x), y) for x, y in (batch(r, step) for r in ranks)]
    loss = sum(losses) / len(losses)
    loss.backward()
    return loss


# ---- What it is -------------------------------------------------------------


def case_it_is_an_optimizer_of_the_same_class_and_settings() -> None:
    model = new_model()
    plain = torch.optim.Adam(model.parameters(), lr=0.25, betas=(0.5, 0.75), foreach=False)
    optimizer = hvd.DistributedOptimizer(plain, model.named_parameters())
    assert isinstance(optimizer, torch.optim.Adam)
    assert type(optimizer).__name__ == "Adam"
    assert type(optimizer) is not torch.optim.Adam
    # By that scripts know that it is distributed.
    assert type(optimizer).__module__ == "horovod.torch.optimizer"
    assert type(optimizer).__module__ == hvd.DistributedOptimizer.__module__
    assert optimizer.defaults == plain.defaults
    assert optimizer.param_groups[0]["betas"] == (0.5, 0.75)
    assert optimizer.backward_passes_per_step == 1
    assert optimizer.op == hvd.Average
    assert optimizer.gradient_predivide_factor == 1.0
    assert not optimizer.sparse_as_dense
    assert optimizer.process_set is hvd.global_process_set


def case_state_that_is_there_already_is_taken_over() -> None:
    alone, together = new_model(), new_model()
    one, plain = new_optimizer(alone), new_optimizer(together)
    train(alone, one, [0], steps=1)
    train(together, plain, [0], steps=1)
    train(alone, one, all_ranks())
    optimizer = hvd.DistributedOptimizer(plain, together.named_parameters())
    train(together, optimizer, [hvd.rank()])
    assert_same(alone, together)


def case_hooks_and_schedulers_see_each_step_once() -> None:
    model = new_model()
    optimizer = distributed(model)
    steps = []
    if hasattr(optimizer, "register_step_post_hook"):
        optimizer.register_step_post_hook(lambda *_: steps.append("hook"))
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        backward(model)
        optimizer.step()
        scheduler.step()
    assert steps in ([], ["hook"])
    assert optimizer.param_groups[0]["lr"] == 0.05


# ---- Between backward and step ----------------------------------------------


def case_a_scheduler_made_before_wrapping_gives_no_false_warning() -> None:
    model = new_model()
    plain = new_optimizer(model)
    scheduler = torch.optim.lr_scheduler.LambdaLR(plain, lambda epoch: 1 / (1 + epoch))
    optimizer = hvd.DistributedOptimizer(plain, model.named_parameters())
    first = optimizer.param_groups[0]["lr"]
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for step in range(2):
            backward(model, step)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
    assert not [one for one in seen if "lr_scheduler" in str(one.message)], seen[0].message
    assert abs(optimizer.param_groups[0]["lr"] - first / 3) < 1e-9


def case_a_model_is_no_optimizer() -> None:
    try:
        hvd.DistributedOptimizer(new_model())
    except TypeError as error:
        assert "not a Sequential" in str(error), error
        assert "torch.optim.SGD(model.parameters()" in str(error), error
    else:
        raise AssertionError("a model was taken for an optimizer")


def case_gradients_can_be_clipped() -> None:
    alone, together = new_model(), new_model()
    one, optimizer = new_optimizer(alone), distributed(together)
    for step in range(3):
        one.zero_grad()
        backward(alone, step, all_ranks())
        nn.utils.clip_grad_norm_(alone.parameters(), 0.05)
        one.step()
        optimizer.zero_grad()
        backward(together, step)
        optimizer.synchronize()
        nn.utils.clip_grad_norm_(together.parameters(), 0.05)
        with optimizer.skip_synchronize():
            optimizer.step()
    assert_same(alone, together)


def case_a_grad_scaler_skips_the_same_steps_on_all_ranks() -> None:
    model = new_model()
    optimizer = distributed(model)
    new_scaler = getattr(getattr(torch, "amp", None), "GradScaler", None)
    if new_scaler is None:
        return  # only for CUDA then
    scaler = new_scaler("cpu", init_scale=4.0)
    before = copy.deepcopy(model)
    for step in range(3):
        optimizer.zero_grad()
        x, y = batch(hvd.rank(), step)
        loss = nn.functional.cross_entropy(model(x), y)
        if step == 1 and hvd.rank() == 0:
            loss = loss * float("inf")
        scaler.scale(loss).backward()
        optimizer.synchronize()
        scaler.unscale_(optimizer)
        with optimizer.skip_synchronize():
            scaler.step(optimizer)
        scaler.update()
    assert scaler.get_scale() == 2.0  # halved once, on every rank
    assert_same_on_all_ranks(model)
    raises(AssertionError, lambda: assert_same(before, model))


def case_a_closure_is_called_and_its_gradients_are_reduced() -> None:
    alone, together = new_model(), new_model()
    train(alone, new_optimizer(alone), all_ranks(), steps=2)
    optimizer = distributed(together)
    for step in range(2):

        def closure(step: int = step) -> Any:
            optimizer.zero_grad()
            return backward(together, step)

        assert optimizer.step(closure).item() > 0
    assert_same(alone, together)


def case_lbfgs_takes_the_same_steps_on_all_ranks() -> None:
    alone, together = new_model(), new_model()
    options = {"lr": 0.5, "max_iter": 6, "line_search_fn": "strong_wolfe"}
    one = torch.optim.LBFGS(alone.parameters(), **options)
    optimizer = hvd.DistributedOptimizer(
        torch.optim.LBFGS(together.parameters(), **options), together.named_parameters()
    )

    def closure_of(model: Any, stepper: Any, ranks: list[int]) -> Any:
        def closure() -> Any:
            stepper.zero_grad()
            return backward(model, 0, ranks)

        return closure

    one.step(closure_of(alone, one, all_ranks()))
    optimizer.step(closure_of(together, optimizer, [hvd.rank()]))
    assert_same(alone, together, 1e-3)
    assert_same_on_all_ranks(together)


# ---- Which parameters -------------------------------------------------------


class Heads(nn.Module if torch is not None else object):  # type: ignore[misc]
    """A trunk with two heads."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.trunk = nn.Linear(4, 4)
        self.heads = nn.ModuleList([nn.Linear(4, 1), nn.Linear(4, 1)])

    def forward(self, x: Any, head: int) -> Any:
        return self.heads[head](torch.tanh(self.trunk(x)))


def case_ranks_may_use_different_parts_of_a_model() -> None:
    alone, together = Heads(), Heads()
    for options in ({}, {"groups": 1}, {"groups": 2}):
        alone.load_state_dict(together.state_dict())
        one, optimizer = new_optimizer(alone), distributed(together, **options)
        for step in range(2):
            one.zero_grad()
            losses = [alone(batch(r, step)[0], r % 2).square().mean() for r in all_ranks()]
            (sum(losses) / hvd.size()).backward()
            one.step()
            optimizer.zero_grad()
            together(batch(hvd.rank(), step)[0], hvd.rank() % 2).square().mean().backward()
            optimizer.step()
        assert_same(alone, together)


def case_a_parameter_that_nobody_used_gets_a_gradient_of_zeros() -> None:
    model = Heads()
    optimizer = distributed(model)
    model(batch(hvd.rank(), 0)[0], 0).sum().backward()
    optimizer.step()
    assert model.heads[1].weight.grad.tolist() == [[0.0] * 4]


def case_frozen_parameters_stay_as_they_are() -> None:
    model = Heads()
    optimizer = hvd.DistributedOptimizer(
        new_optimizer(model, weight_decay=0.5), model.named_parameters()
    )
    for param in model.trunk.parameters():
        param.requires_grad_(False)
    before = copy.deepcopy(model.trunk)
    for _ in range(2):
        optimizer.zero_grad()
        model(batch(hvd.rank(), 0)[0], 0).sum().backward()
        optimizer.step()
    assert_same(before, model.trunk, 0.0)
    assert model.trunk.weight.grad is None


def case_parameters_can_begin_to_be_trained_later() -> None:
    alone, together = new_model(), new_model()
    for model in (alone, together):
        model[0].requires_grad_(False)
    one, optimizer = new_optimizer(alone), distributed(together)
    train(alone, one, all_ranks(), steps=1)
    train(together, optimizer, [hvd.rank()], steps=1)
    for model in (alone, together):
        model[0].requires_grad_(True)
    train(alone, one, all_ranks())
    train(together, optimizer, [hvd.rank()])
    assert_same(alone, together)


def case_groups_of_parameters_can_be_added_later() -> None:
    alone, together = new_model(), new_model()
    steppers = []
    for model in (alone, together):
        plain = torch.optim.SGD(model[2].parameters(), lr=0.1)
        named = model.named_parameters()
        wrap = model is together
        steppers.append(hvd.DistributedOptimizer(plain, named) if wrap else plain)
    for stepper, model, ranks in zip(steppers, (alone, together), (all_ranks(), [hvd.rank()])):
        train(model, stepper, ranks, steps=1)
        model.zero_grad()
        stepper.add_param_group({"params": list(model[0].parameters()), "lr": 0.2})
        train(model, stepper, ranks, steps=2)
    assert steppers[1]._parameter_names[together[0].weight] == "0.weight"
    assert_same(alone, together)


def case_several_optimizers_take_turns() -> None:
    maker, judge = new_model(1), nn.Linear(3, 1)
    torch.manual_seed(3)
    nn.init.normal_(judge.weight)
    makers = hvd.DistributedOptimizer(new_optimizer(maker), maker.named_parameters(prefix="maker"))
    judges = hvd.DistributedOptimizer(new_optimizer(judge), judge.named_parameters(prefix="judge"))
    hvd.broadcast_parameters(judge.state_dict(), root_rank=0)
    for step in range(3):
        x, _ = batch(hvd.rank(), step)
        for param in judge.parameters():
            param.requires_grad_(False)
        makers.zero_grad()
        judge(maker(x)).mean().backward()
        makers.step()
        for param in judge.parameters():
            param.requires_grad_(True)
        judges.zero_grad()
        judge(maker(x).detach()).square().mean().backward()
        judges.step()
    assert_same_on_all_ranks(maker)
    assert_same_on_all_ranks(judge)


def case_what_a_hook_could_not_hand_over_is_reduced_by_the_step() -> None:
    for groups in (None, 1):
        first, second = new_model(1), new_model(2)
        of_first, of_second = distributed(first, groups=groups), distributed(second, groups=groups)
        backward(first)
        # Both have the same names, which are taken.
        raises(ValueError, lambda model=second: backward(model), "the same name as another tensor")
        of_first.step()
        of_second.step()
        assert_same_on_all_ranks(first)
        assert_same_on_all_ranks(second)


def case_sparse_optimizers_may_have_no_gradient_on_a_rank() -> None:
    for as_dense in (False, True):
        model = nn.Embedding(6, 2, sparse=True)
        hvd.broadcast_parameters(model.state_dict(), root_rank=0)
        optimizer = hvd.DistributedOptimizer(
            torch.optim.SparseAdam(model.parameters()),
            model.named_parameters(),
            sparse_as_dense=as_dense,
        )
        if hvd.rank() == 0:
            model(torch.tensor([1, 4])).sum().backward()
        optimizer.step()
        assert_same_on_all_ranks(model)


def case_sparse_gradients_are_reduced() -> None:
    for as_dense in (False, True):
        torch.manual_seed(1)
        alone, together = nn.Embedding(10, 3, sparse=True), nn.Embedding(10, 3, sparse=True)
        together.load_state_dict(alone.state_dict())
        one = torch.optim.SparseAdam(alone.parameters(), lr=0.1)
        optimizer = hvd.DistributedOptimizer(
            torch.optim.SparseAdam(together.parameters(), lr=0.1),
            together.named_parameters(),
            sparse_as_dense=as_dense,
        )
        rows = [[rank, rank + 1, 5, *[7] * rank] for rank in all_ranks()]
        for _ in range(2):
            one.zero_grad()
            sum(alone(torch.tensor(row)).square().sum() / hvd.size() for row in rows).backward()
            one.step()
            optimizer.zero_grad()
            together(torch.tensor(rows[hvd.rank()])).square().sum().backward()
            optimizer.step()
            assert together.weight.grad.is_sparse
        assert_same(alone, together)


def case_ranks_outside_of_the_process_set_step_alone() -> None:
    with_0 = hvd.add_process_set([0])
    model, alone = new_model(), new_model()
    optimizer = distributed(model, process_set=with_0)
    train(model, optimizer, [hvd.rank()])
    train(alone, new_optimizer(alone), [hvd.rank()])
    assert_same(model, alone)
    optimizer.synchronize()
    hvd.remove_process_set(with_0)


# ---- Copies -----------------------------------------------------------------


def case_a_deep_copy_trains_its_own_copy_of_the_model() -> None:
    model = new_model()
    optimizer = distributed(model, "Adam")
    train(model, optimizer, [hvd.rank()], steps=1)
    twin, of_twin = copy.deepcopy((model, optimizer))
    assert isinstance(of_twin, torch.optim.Adam)
    assert of_twin.param_groups[0]["params"][0] is twin[0].weight
    train(model, optimizer, [hvd.rank()])
    train(twin, of_twin, [hvd.rank()])
    assert_same(model, twin)
    assert_same_on_all_ranks(twin)


def case_a_shallow_copy_has_the_same_parameters_and_reduces_them_once() -> None:
    model = new_model()
    optimizer = distributed(model)
    other = copy.copy(optimizer)
    train(model, optimizer, [hvd.rank()], steps=1)
    train(model, other, [hvd.rank()], steps=1)
    assert_same_on_all_ranks(model)


def case_pickles_keep_state_and_are_distributed() -> None:
    model = new_model()
    optimizer = distributed(model, "Adam")
    train(model, optimizer, [hvd.rank()], steps=1)
    twin, of_twin = pickle.loads(pickle.dumps((model, optimizer)))
    train(model, optimizer, [hvd.rank()])
    train(twin, of_twin, [hvd.rank()])
    assert_same(model, twin)


def case_state_dicts_go_to_files_and_back() -> None:
    model = new_model()
    optimizer = distributed(model, "Adam")
    train(model, optimizer, [hvd.rank()], steps=1)
    file = io.BytesIO()
    torch.save(optimizer.state_dict(), file)
    file.seek(0)
    twin = copy.deepcopy(model)
    of_twin = distributed(twin, "Adam")
    of_twin.load_state_dict(torch.load(file))
    train(model, optimizer, [hvd.rank()])
    train(twin, of_twin, [hvd.rank()])
    assert_same(model, twin)


def case_loading_a_state_ends_what_is_under_way() -> None:
    """Also where ranks took different ways, and one of them is late."""
    model = Heads()
    optimizer = distributed(model)
    state = copy.deepcopy(optimizer.state_dict())
    time.sleep(hvd.rank())
    model(torch.ones(2, 4), hvd.rank() % 2).sum().backward()
    optimizer.load_state_dict(state)
    optimizer.zero_grad()
    model(torch.ones(2, 4), hvd.rank() % 2).sum().backward()
    optimizer.step()
    assert_same_on_all_ranks(model)


def case_a_new_job_knows_nothing_of_gradients_of_the_old_one() -> None:
    model = new_model()
    optimizer = distributed(model)
    state = copy.deepcopy(optimizer.state_dict())
    if hvd.rank() == 1:
        backward(model)
    hvd.barrier()
    hvd.shutdown()
    hvd.init()
    optimizer.load_state_dict(state)
    train(model, optimizer, [hvd.rank()])
    assert_same_on_all_ranks(model)


def case_a_state_is_loaded_after_a_backward_pass_that_failed() -> None:
    model = new_model()
    optimizer = distributed(model)
    state = copy.deepcopy(optimizer.state_dict())
    hook = next(model.parameters()).register_hook(lambda grad: 1 / 0)
    raises(ZeroDivisionError, lambda: backward(model))
    hook.remove()
    optimizer.load_state_dict(state)
    optimizer.zero_grad()
    train(model, optimizer, [hvd.rank()], steps=1)
    assert_same_on_all_ranks(model)


# ---- Other ways through a model ---------------------------------------------


def case_checkpointed_models_are_trained() -> None:
    for reentrant in (False, True):
        alone, together = new_model(), new_model()
        train(alone, new_optimizer(alone), all_ranks())
        optimizer = distributed(together)

        def forward(x: Any, model: Any = together, reentrant: bool = reentrant) -> Any:
            x = x.requires_grad_()
            hidden = checkpoint(model[:2], x, use_reentrant=reentrant)
            return checkpoint(model[2], hidden, use_reentrant=reentrant)

        train(forward, optimizer, [hvd.rank()])
        assert_same(alone, together)


def case_compiled_models_are_trained() -> None:
    if not hasattr(torch, "compile"):
        return
    alone, together = new_model(), new_model()
    train(alone, new_optimizer(alone), all_ranks())
    compiled = torch.compile(together, backend="aot_eager")
    optimizer = distributed(together)
    train(compiled, optimizer, [hvd.rank()])
    assert_same(alone, together)


# ---- Adasum -----------------------------------------------------------------


def case_adasum_of_equal_steps_is_the_step() -> None:
    alone, together = new_model(), new_model()
    train(alone, new_optimizer(alone), [0])
    optimizer = distributed(together, op=hvd.Adasum)
    assert isinstance(optimizer, torch.optim.SGD)
    train(together, optimizer, [0])
    assert_same(alone, together, 1e-4)
    raises(AssertionError, optimizer.skip_synchronize)
    optimizer.synchronize()


def case_adasum_of_orthogonal_steps_is_their_sum() -> None:
    param = nn.Parameter(torch.zeros(2, hvd.size()))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([param], lr=1.0), op=hvd.Adasum)
    assert param.grad.tolist() == [[0.0] * hvd.size()] * 2
    optimizer.zero_grad()
    param[:, hvd.rank()].sum().backward()
    optimizer.step()
    torch.testing.assert_close(param.data, torch.full((2, hvd.size()), -1.0))


def case_adasum_is_for_all_ranks() -> None:
    with_0 = hvd.add_process_set([0])
    raises(
        NotImplementedError, lambda: distributed(new_model(), op=hvd.Adasum, process_set=with_0)
    )
    hvd.remove_process_set(with_0)


test_case = cases_of(__name__)

if __name__ == "__main__":
    run_cases(globals())
