# SPDX-License-Identifier: Apache-2.0
"""Parameters, states of optimizers and objects become the same on all ranks."""

from __future__ import annotations

import copy
from typing import Any

from rank_cases import cases_of, run_cases

try:
    import torch
    from torch import nn
except ImportError:
    torch = None  # type: ignore[assignment]
else:
    import rueda.torch as hvd
    from test_torch_optimizer import assert_same_on_all_ranks, new_model, raises, train


def case_objects_are_those_of_the_root() -> None:
    mine = {"rank": hvd.rank(), "list": [1, "two", 3.0, None]}
    for root in range(hvd.size()):
        got = hvd.broadcast_object(mine, root_rank=root)
        assert got == {"rank": root, "list": [1, "two", 3.0, None]}
    assert hvd.broadcast_object(mine if hvd.rank() == 1 else None, root_rank=1)["rank"] == 1


def case_objects_stay_in_their_process_set() -> None:
    alone = [hvd.add_process_set([rank]) for rank in range(hvd.size())]
    mine = alone[hvd.rank()]
    got = hvd.broadcast_object(hvd.rank(), root_rank=hvd.rank(), process_set=mine)
    assert got == hvd.rank()
    for one in alone:
        hvd.remove_process_set(one)


def case_objects_of_all_ranks_come_in_their_order() -> None:
    mine = "x" * (100 * hvd.rank() + 1)
    assert hvd.allgather_object(mine) == ["x" * (100 * rank + 1) for rank in range(hvd.size())]


def case_large_objects_arrive() -> None:
    size = 40_000_000
    mine = bytes([hvd.rank() + 1]) * size
    assert hvd.broadcast_object(mine, root_rank=1) == bytes([2]) * size


def case_parameters_are_those_of_the_root() -> None:
    for give in (
        lambda model: model.state_dict(),
        lambda model: model.named_parameters(),
        lambda model: list(model.named_parameters()),
        lambda model: list(model.parameters()),
    ):
        model, root = new_model(seed=hvd.rank()), new_model(seed=1)
        hvd.broadcast_parameters(give(model), root_rank=1)
        for one, two in zip(model.parameters(), root.parameters()):
            assert torch.equal(one, two)


def case_types_that_cannot_be_reduced_are_sent_too() -> None:
    names = ("complex64", "complex128", "uint32", "float8_e4m3fn")
    for dtype in (getattr(torch, name) for name in names if hasattr(torch, name)):
        values = torch.full((3, 2), hvd.rank() + 1.0).to(dtype)
        turned = torch.full((3, 2), hvd.rank() + 1.0).to(dtype).t()
        scalar = torch.tensor(hvd.rank() + 1.0).to(dtype)
        hvd.broadcast_parameters({"a": values, "b": turned, "c": scalar}, root_rank=1)
        for tensor in (values, turned, scalar):
            assert tensor.dtype == dtype
            assert tensor.to(torch.complex64).eq(2).all(), tensor


def case_states_may_be_complex() -> None:
    param = nn.Parameter(torch.full((3,), hvd.rank() + 1j))
    optimizer = torch.optim.Adam([param], lr=0.1)
    param.abs().sum().backward()
    optimizer.step()
    hvd.broadcast_optimizer_state(optimizer, root_rank=1)
    hvd.broadcast_parameters([param], root_rank=1)
    first, *others = hvd.allgather_object([param.detach(), optimizer.state[param]["exp_avg"]])
    for other in others:
        assert all(map(torch.equal, first, other))


def case_what_is_no_tensor_is_left_alone() -> None:
    state = {"b": torch.tensor(float(hvd.rank())), "a": "text", "c": None}
    hvd.broadcast_parameters(state, root_rank=1)
    assert state == {"b": torch.tensor(1.0), "a": "text", "c": None}
    for wrong in (5, "weights", torch.zeros(2)):
        raises(ValueError, lambda wrong=wrong: hvd.broadcast_parameters(wrong, root_rank=0))


def optimizers() -> list[tuple[str, dict[str, Any]]]:
    found = [("SGD", {"momentum": 0.9}), ("SGD", {}), ("Adam", {"amsgrad": True}), ("Rprop", {}),
             ("RMSprop", {"centered": True, "momentum": 0.5}), ("Adadelta", {}), ("ASGD", {}),
             ("Adagrad", {}), ("Adamax", {}), ("NAdam", {}), ("RAdam", {})]  # fmt: skip
    return [("AdamW", {"weight_decay": 0.5}), *found]


def plain(state: Any) -> Any:
    """A state with lists for tensors, so that it can be compared."""
    if isinstance(state, torch.Tensor):
        return [str(state.dtype), state.tolist()]
    if isinstance(state, dict):
        return {str(key): plain(value) for key, value in state.items()}
    return [plain(one) for one in state] if isinstance(state, (list, tuple)) else state


def case_states_of_optimizers_are_those_of_the_root() -> None:
    for kind, options in optimizers():
        model = new_model(seed=5)
        options = {"lr": 0.1 * (hvd.rank() + 1), **options}
        optimizer = getattr(torch.optim, kind)(model.parameters(), **options)
        if hvd.rank() == 0:
            train(model, optimizer, [0], steps=2)
        before = copy.deepcopy(list(model.parameters()))
        optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())
        hvd.broadcast_optimizer_state(optimizer, root_rank=0)
        mine = plain(optimizer.state_dict())
        assert hvd.allgather_object(mine) == [mine] * hvd.size(), kind
        assert optimizer.param_groups[0]["lr"] == 0.1
        # Parameters are not its business, weight decay or not.
        for one, two in zip(model.parameters(), before):
            assert torch.equal(one, two), kind
        hvd.broadcast_parameters(model.state_dict(), root_rank=0)
        train(model, optimizer, [hvd.rank()], steps=2)
        assert_same_on_all_ranks(model)


def case_options_keep_their_types() -> None:
    model = new_model()
    optimizer = torch.optim.Adam(
        model.parameters(), lr=1 if hvd.rank() == 0 else 0.5, betas=(0.5, 0.25 * (1 + hvd.rank()))
    )
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    group = optimizer.param_groups[0]
    assert (group["lr"], group["betas"], group["amsgrad"]) == (1, (0.5, 0.25), False)
    assert type(group["lr"]) is int and type(group["betas"]) is tuple


def case_gradients_of_zeros_are_left_where_there_was_no_state() -> None:
    trained, frozen = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(3).int(), False)
    optimizer = torch.optim.SGD([frozen, trained], lr=0.1, momentum=0.9)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    assert frozen.grad is None
    assert trained.grad.tolist() == [0.0] * 3
    assert len(optimizer.state) == 0  # as on the root


def case_sparse_optimizers_are_left_with_sparse_gradients() -> None:
    table = nn.Embedding(4, 2, sparse=True)
    hvd.broadcast_optimizer_state(torch.optim.SparseAdam(table.parameters()), root_rank=0)
    assert table.weight.grad.is_sparse
    other = nn.Sequential(nn.Embedding(4, 2, sparse=True))
    plain_sgd = torch.optim.SGD(other.parameters(), lr=0.1)
    hvd.broadcast_optimizer_state(plain_sgd, root_rank=0, model=other)
    assert other[0].weight.grad.is_sparse


def case_lbfgs_is_refused() -> None:
    optimizer = torch.optim.LBFGS(new_model().parameters())
    raises(ValueError, lambda: hvd.broadcast_optimizer_state(optimizer, root_rank=0))


test_case = cases_of(__name__)

if __name__ == "__main__":
    run_cases(globals())
