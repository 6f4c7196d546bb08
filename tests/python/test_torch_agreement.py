# SPDX-License-Identifier: Apache-2.0
"""Parameters that are not the same on all ranks are noticed in the first step."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from rank_cases import cases_of, run_cases, run_job
from ranks import program

torch = pytest.importorskip("torch", reason="missing: torch")

if __name__ == "__main__":
    import rueda.torch as hvd
    from rueda import _core
    from rueda.common import agreement
    from rueda.torch.digests import digest_of
    from torch import nn

LINE = "hvd.broadcast_parameters(model.state_dict(), root_rank=0)"


def new_model(seed: int = 0) -> Any:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))


def distributed(model: Any, prefix: str = "", **options: Any) -> Any:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return hvd.DistributedOptimizer(
        optimizer, list(model.named_parameters(prefix=prefix)), **options
    )


def step(model: Any, optimizer: Any) -> None:
    optimizer.zero_grad()
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()


def said_in(model: Any, optimizer: Any, steps: int = 1) -> list[str]:
    """What this rank is told in this many steps."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(steps):
            step(model, optimizer)
    return [str(one.message) for one in seen if "parameter" in str(one.message)]


def check_words(said: list[str], name: str, ranks: str = "rank 1 from that on rank 0") -> None:
    if hvd.rank() != 0:
        assert said == [], said
        return
    assert len(said) == 1, said
    assert f'the parameter "{name}" is not the same' in said[0], said
    assert ranks in said[0], said
    assert LINE in said[0], said


# ---- The verdict ------------------------------------------------------------


def case_a_model_that_was_never_broadcast_is_named() -> None:
    model = new_model(seed=hvd.rank())
    said = said_in(model, distributed(model), steps=3)
    check_words(said, "0.bias")
    if hvd.rank() == 0:
        assert "4 of 4 parameters differ" in said[0]


def case_the_first_parameter_that_differs_is_named() -> None:
    model = new_model()
    if hvd.rank() == 1:
        with torch.no_grad():
            model[2].weight[2, 7] += 1e-6
    check_words(said_in(model, distributed(model)), "2.weight")


def case_equal_models_are_not_spoken_of() -> None:
    model = new_model(seed=hvd.rank())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    assert said_in(model, distributed(model), steps=2) == []


def case_numbers_that_are_no_numbers_are_compared_by_their_bits() -> None:
    model = new_model()
    with torch.no_grad():
        model[0].weight.fill_(float("nan"))
    assert said_in(model, distributed(model)) == []


def case_adasum_is_compared_as_well() -> None:
    model = new_model(seed=hvd.rank())
    check_words(said_in(model, distributed(model, op=hvd.Adasum)), "0.bias")


def case_a_closure_is_compared_as_well() -> None:
    model = new_model(seed=hvd.rank())
    optimizer = distributed(model)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = model(torch.ones(2, 4)).sum()
        loss.backward()
        return loss

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        optimizer.step(closure)
    check_words([str(one.message) for one in seen if "all ranks" in str(one.message)], "0.bias")


def case_each_optimizer_is_compared_by_itself() -> None:
    same, other = new_model(), new_model(seed=hvd.rank())
    one, two = distributed(same, "same"), distributed(other, "other")
    assert said_in(same, one) == []
    check_words(said_in(other, two), "other.0.bias")


def case_parameters_of_another_process_set_are_left_out() -> None:
    alone = [hvd.add_process_set([rank]) for rank in range(hvd.size())]
    model = new_model()
    with torch.no_grad():
        model[2].weight += hvd.rank()
    head = torch.optim.SGD(model[2].parameters(), lr=0.1)
    heads = [
        hvd.DistributedOptimizer(head, list(model[2].named_parameters("2")), process_set=one)
        for one in alone
    ]
    assert said_in(model, distributed(model)) == []
    del heads


def case_optimizers_of_a_process_set_compare_its_ranks_only() -> None:
    alone = [hvd.add_process_set([rank]) for rank in range(hvd.size())]
    model = new_model(seed=hvd.rank())
    assert said_in(model, distributed(model, process_set=alone[hvd.rank()])) == []


def case_parameters_of_other_names_give_no_verdict() -> None:
    model = new_model(seed=hvd.rank())
    extra = nn.Parameter(torch.zeros(1), requires_grad=False)
    named = [*model.named_parameters(), (f"z{hvd.rank()}", extra)]
    plain = torch.optim.SGD([param for _, param in named], lr=0.1)
    assert said_in(model, hvd.DistributedOptimizer(plain, named)) == []


# ---- Ranks that come at different times -------------------------------------


def case_a_rank_that_has_joined_is_no_difference() -> None:
    model = new_model(seed=hvd.rank())
    optimizer = distributed(model)
    if hvd.rank() == 0:
        assert said_in(model, optimizer) == []
    hvd.join()
    # Now both step, one of them for the first time.
    check_words(said_in(model, optimizer), "0.bias")


def case_a_new_job_is_compared_again() -> None:
    model = new_model()
    optimizer = distributed(model)
    assert said_in(model, optimizer) == []
    hvd.shutdown()
    hvd.init()
    if hvd.rank() == 1:  # a rank that is new has an optimizer that never stepped
        model = new_model(seed=1)
        optimizer = distributed(model)
    check_words(said_in(model, optimizer), "0.bias")


def case_a_rank_that_never_compares_holds_up_nobody_for_ever() -> None:
    before, agreement.LIMIT_S = agreement.LIMIT_S, 0.5
    model = new_model(seed=hvd.rank())
    optimizer = distributed(model)
    if hvd.rank() == 1:
        optimizer._agreement._steps_left = None
    said = said_in(model, optimizer, steps=2)
    agreement.LIMIT_S = before
    assert len(said) == (hvd.rank() == 0), said
    assert all("did not come" in one and "RUEDA_CHECK=off" in one for one in said), said


# ---- broadcast=True ---------------------------------------------------------


def case_the_optimizer_broadcasts_by_itself() -> None:
    model = new_model(seed=hvd.rank())
    optimizer = distributed(model, broadcast=True)
    for ours, roots in zip(model.parameters(), new_model(seed=0).parameters()):
        assert torch.equal(ours, roots)
    assert said_in(model, optimizer, steps=2) == []


def case_state_and_settings_are_broadcast_with_it() -> None:
    model = new_model(seed=hvd.rank())
    plain = torch.optim.Adam(model.parameters(), lr=0.1 + hvd.rank())
    if hvd.rank() == 0:
        model(torch.ones(2, 4)).sum().backward()
        plain.step()
    optimizer = hvd.DistributedOptimizer(plain, list(model.named_parameters()), broadcast=True)
    assert optimizer.param_groups[0]["lr"] == 0.1
    moment = optimizer.state[model[0].weight]["exp_avg"]
    assert torch.equal(hvd.broadcast(moment, 0), moment)
    assert said_in(model, optimizer, steps=2) == []


def case_lbfgs_and_process_sets_can_be_broadcast() -> None:
    model = new_model(seed=hvd.rank())
    plain = torch.optim.LBFGS(model.parameters())
    hvd.DistributedOptimizer(plain, list(model.named_parameters()), broadcast=True)
    assert torch.equal(model[0].weight, new_model(seed=0)[0].weight)
    last = hvd.add_process_set([hvd.size() - 1])
    other = new_model(seed=hvd.rank())
    distributed(other, process_set=last, broadcast=True)
    assert torch.equal(other[0].weight, new_model(seed=hvd.rank())[0].weight)


# ---- The number of a tensor -------------------------------------------------


def case_layout_does_not_count_and_values_do() -> None:
    x = torch.arange(24.0).reshape(2, 3, 2, 2)
    assert digest_of(x) == digest_of(x.to(memory_format=torch.channels_last))
    assert digest_of(x.t() if x.dim() == 2 else x) == digest_of(x.clone())
    assert digest_of(x[:, ::2]) == digest_of(x[:, ::2].clone())
    assert digest_of(x) != digest_of(x.reshape(4, 3, 2))
    assert digest_of(x) != digest_of(x.double())
    assert digest_of(torch.tensor([0.0])) != digest_of(torch.tensor([-0.0]))


def case_every_type_and_layout_has_a_number() -> None:
    for dtype in (torch.bool, torch.uint8, torch.int64, torch.float16, torch.bfloat16,
                  torch.float64, torch.complex64):  # fmt: skip
        x = torch.ones(5).to(dtype)
        y = x.clone()
        y[4] = 0
        assert digest_of(x) == digest_of(x.clone()) != digest_of(y)
    z = torch.ones(3, dtype=torch.complex64) * 1j
    assert digest_of(z.conj()) == digest_of(z.conj().resolve_conj()) != digest_of(z)
    dense = torch.eye(3)
    assert digest_of(dense.to_sparse()) == digest_of(dense.to_sparse())
    assert digest_of(dense.to_sparse()) != digest_of((2 * dense).to_sparse())
    assert digest_of(dense.to_sparse_csr()) != digest_of((2 * dense).to_sparse_csr())
    assert digest_of(torch.empty(0)) != digest_of(torch.empty(0, 1))


def case_every_byte_of_a_large_tensor_counts() -> None:
    x = torch.zeros(100_003, dtype=torch.uint8)
    seen = {digest_of(x)}
    for index in (0, 1, 15, 16, 65_536, 99_999, 100_002):
        y = x.clone()
        y[index] = 1
        seen.add(digest_of(y))
    assert len(seen) == 8
    with pytest.raises(ValueError):
        _core.digest(0, 1, 0)


test_case = cases_of(__name__)


# ---- The setting ------------------------------------------------------------

@pytest.mark.parametrize(
    ("setting", "wanted"), [("off", None), ("first", None), ("every:2", 4), ("every:4", 4)]
)
def test_how_often_is_a_setting(setting: str, wanted: int | None) -> None:
    first, second = run_job(program("torch_train_apart.py"), "10", RUEDA_CHECK=setting)
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    lines = [line for line in first.stdout.splitlines() if "not the same" in line]
    assert [line.split(":")[0] for line in lines] == ([] if wanted is None else [f"step {wanted}"])
    assert "not the same" not in second.stdout


def test_a_setting_that_cannot_be_is_named() -> None:
    (done,) = run_job(program("torch_train_apart.py"), "1", size=1, RUEDA_CHECK="every:0")
    assert done.returncode != 0
    assert "RUEDA_CHECK" in done.stderr


if __name__ == "__main__":
    run_cases(globals())
