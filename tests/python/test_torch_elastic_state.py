# SPDX-License-Identifier: Apache-2.0
"""What an elastic job keeps: states, samplers, and the loop around training."""

from __future__ import annotations

from typing import Any

import rueda
from rank_cases import cases_of, run_cases

try:
    import torch
    from torch import nn
except ImportError:
    torch = None  # type: ignore[assignment]
else:
    import rueda.torch as hvd
    from rueda.common.elastic import HostUpdateResult, ObjectState, notification_manager, run_fn
    from rueda.common.exceptions import HorovodInternalError, HostsUpdatedInterrupt
    from rueda.torch.elastic import state as states
    from test_torch_optimizer import assert_same_on_all_ranks, new_model, raises, train


def new_state(**more: Any) -> Any:
    """A state of which every rank has another one."""
    model = new_model(seed=hvd.rank())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1 + hvd.rank(), momentum=0.9)
    return hvd.elastic.TorchState(model, optimizer, epoch=10 + hvd.rank(), **more)


def case_synchronised_states_are_those_of_rank_0() -> None:
    state = new_state(note=f"rank {hvd.rank()}")
    state.sync()
    assert torch.equal(state.model[0].weight, new_model(seed=0)[0].weight)
    assert (state.epoch, state.note) == (10, "rank 0")
    assert state.optimizer.param_groups[0]["lr"] == 0.1


def case_a_restored_state_is_that_of_the_last_commit() -> None:
    state = new_state()
    train(state.model, state.optimizer, [0], steps=1)
    state.epoch = 20
    state.commit()
    weight = state.model[0].weight.clone()
    momentum = state.optimizer.state[state.model[0].weight]["momentum_buffer"].clone()
    for _ in range(2):  # a copy is not used up
        train(state.model, state.optimizer, [0], steps=2)
        state.epoch = 30
        state.restore()
        assert torch.equal(state.model[0].weight, weight)
        kept = state.optimizer.state[state.model[0].weight]["momentum_buffer"]
        assert torch.equal(kept, momentum)
        assert state.epoch == 20


def case_a_state_without_a_framework_keeps_a_sampler() -> None:
    sampler = rueda.elastic.ElasticSampler(range(20), shuffle=False)
    state = rueda.elastic.ObjectState(sampler=sampler, epoch=hvd.rank())
    sampler.record_batch(0, 1)
    state.commit()
    done = hvd.size()
    sampler.record_batch(1, 2)
    assert sampler.processed_num == 3 * done
    state.restore()
    assert sampler.processed_num == done
    sampler.processed_num += hvd.rank()
    state.sync()
    assert (sampler.processed_num, state.epoch) == (done, 0)
    sampler.processed_num += 1
    state.on_reset()
    assert sampler.remaining_indices == list(range(done + 1, 20))
    assert set(sampler) <= set(range(done + 1, 20))
    copy = state.durable()
    sampler.set_epoch(3)
    state.load_durable(copy)
    assert (sampler.epoch, sampler.processed_num) == (0, done + 1)


def case_plain_values_are_synchronised_as_they_were_saved() -> None:
    state = new_state()
    state.epoch = 99
    state.sync()
    assert state.epoch == 10


def case_a_new_model_takes_the_place_of_the_old() -> None:
    state = new_state()
    state.model = new_model(seed=40)
    train(state.model, torch.optim.SGD(state.model.parameters(), lr=1.0), [0])
    state.restore()
    assert torch.equal(state.model[0].weight, new_model(seed=40)[0].weight)
    assert hvd.elastic.TorchState().model is None
    raises(AttributeError, lambda: state.nothing, "nothing")


def case_handlers_can_be_ones_own() -> None:
    class Box:
        def __init__(self, value: int) -> None:
            self.value = value

    class BoxHandler(states.StateHandler):
        def save(self) -> None:
            self.saved = self.value.value

        def restore(self) -> None:
            self.value.value = self.saved

        def sync(self) -> None:
            self.value.value = hvd.broadcast_object(self.value.value)

    before = states.get_handler_registry()
    states.set_handler_registry([*before, (Box, BoxHandler)])
    try:
        state = hvd.elastic.TorchState(box=Box(hvd.rank() + 5))
        state.sync()
        assert state.box.value == 5
    finally:
        states.set_handler_registry(before)


# ---- Samplers ---------------------------------------------------------------


def case_samplers_divide_a_dataset() -> None:
    data = list(range(10 * hvd.size() + 1))
    sampler = hvd.elastic.ElasticSampler(data, shuffle=False)
    assert len(sampler) == len(list(sampler)) == 11
    everyone = hvd.allgather_object(list(sampler))
    assert set().union(*everyone) == set(data)
    shuffled = hvd.elastic.ElasticSampler(data, seed=3)
    again = hvd.elastic.ElasticSampler(data, seed=3)
    assert list(shuffled) == list(again) != list(sampler)
    shuffled.set_epoch(1)
    assert list(shuffled) != list(again)


def case_samplers_leave_out_what_is_done() -> None:
    data = list(range(8 * hvd.size()))
    sampler = hvd.elastic.ElasticSampler(data, shuffle=True)
    first = list(sampler)[:4]
    sampler.record_batch(0, 2)
    sampler.record_batch(1, 2)
    assert sampler.processed_num == 4 * hvd.size()
    assert sampler.state_dict() == {"epoch": 0, "processed_num": 4 * hvd.size()}
    state = hvd.elastic.TorchState(sampler=sampler)
    state.sync()
    left = list(state.sampler)
    assert len(left) == len(sampler) == 4
    assert set().union(*hvd.allgather_object(first + left)) == set(data)
    sampler.record_batch(2, 2)
    state.restore()
    assert sampler.processed_num == 4 * hvd.size()
    sampler.set_epoch(1)
    assert (sampler.processed_num, len(sampler)) == (0, 8)


# ---- The loop around training -----------------------------------------------


def case_training_goes_on_after_failures_and_changes() -> None:
    calls: list[Any] = []

    def train_once(state: Any, what: str) -> str:
        calls.append((what, state.batch))
        if len(calls) == 1:
            state.batch = 5
            state.commit()
            state.batch = 6
            raise HorovodInternalError("a peer is gone")
        if len(calls) == 2:
            state.batch = 7
            raise HostsUpdatedInterrupt(True)
        return "done"

    state = hvd.elastic.TorchState(batch=0)
    resets: list[str] = []
    state.register_reset_callbacks([lambda: resets.append("callback")])
    again = run_fn(train_once, lambda: resets.append("reset"))
    assert again(state, "x") == "done"
    assert calls == [("x", 0), ("x", 5), ("x", 7)]
    assert resets == ["reset", "callback"] * 2


def case_other_exceptions_end_it() -> None:
    def fail(state: Any) -> None:
        raise KeyError("mine")

    raises(KeyError, lambda: run_fn(fail, lambda: None)(hvd.elastic.TorchState(batch=0)))


def case_the_decorator_makes_the_job_anew() -> None:
    size, lives = hvd.size(), []

    @hvd.elastic.run
    def train_once(state: Any) -> int:
        lives.append(hvd.is_initialized())
        if len(lives) == 1:
            raise HostsUpdatedInterrupt(False)
        return hvd.size()

    assert train_once(hvd.elastic.TorchState(batch=0)) == size
    assert lives == [True, True]
    assert hvd.allgather_object(hvd.rank()) == list(range(size))


def case_hosts_that_come_are_told_by_rank_0() -> None:
    state = ObjectState(hvd.broadcast_object, hvd.rank, batch=1)
    notification_manager.register_listener(state)
    state.commit()  # nothing has happened
    if hvd.rank() == 0:
        notification_manager.handle_hosts_updated(10.0, HostUpdateResult.added)
        notification_manager.handle_hosts_updated(11.0, HostUpdateResult.removed)
    try:
        state.commit()
    except HostsUpdatedInterrupt as change:
        assert not change.skip_sync
    else:
        raise AssertionError("nothing was told")
    state.commit()
    if hvd.rank() == 0:
        notification_manager.handle_hosts_updated(12.0, HostUpdateResult.removed)
        notification_manager.handle_hosts_updated(3.0, HostUpdateResult.added)  # old news
    try:
        state.check_host_updates()
    except HostsUpdatedInterrupt as change:
        assert change.skip_sync
    else:
        raise AssertionError("nothing was told")
    notification_manager.remove_listener(state)


def case_an_elastic_optimizer_trains_after_a_reset() -> None:
    model = new_model()
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters()
    )
    state = hvd.elastic.TorchState(model, optimizer, step=0)

    @hvd.elastic.run
    def train_on(state: Any) -> None:
        while state.step < 4:
            train(state.model, state.optimizer, [hvd.rank()], steps=1)
            state.step += 1
            if state.step == 2:
                state.commit()
                loss = nn.functional.cross_entropy(state.model(torch.ones(1, 4)), torch.tensor([1]))
                loss.backward()  # these gradients are lost on the way
                raise HorovodInternalError("a peer is gone")
            state.commit()

    begun_at: list[int] = []
    state.register_reset_callbacks([lambda: begun_at.append(state.step)])
    train_on(state)
    assert (state.step, begun_at) == (4, [2])
    assert_same_on_all_ranks(model)


test_case = cases_of(__name__)

if __name__ == "__main__":
    run_cases(globals())
