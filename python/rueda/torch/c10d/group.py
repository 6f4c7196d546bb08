# SPDX-License-Identifier: Apache-2.0
"""The process group: torch's calls as operations of a private process set."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, Callable

import torch
import torch.distributed as dist

from rueda import _core

from . import job
from .calls import Call, reduction_of
from .work import JoinedWork, RuedaWork, is_in_backward, sweep

__all__ = ["RuedaProcessGroup", "make_group"]

Tensor = torch.Tensor

_MOST_TAG = 2**31 - 1
_MESSAGES = (_core.KIND_SEND, _core.KIND_RECV)


def make_group(options: Any, backend_options: Any = None) -> RuedaProcessGroup:
    """What torch calls in every member of a new group."""
    del backend_options
    ranks = list(options.global_ranks_in_group)
    return RuedaProcessGroup(
        options.store, options.group_rank, options.group_size, options.timeout, ranks
    )


def _op_of(opts: Any, op: Any = None) -> Any:
    """The reduction of options, or a ``ReduceOp`` in their place; SUM without either."""
    if op is None:
        op = getattr(opts, "reduceOp", opts)
    return reduction_of(dist.ReduceOp.SUM if op is None else op)


def _root_of(opts: Any, root: int | None) -> int:
    if root is not None:
        return root
    return opts if isinstance(opts, int) else getattr(opts, "rootRank", 0)


def _list_of(tensors: Any) -> list[Any]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


class RuedaProcessGroup(dist.ProcessGroup):  # type: ignore[misc]
    """The ranks of a group, as one of them sees them.

    Torch calls it from Python, with tensors or lists of them, and from C++, with lists.
    """

    def __init__(
        self, store: Any, rank: int, size: int, timeout: timedelta, ranks: Sequence[int] = ()
    ) -> None:
        """Make the group together with its other members; ``ranks`` is empty for all ranks."""
        if list(ranks) != sorted(ranks):
            raise ValueError(f"the ranks of a group ascend; here they are {list(ranks)}")
        super().__init__(rank, size)
        self._store = store
        self._timeout = timeout
        self._name = ""
        self._desc = "undefined"
        self._count = 0
        self._monitored = 0  # barriers
        self._is_checked = dist.get_debug_level() == dist.DebugLevel.DETAIL
        self._order = threading.Lock()
        self._started: list[RuedaWork] | None = None  # while operations are coalesced
        self._ranks = list(ranks) or list(range(size))
        self._set: int | None = job.open_set(store, rank, list(ranks), size, timeout)

    # ---- Who we are ---------------------------------------------------------

    def getBackendName(self) -> str:
        return "rueda"

    def getGroupName(self) -> str:
        return self._name

    def _set_group_name(self, name: str) -> None:
        self._name = name

    def getGroupDesc(self) -> str:
        return self._desc

    def _set_group_desc(self, desc: str) -> None:
        self._desc = desc

    name = getBackendName
    setGroupName = _set_group_name
    setGroupDesc = _set_group_desc
    group_name = property(getGroupName)
    group_desc = property(getGroupDesc)

    def get_group_store(self) -> Any:
        return self._store

    def set_timeout(self, timeout: timedelta) -> None:
        """For operations that are started from now on."""
        self._timeout = timeout

    _set_default_timeout = set_timeout

    def _set_sequence_number_for_group(self) -> None:
        self._count = 0

    def _get_sequence_number_for_group(self) -> int:
        return self._count

    def shutdown(self) -> None:
        """Leave the group. Its memory comes back when all members have left."""
        number, self._set = self._set, None
        if number is not None:
            job.close(number)

    abort = shutdown

    def __del__(self) -> None:
        # Up to 2.6 torch only forgets a group that is destroyed.
        if not sys.is_finalizing() and getattr(self, "_set", None) is not None:
            self.shutdown()

    # ---- Starting operations --------------------------------------------------

    def _start(
        self, kind: int, dtype: int, send: int, recv: int, shape: tuple[int, ...], more: Any
    ) -> int:
        """Hand an operation over. All members call in the same order.

        Nothing is negotiated, unless the user asks torch to look for mistakes: then the
        library compares what the ranks say. It also does where tensors are on a GPU.
        """
        if self._set is None:
            raise job.GroupError("this process group was destroyed; make a new one")
        if not self._is_checked and kind not in _MESSAGES and "device" not in more:
            more["ordered"] = True
        return _core.submit(kind, None, self._set, dtype, send, recv, shape, **more)

    def _run(
        self, kind: str, opts: Any, output: list[Any], describe: Callable[[Call], None],
        timeout: timedelta | None = None, source: int = -1, senders: Sequence[int] = (),
    ) -> RuedaWork:  # fmt: skip
        """Start the operations that ``describe`` adds to a call."""
        limit = timeout or getattr(opts, "timeout", None)
        if limit is None or limit <= timedelta(0):
            limit = self._timeout
        call = Call(self.size(), self._ranks, self.rank())
        describe(call)
        # Where cores are few, work in the background slows the pass and saves nothing.
        is_put_off = kind == "allreduce" and is_in_backward() and job.is_crowded()
        sweep()
        with self._order:
            self._count += 1
            words = f"{kind} number {self._count} of process group {self._name or self._set}"
            if is_put_off:
                for _, more in call.orders:
                    more["more"] = True
            cores = [self._start(*order, more) for order, more in call.orders]
        work = RuedaWork(
            words, cores, limit, output, (call, output), call.finish, source, senders
        )
        if is_put_off:
            work.finish_with_backward()
        if self._started is not None:
            self._started.append(work)
        return work

    def _start_coalescing(self, device: Any = None) -> None:
        self._started = []

    def _end_coalescing(self, device: Any = None) -> JoinedWork:
        works, self._started = self._started or [], None
        return JoinedWork(works)

    # ---- Reductions -----------------------------------------------------------

    def allreduce(
        self, tensors: Any, opts: Any = None, op: Any = None, timeout: Any = None
    ) -> RuedaWork:
        tensors = _list_of(tensors)
        how = _op_of(opts, op)

        def describe(call: Call) -> None:
            for tensor in tensors:
                call.allreduce(tensor, how)

        return self._run("allreduce", opts, tensors, describe, timeout)

    allreduce_coalesced = allreduce

    def reduce(
        self, tensors: Any, opts: Any = None, root: int | None = None, op: Any = None,
        timeout: Any = None,
    ) -> RuedaWork:  # fmt: skip
        (tensor,) = _list_of(tensors)
        how = _op_of(None if isinstance(opts, int) else opts, op)
        to = _root_of(opts, root)
        return self._run(
            "reduce", opts, [tensor], lambda call: call.reduce(tensor, how, to), timeout
        )

    def reduce_scatter(
        self, outputs: Any, inputs: Any, opts: Any = None, op: Any = None, timeout: Any = None
    ) -> RuedaWork:
        if isinstance(outputs, Tensor):
            outputs, inputs = [outputs], [inputs]
        how = _op_of(opts, op)

        def describe(call: Call) -> None:
            for output, sources in zip(outputs, inputs):
                call.reduce_scatter_list(output, sources, how)

        return self._run("reduce_scatter", opts, list(outputs), describe, timeout)

    def reduce_scatter_single_coalesced(
        self, outputs: Any, inputs: Any, opts: Any = None
    ) -> RuedaWork:
        how = _op_of(opts)

        def describe(call: Call) -> None:
            for output, source in zip(outputs, inputs):
                call.reduce_scatter(output, source, how)

        return self._run("reduce_scatter_tensor", opts, list(outputs), describe)

    def reduce_scatter_single(self, output: Tensor, source: Tensor, opts: Any = None) -> RuedaWork:
        return self.reduce_scatter_single_coalesced([output], [source], opts)

    # ---- Broadcast and allgather ------------------------------------------------

    def broadcast(
        self, tensors: Any, opts: Any = None, root: int | None = None, timeout: Any = None
    ) -> RuedaWork:
        tensors = _list_of(tensors)
        sender = _root_of(opts, root)

        def describe(call: Call) -> None:
            for tensor in tensors:
                call.broadcast(tensor, sender)

        return self._run("broadcast", opts, tensors, describe, timeout)

    def allgather(
        self, outputs: Any, inputs: Any, opts: Any = None, timeout: Any = None
    ) -> RuedaWork:
        if isinstance(inputs, Tensor):
            outputs, inputs = [outputs], [inputs]

        def describe(call: Call) -> None:
            for output, source in zip(outputs, inputs):
                call.allgather_list(output, source)

        return self._run("allgather", opts, list(outputs), describe, timeout)

    def allgather_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> RuedaWork:
        # Torch gives a list for each tensor, with one output for each rank.
        return self.allgather(outputs, inputs, opts)

    def all_gather_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> RuedaWork:
        def describe(call: Call) -> None:
            for output, source in zip(outputs, inputs):
                call.allgather(output, source)

        return self._run("all_gather_into_tensor", opts, list(outputs), describe)

    def all_gather_single(self, output: Tensor, source: Tensor, opts: Any = None) -> RuedaWork:
        return self.all_gather_single_coalesced([output], [source], opts)

    # ---- All to all, to and from a root --------------------------------------------

    def all_to_all_single(
        self, output: Tensor, source: Tensor, got: Any = (), given: Any = (), opts: Any = None,
        timeout: Any = None,
    ) -> RuedaWork:  # fmt: skip
        """``got`` and ``given`` are the numbers of rows from and to each rank."""
        got, given = list(got or ()), list(given or ())
        return self._run(
            "all_to_all_single", opts, [output],
            lambda call: call.alltoall(output, source, got, given), timeout,
        )  # fmt: skip

    def alltoall(
        self, outputs: Any, inputs: Any, opts: Any = None, timeout: Any = None
    ) -> RuedaWork:
        return self._run(
            "all_to_all", opts, list(outputs),
            lambda call: call.alltoall_lists(outputs, inputs), timeout,
        )  # fmt: skip

    def gather(
        self, outputs: Any, inputs: Any, opts: Any = None, root: int | None = None,
        timeout: Any = None,
    ) -> RuedaWork:  # fmt: skip
        if isinstance(inputs, Tensor):
            outputs, inputs = [outputs], [inputs]
        to = _root_of(opts, root)
        all_of = outputs[0] if outputs else None
        return self._run(
            "gather", opts, list(outputs or ()),
            lambda call: call.gather(all_of, inputs[0], to), timeout,
        )  # fmt: skip

    def scatter(
        self, outputs: Any, inputs: Any, opts: Any = None, root: int | None = None,
        timeout: Any = None,
    ) -> RuedaWork:  # fmt: skip
        if isinstance(outputs, Tensor):
            outputs, inputs = [outputs], [inputs]
        sender = _root_of(opts, root)
        all_of = inputs[0] if inputs else None
        return self._run(
            "scatter", opts, list(outputs),
            lambda call: call.scatter(outputs[0], all_of, sender), timeout,
        )  # fmt: skip

    # ---- Messages and barriers ----------------------------------------------------

    def _check_message(self, peer: int, tag: int) -> None:
        if not 0 <= peer < self.size() or peer == self.rank():
            raise ValueError(
                f"rank {self.rank()} of a group of {self.size()} cannot exchange a message with "
                f"rank {peer} of it"
            )
        self._check_tag(tag)

    @staticmethod
    def _check_tag(tag: int) -> None:
        if not 0 <= tag <= _MOST_TAG:
            raise ValueError(f"the tag of a message is a number from 0 to {_MOST_TAG}, not {tag}")

    def send(self, tensors: Any, to: int, tag: int = 0) -> RuedaWork:
        (tensor,) = _list_of(tensors)
        self._check_message(to, tag)
        return self._run("send", None, [tensor], lambda call: call.send(tensor, to, tag))

    def recv(self, tensors: Any, source: int, tag: int = 0) -> RuedaWork:
        (tensor,) = _list_of(tensors)
        self._check_message(source, tag)
        return self._run(
            "recv", None, [tensor], lambda call: call.recv(tensor, source, tag), source=source
        )

    def recv_anysource(self, tensors: Any, tag: int = 0) -> RuedaWork:
        """From whichever member sends first; members that send are served in turns."""
        (tensor,) = _list_of(tensors)
        self._check_tag(tag)
        if self.size() == 1:
            raise ValueError("there is no other rank in this group that could send a message")
        return self._run(
            "recv", None, [tensor], lambda call: call.recv(tensor, None, tag),
            senders=self._ranks,
        )  # fmt: skip

    def barrier(self, opts: Any = None, timeout: Any = None) -> RuedaWork:
        return self._run("barrier", opts, [], Call.barrier, timeout)

    def monitored_barrier(
        self, timeout: timedelta | None = None, wait_all_ranks: bool = False
    ) -> None:
        """A barrier whose failure names the members that did not come in time.

        All of them are named, whatever ``wait_all_ranks`` says.
        """
        limit = timeout or self._timeout
        with suppress(RuntimeError):  # a store that cannot delete
            self._store.delete_key(self._seat(self.rank()))
        self._monitored += 1
        self._store.set(self._seat(self.rank()), "1")
        work = self._run("monitored_barrier", None, [], Call.barrier, limit)
        try:
            work.wait()
        except job.GroupError as error:
            if work.is_completed():
                raise  # it failed, and was not late
            missing = [
                rank
                for place, rank in enumerate(self._ranks)
                if not self._store.check([self._seat(place)])
            ]
            if not missing:
                raise
            raise job.GroupError(
                f"ranks {missing} did not come to the monitored barrier within "
                f"{limit.total_seconds():g} s"
            ) from error

    def _seat(self, place: int) -> str:
        """Where a member says that it has come to the barrier."""
        return f"monitored/{self._monitored}/{place}"

    # ---- The names of older and newer versions of torch -----------------------------

    _allgather_base = all_gather_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    _reduce_scatter_base = reduce_scatter_single
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
    alltoall_base = all_to_all_single
