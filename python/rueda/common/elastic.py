# SPDX-License-Identifier: Apache-2.0
"""What an elastic job keeps, and the loop around its training function.

A :class:`State` holds what has to survive a change of the ranks. ``commit()``
keeps a copy in memory; after a lost rank all ranks go back to the last one,
and new ranks get rank 0's. Nothing here knows a framework.
"""

from __future__ import annotations

import functools
import os
import pickle
import queue
import select
import sys
import threading
from collections.abc import Iterable
from typing import Any, Callable

from rueda import _core
from rueda.data.ledger import Ledger

from . import durable
from .basics import basics
from .exceptions import HorovodInternalError, HostsUpdatedInterrupt
from .objects import allgather_object, broadcast_object
from .sampler import ElasticSampler

__all__ = [
    "HostUpdateResult",
    "NotificationManager",
    "ObjectState",
    "State",
    "decorate",
    "notification_manager",
    "run_fn",
    "step",
]


def step() -> None:
    """Say that a step of the program ends here, for ``run(repair=True)`` and ``RUEDA_REPAIR=1``.

    After a death ``rank()`` and ``size()`` change here, at the same call on all ranks. Every
    rank calls it equally often, with none of its operations in flight.
    ``DistributedOptimizer.step()`` of PyTorch and ``State.commit()`` do it by themselves.
    """
    _core.step()


class HostUpdateResult:
    """What has happened to the hosts of a job; flags."""

    no_update = 0
    removed = 1
    added = 2
    mixed = removed | added


class NotificationManager:
    """Passes the launcher's word of changes of hosts on to its listeners.

    A thread that learns of a change calls :meth:`handle_hosts_updated`.
    """

    def __init__(self) -> None:
        self._listeners: set[Any] = set()
        self._openers: list[Callable[[], None]] = []

    def at_init(self, opener: Callable[[], None]) -> None:
        """Have this called by :meth:`init`: it connects to a launcher that is elastic."""
        self._openers.append(opener)

    def init(self) -> None:
        """Begin to listen to the launcher. Without one that is elastic there is nothing to do."""
        openers, self._openers = self._openers, []
        for opener in openers:
            opener()

    def register_listener(self, listener: Any) -> None:
        self._listeners.add(listener)

    def remove_listener(self, listener: Any) -> None:
        self._listeners.discard(listener)

    def handle_hosts_updated(self, timestamp: float, update_res: int) -> None:
        for listener in tuple(self._listeners):
            listener.on_hosts_updated(timestamp, update_res)


notification_manager = NotificationManager()


# ---- Changes of hosts ---------------------------------------------------------

#: For one question; the answer comes at once when there is a change.
_CHANGE_MS = 10_000


def _listen() -> None:
    """Pass on what the launcher says of the hosts, as long as it is there."""
    while True:
        try:
            change = _core.elastic_change(_CHANGE_MS)
        except RuntimeError:
            return  # the launcher is gone, and its agent ends this process
        if change is None:
            continue
        term, flags = change
        # What was said of an earlier term has come true in this one.
        if term == _core.elastic_term():
            # A later change of a term has more flags, and all ranks count alike.
            notification_manager.handle_hosts_updated(term + flags / 8, flags)


def _start_listening() -> None:
    if _core.elastic_term() > 0:
        threading.Thread(target=_listen, name="rueda-elastic", daemon=True).start()


notification_manager.at_init(_start_listening)


# ---- A notice of preemption -----------------------------------------------------


def _wait_for_notice(bell: int) -> None:
    select.select([bell], [], [])
    print(
        f"rueda: rank {_core.rank()} was told to end (SIGTERM); it leaves at the next commit",
        file=sys.stderr,
        flush=True,
    )
    try:
        _core.elastic_leave()
    except RuntimeError:
        pass  # the launcher is gone, and its agent ends this process


def _start_noticing() -> None:
    """SIGTERM means that this process goes soon, unless its agent sends it."""
    if _core.elastic_term() == 0:
        return
    bell = _core.elastic_notice(int(os.environ.get("RUEDA_ELASTIC_AGENT", "0")))
    if bell >= 0:
        threading.Thread(
            target=_wait_for_notice, args=(bell,), name="rueda-notice", daemon=True
        ).start()


notification_manager.at_init(_start_noticing)

#: Horovod's name.
WorkerNotificationManager = NotificationManager


class State:
    """What survives a change of the ranks.

    ``bcast_object(obj)`` returns rank 0's object on all ranks, ``get_rank()``
    this process's rank; both are there unless a framework has its own.
    """

    def __init__(
        self,
        bcast_object: Callable[[Any], Any] = broadcast_object,
        get_rank: Callable[[], int] = basics.rank,
        **kwargs: Any,
    ) -> None:
        self._bcast_object = bcast_object
        self._rank = get_rank
        self._host_messages: queue.Queue[tuple[float, int]] = queue.Queue()
        self._last_updated_timestamp: float = 0
        self._reset_callbacks: list[Callable[[], None]] = []
        self._progress = 0

    def register_reset_callbacks(self, callbacks: Iterable[Callable[[], None]]) -> None:
        """Have these called, in order, each time the ranks have changed."""
        self._reset_callbacks.extend(callbacks)

    def on_reset(self) -> None:
        """The ranks have changed: forget what was told of it, and adapt."""
        self._host_messages = queue.Queue()
        self.reset()
        for callback in self._reset_callbacks:
            callback()

    def on_hosts_updated(self, timestamp: float, update_res: int) -> None:
        """Remember that hosts have come or gone; from any thread."""
        self._host_messages.put((timestamp, update_res))

    def commit(self, to: str | os.PathLike[str] | None = None) -> None:
        """Keep a copy of everything, then see whether hosts have come or gone.

        A step of the program ends here (:func:`step`). ``to`` is a folder, or a URL of fsspec,
        into which rank 0 writes the copy, for :meth:`load` of a later job. That takes as long
        as the writing does.
        """
        self.end_step()
        self.agree()
        self.save()
        self._advance(self._progress + 1)
        if to is not None and self._rank() == 0:
            parts = {name: pickle.dumps(part) for name, part in self.durable().items()}
            durable.write(os.fspath(to), parts)
        self.check_host_updates()

    def load(self, source: str | os.PathLike[str]) -> bool:
        """Take on the newest whole copy in this folder or URL; False: there is none.

        For the start of a job, before the training function is called; what rank 0 has
        loaded counts. Unpickles what is there, so a user who may write there can run code here.
        """
        found = durable.read_newest(os.fspath(source))
        if found is None:
            return False
        self.load_durable({name: pickle.loads(part) for name, part in found.items()})
        self.save()
        return True

    def durable(self) -> dict[str, Any]:
        """What the last copy holds, by name, to be pickled."""
        raise NotImplementedError(f"{type(self).__name__} cannot be written")

    def load_durable(self, parts: dict[str, Any]) -> None:
        """Take on what :meth:`durable` has returned."""
        raise NotImplementedError(f"{type(self).__name__} cannot be read")

    def end_step(self) -> None:
        """Take the numbers that the ranks have from here on; for subclasses that have to wait."""
        step()

    def agree(self) -> None:
        """Exchange what ranks have to know of each other before they save; for subclasses."""

    def _advance(self, progress: int) -> None:
        """Have the launcher know, if a rank is lost, whose state is the newest."""
        self._progress = progress
        _core.elastic_set_progress(progress)

    def check_host_updates(self) -> None:
        """Raise HostsUpdatedInterrupt, on all ranks, if rank 0 was told of a change.

        Every rank has to call it: what rank 0 knows is broadcast. Where ranks repair their job
        no rank is ever told of a change.
        """
        if _core.repairs():
            return
        last, newest, flags = self._last_updated_timestamp, self._last_updated_timestamp, 0
        while not self._host_messages.empty():
            timestamp, update = self._host_messages.get()
            if timestamp > last:
                newest = max(newest, timestamp)
                flags |= update
        last, newest, flags = self._bcast_object((last, newest, flags))
        self._last_updated_timestamp = newest
        if newest > last:
            self.agree()  # with those that leave
            raise HostsUpdatedInterrupt(flags == HostUpdateResult.removed)

    def save(self) -> None:
        """Keep a copy of everything in this process's memory."""
        raise NotImplementedError

    def restore(self) -> None:
        """Go back to the last copy."""
        raise NotImplementedError

    def sync(self) -> None:
        """Make all ranks equal to rank 0; every rank calls it."""
        raise NotImplementedError

    def reset(self) -> None:
        """Adapt to other ranks, before :meth:`sync`; for subclasses."""


class ObjectState(State):
    """Plain values as attributes: ``ObjectState(epoch=0).epoch``.

    A copy is of the references, so replace values instead of changing them. Ledgers
    (:class:`rueda.data.Ledger`) and samplers (:class:`rueda.elastic.ElasticSampler`) are kept
    with them.
    ``sync`` hands out rank 0's last *copy*, not what the attributes hold now.
    """

    def __init__(
        self,
        bcast_object: Callable[[Any], Any] = broadcast_object,
        get_rank: Callable[[], int] = basics.rank,
        **kwargs: Any,
    ) -> None:
        super().__init__(bcast_object=bcast_object, get_rank=get_rank)
        self._samples = {
            name: one for name, one in kwargs.items() if isinstance(one, (Ledger, ElasticSampler))
        }
        for name, one in self._samples.items():
            setattr(self, name, one)
            del kwargs[name]
        self._saved_state = kwargs
        self._set_attrs()

    def agree(self) -> None:
        for one in self._samples.values():
            one.agree()

    def save(self) -> None:
        for one in self._samples.values():
            one.save()
        self._saved_state = {name: getattr(self, name) for name in self._saved_state}

    def restore(self) -> None:
        for one in self._samples.values():
            one.restore()
        self._set_attrs()

    def sync(self) -> None:
        for one in self._samples.values():
            one.sync()
        if self._saved_state:
            self._saved_state = self._bcast_object(self._saved_state)
            self._set_attrs()

    def on_reset(self) -> None:
        for one in self._samples.values():
            one.reset()
        super().on_reset()

    def durable(self) -> dict[str, Any]:
        samples = {name: one.state_dict() for name, one in self._samples.items()}
        return {"values": self._saved_state, "ledgers": samples}

    def load_durable(self, parts: dict[str, Any]) -> None:
        for name, value in parts["ledgers"].items():
            self._samples[name].load_state_dict(value)
        # Values that the program has given up since are left out.
        kept = {name: parts["values"].get(name, value) for name, value in self._saved_state.items()}
        self._saved_state = kept
        self._set_attrs()

    def _set_attrs(self) -> None:
        for name, value in self._saved_state.items():
            setattr(self, name, value)


def _enter(state: State, skip_sync: bool) -> None:
    """Begin a term: make all ranks equal, unless all of them agree that they are.

    Some may come from a commit and others from a failure, and some are new, so no
    rank can tell alone.
    """
    if _core.elastic_term() == 0:
        if not skip_sync:
            state.sync()
        return
    views = allgather_object((skip_sync, state._progress), name="rueda.elastic.enter")
    if not all(skips for skips, _ in views):
        state.sync()
    # Rank 0's, which has come farthest. From the first on there is something to lose.
    state._advance(max(1, views[0][1]))


def _begin_repair(reset: Callable[[], None]) -> None:
    """From here on the others go on inside the step in which a rank dies, if they can.

    Ranks that have begun without it begin again. Where the job cannot repair itself
    rank 0 says why, and nothing else is changed.
    """
    if _core.repairs() or (basics.is_initialized() and basics.size() == 1):
        return
    if _core.elastic_term() > 0:
        if basics.rank() == 0:
            print(
                "rueda: the ranks of this job come and go (--min-np), so they do not repair it: "
                "after a death all go back to the last commit",
                file=sys.stderr,
                flush=True,
            )
        return
    os.environ["RUEDA_REPAIR"] = "1"
    reset()


def run_fn(
    func: Callable[..., Any], reset: Callable[[], None], repair: bool = False
) -> Callable[..., Any]:
    """Return func with a loop around it that goes on after a change of the ranks.

    The function takes a :class:`State` first. If a rank is lost it goes back to
    the last commit; if hosts come or go it goes on with what it has. ``reset``
    makes a new job of the ranks that there are then. With ``repair`` the ranks first
    try to go on inside the step, without the one that is lost.
    """

    @functools.wraps(func)
    def wrapper(state: State, *args: Any, **kwargs: Any) -> Any:
        if os.environ.get("HOROVOD_GLOO_RENDEZVOUS_ADDR"):
            notification_manager.init()
        if repair:
            _begin_repair(reset)
        notification_manager.register_listener(state)
        skip_sync = False
        try:
            while True:
                try:
                    _enter(state, skip_sync)
                    return func(state, *args, **kwargs)
                except HorovodInternalError:
                    state.restore()
                    skip_sync = False
                except HostsUpdatedInterrupt as change:
                    skip_sync = change.skip_sync
                reset()
                state.on_reset()
        finally:
            notification_manager.remove_listener(state)

    return wrapper


def decorate(
    func: Callable[..., Any] | None,
    reset: Callable[[], None],
    repair: bool,
    translate: Callable[[Callable[..., Any]], Callable[..., Any]] = lambda func: func,
) -> Callable[..., Any]:
    """Return what ``run`` of a framework returns: for ``@run`` and for ``@run(repair=True)``.

    ``translate`` gives what the framework raises for a lost rank the type that it has here.
    """

    def with_loop(func: Callable[..., Any]) -> Callable[..., Any]:
        return run_fn(translate(func), reset, repair)

    return with_loop if func is None else with_loop(func)


RUN_DOC = """Decorate a training function whose first argument is a state.

    A lost rank brings it back to the last ``state.commit()``; hosts that come
    or go let it go on from where it is. Each time it is called again, with the
    ranks that there are then.

    With ``@run(repair=True)``, as with ``RUEDA_REPAIR=1``, the others go on inside the step
    in which a rank dies, and the function sees nothing but a smaller ``size()`` from the next
    step on. Steps end at :func:`step`, at ``DistributedOptimizer.step()`` of PyTorch and at
    ``state.commit()``. The ranks of a job that has begun without it leave it and begin a new
    one when the function is called. docs/failure.md says what is not covered.
    """
