# SPDX-License-Identifier: Apache-2.0
"""An optimizer that steps by the gradients of all ranks.

    optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())

The result is an object of a class that is made here, once for each class of
optimizers: a subclass of it, of the same name, so that schedulers, scalers and
``isinstance`` take it for what it was.
"""

from __future__ import annotations

import functools
import os
import sys
import warnings
import weakref
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Callable

import torch

from rueda import _core
from rueda.common.agreement import Agreement
from rueda.common.process_sets import ProcessSet, global_process_set

from . import mpi_ops, parameters
from .chosen import WAYS, MemoryChoice
from .compression import Compression
from .digests import digest_of
from .functions import broadcast_in_set, broadcast_object
from .gradients import Settings
from .horovod_names import HorovodNames
from .mpi_ops import Adasum, Average
from .reducer import Reducer

__all__ = ["DistributedOptimizer"]

# Scripts know distributed optimizers by the module of their class.
_MODULE = "horovod.torch.optimizer"

_REMEDY = (
    "hvd.broadcast_parameters(model.state_dict(), root_rank=0). Or make the optimizer by "
    "hvd.DistributedOptimizer(..., broadcast=True)"
)
_live: weakref.WeakSet[_Distributed] = weakref.WeakSet()


class _Distributed(HorovodNames):
    """What is in front of an optimizer's own methods; see :func:`DistributedOptimizer`."""

    _origin: Callable[[], Any] | None = None  # a weak reference

    def __init__(self, *_: Any, **__: Any) -> None:
        """Not the way to make one; :func:`DistributedOptimizer` does not come here."""
        raise TypeError(
            f"{type(self).__name__} is distributed and is not made from parameters: make the "
            "plain optimizer first, and then hvd.DistributedOptimizer(optimizer, "
            "named_parameters=model.named_parameters())"
        )

    def _distribute(self, options: dict[str, Any]) -> None:
        """Become distributed, when all that the optimizer itself has is here."""
        self._options = options
        self.op: int = options["op"]
        self.backward_passes_per_step: int = options["backward_passes_per_step"]
        self.gradient_predivide_factor: float = options["gradient_predivide_factor"]
        self.sparse_as_dense: bool = options["sparse_as_dense"]
        self.process_set: ProcessSet = options["process_set"]
        self._compression = options["compression"]
        self._given_names = parameters.given_names(options["named_parameters"])
        parameters.check_all_named(self._given_names, self.param_groups)
        self._parameter_names = self._given_names or parameters.default_names(self.param_groups)
        self._synchronized = False
        self._should_synchronize = True
        self._agreement = Agreement(self.process_set)
        self._reducer = self._make_reducer()
        self._memory = MemoryChoice(options["gradients"], self.process_set)
        _live.add(self)

    def _make_reducer(self) -> Reducer | None:
        """None where there is no other rank to reduce with."""
        is_alone = mpi_ops.size() == 1 and os.environ.get("HOROVOD_ELASTIC") != "1"
        if is_alone or not self.process_set.included():
            return None
        reducer = Reducer(
            Settings(
                compression=self._compression,
                passes=self.backward_passes_per_step,
                op=self.op,
                predivide=self.gradient_predivide_factor,
                sparse_as_dense=self.sparse_as_dense,
                only_sparse=isinstance(self, torch.optim.SparseAdam),
                process_set=self.process_set,
            )
        )
        for group in self.param_groups:
            reducer.add((param, self._parameter_names[param]) for param in group["params"])
        groups = self._options["groups"]
        if isinstance(groups, int):
            groups = self._groups_of_rank_0(reducer, groups)
        for group in groups or ():
            reducer.join(list(group))
        return reducer

    def _groups_of_rank_0(self, reducer: Reducer, count: int) -> list[list[torch.Tensor]]:
        """The ranks may list their parameters in different orders."""
        param_of = {gradient.name: gradient.param for gradient in reducer.gradients}
        names = broadcast_object(
            list(param_of),
            root_rank=min(self.process_set.ranks or [0]),
            name="optimizer.groups",
            process_set=self.process_set,
        )
        return [
            [param_of[name] for name in part if name in param_of]
            for part in parameters.split_evenly(names, count)
        ]

    # ---- The optimizer's own methods ----------------------------------------

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Reduce the gradients, unless that was done, and step.

        A closure is called first, and its gradients are reduced after it.
        """
        is_to_reduce = self._should_synchronize
        if is_to_reduce and self._synchronized:
            warnings.warn(
                "optimizer.step() called without optimizer.skip_synchronize() after "
                "optimizer.synchronize(): the gradients are reduced a second time. Put the step "
                "into `with optimizer.skip_synchronize():`",
                stacklevel=2,
            )
        elif is_to_reduce and self._reducer is not None and _is_step_of_scaler(self):
            self._reducer.warn_of_scaler()
        if is_to_reduce and closure is not None:
            closure = self._reducing(closure)
        elif is_to_reduce:
            self.synchronize()
        self._synchronized = False
        self._tell_schedulers()
        done = super().step() if closure is None else super().step(closure)
        _core.step()
        return done

    # torch puts hooks around the step of a class unless it has them. Those
    # around the optimizer's own step are enough.
    step.hooked = True  # type: ignore[attr-defined]

    def _tell_schedulers(self) -> None:
        """Let those of the optimizer that this was made of know that there was a step."""
        origin = self._origin() if self._origin is not None else None
        if origin is not None:
            origin._opt_called = True

    def _reducing(self, closure: Callable[[], Any]) -> Callable[[], Any]:
        def reduced() -> Any:
            loss = closure()
            self.synchronize()
            self._synchronized = False
            if isinstance(self, torch.optim.LBFGS) and self._reducer is not None:
                # It decides by the loss when to stop, as all ranks have to.
                loss = mpi_ops.allreduce(
                    torch.as_tensor(loss).detach(),
                    name="optimizer.loss",
                    op=Average,
                    process_set=self.process_set,
                )
            return loss

        return reduced

    def zero_grad(self, *args: Any, **kwargs: Any) -> None:
        """As the optimizer's own; an AssertionError while gradients are being reduced."""
        if self._reducer is not None and self._reducer.is_busy:
            raise AssertionError(
                "optimizer.zero_grad() after loss.backward(), while the gradients are being "
                "reduced: call optimizer.step() or optimizer.synchronize() in between"
            )
        if self._reducer is None or not self._reducer.zero():
            super().zero_grad(*args, **kwargs)

    def load_state_dict(self, *args: Any, **kwargs: Any) -> None:
        """As the optimizer's own; waits for what is being reduced, and forgets it."""
        self._synchronized = False
        self._should_synchronize = True
        if self._reducer is not None:
            with torch.no_grad():
                self._reducer.abandon()
        super().load_state_dict(*args, **kwargs)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """As the optimizer's own; the group's parameters are reduced, too.

        Their names are those of ``named_parameters`` where it has them.
        """
        super().add_param_group(param_group)
        if not hasattr(self, "_reducer"):
            return  # the optimizer is still being made
        number = len(self.param_groups) - 1
        made = parameters.default_names([self.param_groups[number]], number)
        names = {param: self._given_names.get(param, name) for param, name in made.items()}
        self._parameter_names.update(names)
        if self._reducer is not None:
            self._reducer.add(names.items())

    def __copy__(self) -> Any:
        """It has the same parameters, and one reduction of their gradients is enough."""
        made = object.__new__(type(self))
        made.__dict__.update(_own_of(self))
        return made

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Deep copies and pickles are distributed, too: for the copied parameters."""
        names = [(name, param) for param, name in self._parameter_names.items()]
        options = {**self._options, "named_parameters": names}
        if options["process_set"] is global_process_set:
            options["process_set"] = None
        return _rebuild, (type(self).__bases__[1], options), self.__getstate__()

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        options = self.__dict__.pop("_options_to_be", None)
        if options is not None:
            self._distribute(options)

    # ---- What comes with being distributed ----------------------------------

    def synchronize(self) -> None:
        """Wait until the gradients of all parameters are reduced, on all ranks."""
        if self._reducer is not None:
            with torch.no_grad():
                self._reducer.finish()
                self._check_parameters()
                self._memory.note_step(self._reducer)
        self._synchronized = True

    def _check_parameters(self) -> None:
        """Warn if ranks have different parameters, in those steps in which they compare.

        Whatever ranks come here, they have reduced gradients together before.
        """
        if not self._agreement.is_due():
            return
        others = self._params_of_other_sets()
        digests = {
            name: digest_of(param)
            for param, name in self._parameter_names.items()
            if id(param) not in others
        }
        words = self._agreement.compare(digests, _REMEDY)
        if words is not None:
            warnings.warn(words, stacklevel=4)

    def _params_of_other_sets(self) -> set[int]:
        """Parameters that are also trained by the ranks of another process set may differ."""
        return {
            id(param)
            for other in list(_live)
            if other.process_set is not self.process_set
            for param in other._parameter_names
        }

    def _broadcast(self) -> None:
        """Overwrite parameters, settings and state by those of the set's lowest rank."""
        if self.process_set.included() and (self.process_set.size() or 1) > 1:
            named = [(name, param) for param, name in self._parameter_names.items()]
            broadcast_in_set(self, named, self.process_set)

    @contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """Within it ``step()`` takes the gradients as they are.

        optimizer.synchronize()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        with optimizer.skip_synchronize():
            optimizer.step()
        """
        self._should_synchronize = False
        try:
            yield
        finally:
            self._should_synchronize = True

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Within it backward passes add to gradients, and nothing is reduced.

            with optimizer.no_sync():
                for batch in batches[:-1]:
                    loss_of(batch).backward()
            loss_of(batches[-1]).backward()  # reduces what was added up
            optimizer.step()

        These passes do not count for ``backward_passes_per_step``.
        """
        if self._reducer is None:
            yield
            return
        with self._reducer.paused():
            yield

    def set_backward_passes_per_step(self, passes: int) -> None:
        """From now on reduce after this many backward passes."""
        _check_passes(passes)
        self.backward_passes_per_step = self._options["backward_passes_per_step"] = passes
        if self._reducer is not None:
            self._reducer.set_passes(passes)


def _is_step_of_scaler(optimizer: torch.optim.Optimizer) -> bool:
    """Is a GradScaler the caller of step()? torch does not count its changes as changes."""
    if hasattr(optimizer, "grad_scale"):
        return True  # it leaves that to the optimizer, and has only looked for infinities
    caller: Any = sys._getframe(2)
    for _ in range(2):  # a scheduler's step may be in between
        if caller is not None and caller.f_code.co_name == "_maybe_opt_step":
            return True
        caller = caller and caller.f_back
    return False


@functools.cache
def _class_of(front: type, base: type) -> type:
    """The class of distributed optimizers of this class."""
    own = {"__module__": _MODULE, "__qualname__": base.__qualname__, "__doc__": base.__doc__}
    return type(base.__name__, (front, base), own)


def _own_of(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """What an optimizer has. The step that a scheduler puts into it belongs to it alone."""
    return {key: value for key, value in optimizer.__dict__.items() if key != "step"}


def _wrap(front: type, optimizer: torch.optim.Optimizer, options: dict[str, Any]) -> Any:
    """A distributed optimizer with all that this one has, its state included.

    The constructor is not called again: it may want other arguments, and what
    it has made of them is here already.
    """
    made = object.__new__(_class_of(front, type(optimizer)))
    made.__dict__.update(
        _own_of(optimizer),
        state=defaultdict(dict, optimizer.state),
        param_groups=list(optimizer.param_groups),
    )
    # A scheduler that was made before this looks at the optimizer that it was given.
    made._origin = weakref.ref(optimizer)
    made._distribute(options)
    return made


def _check_passes(passes: int) -> None:
    if passes <= 0:
        raise ValueError(f"backward_passes_per_step has to be 1 or more, not {passes}")


def DistributedOptimizer(  # noqa: N802 -- the name that scripts use
    optimizer: torch.optim.Optimizer,
    named_parameters: Iterable[tuple[str, torch.Tensor]] | None = None,
    compression: Any = Compression.none,
    backward_passes_per_step: int = 1,
    op: int = Average,
    gradient_predivide_factor: float = 1.0,
    num_groups: int = 0,
    groups: int | list[list[torch.Tensor]] | None = None,
    sparse_as_dense: bool = False,
    process_set: ProcessSet = global_process_set,
    broadcast: bool = False,
    gradients: str | None = None,
) -> Any:
    """Return an optimizer like this one that steps by the gradients of all ranks.

    Each gradient is handed over as soon as the backward pass has computed it, so
    that the ranks exchange gradients while they compute others. ``step()`` waits
    for all of them.

    The gradients of all ranks are averaged, unless ``op`` says otherwise. The result is an
    object of the same class; the given optimizer is not to be used any more.

    :param named_parameters: names that are the same on all ranks, as
        ``model.named_parameters()`` gives them. Without them the places of
        parameters in the optimizer are their names.
    :param compression: what gradients are made to before they are reduced.
    :param backward_passes_per_step: backward passes whose gradients are added
        up (not averaged) before they are reduced, once.
    :param op: Average, Sum or Adasum. Adasum reduces not the gradients, but what
        each rank's own step would have changed.
    :param gradient_predivide_factor: an average divides by this before the sum,
        and by the rest after it.
    :param num_groups: the old name of a number of groups.
    :param groups: so many groups of parameters, or lists of parameters, that are
        reduced together, when the last of a group is ready.
    :param sparse_as_dense: reduce sparse gradients as dense ones.
    :param process_set: reduce among these ranks. On others nothing is reduced.
    :param broadcast: overwrite parameters, settings and state now by those of rank 0, or of
        the lowest rank of the process set. Buffers of a model, such as running statistics,
        are not known here. In an elastic job that is left to ``state.sync()``.
    :param gradients: "shared" puts gradients into memory that all ranks of the host share,
        after the third step; "auto" tries both ways then, and takes the faster; "private",
        as by default, does not. The same on all ranks.
    :raises TypeError: this is not an optimizer of ``torch.optim``.
    :raises ValueError: it is distributed already, or an argument is wrong.

    ``step()`` and ``synchronize()`` raise :class:`HorovodInternalError` if ranks do not agree
    or one of them is lost.
    """
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(
            f"DistributedOptimizer takes an optimizer of torch.optim, not a "
            f"{type(optimizer).__name__}: make one first, such as "
            "torch.optim.SGD(model.parameters(), lr=0.01)"
        )
    if isinstance(optimizer, _Distributed):
        raise ValueError("this optimizer is distributed already; give the one it was made of")
    if gradient_predivide_factor != 1.0 and op != Average:
        raise ValueError("gradient_predivide_factor is for op=Average only")
    _check_passes(backward_passes_per_step)
    if num_groups != 0:
        warnings.warn("num_groups is now called groups", DeprecationWarning, stacklevel=2)
        groups = num_groups if groups is None else groups
    parameters.check_groups(groups)
    if gradients not in WAYS:
        raise ValueError(f'gradients is "shared", "auto" or "private", not {gradients!r}')
    options = {
        "named_parameters": None if named_parameters is None else list(named_parameters),
        "compression": compression,
        "backward_passes_per_step": backward_passes_per_step,
        "op": op,
        "gradient_predivide_factor": gradient_predivide_factor,
        "groups": groups,
        "sparse_as_dense": sparse_as_dense,
        "process_set": process_set,
        "gradients": gradients,
    }
    made = _wrap(_front_of(op, process_set), optimizer, options)
    # Ranks that survived do not come here again when others join an elastic job.
    if broadcast and os.environ.get("HOROVOD_ELASTIC") != "1":
        made._broadcast()
    return made


DistributedOptimizer.__module__ = _MODULE

# The class that scripts for Horovod ask isinstance() for.
_DistributedOptimizer = _Distributed


def __getattr__(name: str) -> Any:
    if name == "_DistributedAdasumOptimizer":
        from .adasum import DeltaOptimizer

        return DeltaOptimizer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _front_of(op: int, process_set: ProcessSet) -> type:
    if op != Adasum or mpi_ops.size() == 1:
        return _Distributed
    if process_set is not global_process_set:
        raise NotImplementedError("Adasum is for all ranks, not for a process set")
    from .adasum import DeltaOptimizer

    return DeltaOptimizer


def _rebuild(base: type, options: dict[str, Any]) -> Any:
    """An object whose state comes next; see __reduce_ex__."""
    options = dict(options)
    options["process_set"] = options["process_set"] or global_process_set
    options.setdefault("gradients", None)  # pickled by an older version
    made = object.__new__(_class_of(_front_of(options["op"], options["process_set"]), base))
    made.__dict__["_options_to_be"] = options
    return made
