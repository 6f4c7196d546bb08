# SPDX-License-Identifier: Apache-2.0
"""init and shutdown of a rank, its numbers, and the end of its process."""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
from collections.abc import Sequence
from typing import Any, Callable, NamedTuple, NoReturn

from rueda import _core, places

from . import excepthook
from . import process_sets as sets
from .process_sets import ProcessSet, is_communicator

__all__ = ["Adasum", "Average", "HorovodBasics", "Max", "Min", "Product", "Sum", "basics"]

# How the numbers of several ranks become one.

#: The sum of all ranks, divided by their number; the default of reductions.
Average = 0
#: The sum of all ranks.
Sum = 1
#: An adaptive sum: vectors that agree are averaged, and orthogonal ones added.
Adasum = 2
#: The least number of all ranks, element by element.
Min = 3
#: The greatest number of all ranks, element by element.
Max = 4
#: The product of all ranks, element by element.
Product = 5

_DYNAMIC = "dynamic"


class _Place(NamedTuple):
    """What ``_core.init`` is told of this rank's place."""

    rank: int = -1
    size: int = -1
    store: str | None = None
    exchange: Any = None
    timeout_ms: int = 0  # 0: as the settings say


def _place_of(comm: Any) -> _Place:
    """What only Python can find out; most places are found by the library."""
    if is_communicator(comm):
        return _Place(comm.Get_rank(), comm.Get_size(), None, lambda data: comm.bcast(data, 0))
    rank = places.find_torchrun()
    if rank is not None:
        exchange = places.torch_exchange()
        return _Place(exchange=lambda data: exchange(rank, data))
    found = places.find_tf_config()
    return _Place() if found is None else _Place(found.rank, found.size, found.store)


def _is_list_of_ranks(value: Any) -> bool:
    return isinstance(value, Sequence) and all(hasattr(rank, "__index__") for rank in value)


def _check_sets(given: Any) -> list[ProcessSet]:
    """The sets of ``init(process_sets=...)``; "dynamic" is known to the environment then."""
    if given is None:
        return []
    if isinstance(given, str):
        if given.lower() != _DYNAMIC:
            raise ValueError(f'process_sets is a list of sets or "{_DYNAMIC}", not "{given}"')
        os.environ["HOROVOD_DYNAMIC_PROCESS_SETS"] = "1"
        return []
    if not isinstance(given, Sequence) or not all(isinstance(one, ProcessSet) for one in given):
        raise ValueError(f"process_sets is a list of ProcessSet, not {given!r}")
    if any(one.mpi_comm is not None for one in given):
        raise NotImplementedError("process sets are made of ranks, not of communicators")
    return list(given)


def _text_of(wanted: list[ProcessSet]) -> str:
    """Sets as the settings have them: "0,2;1,3"."""
    if not all(one.ranks for one in wanted):
        raise ValueError("a process set has 1 rank or more")
    return ";".join(",".join(map(str, one.ranks or [])) for one in wanted)


def _leave(why: ValueError) -> NoReturn:
    """End a process of an elastic job for which the launcher has no place any more."""
    print(f"rueda: {why}; this process ends", file=sys.stderr, flush=True)
    raise SystemExit(0)


def _name_place() -> None:
    """Say in the environment who this process is now, in a job whose ranks change."""
    for name in ("rank", "size", "local_rank", "local_size", "cross_rank", "cross_size"):
        number = str(getattr(_core, name)())
        os.environ[f"RUEDA_{name.upper()}"] = number
        os.environ[f"HOROVOD_{name.upper()}"] = number


class HorovodBasics:
    """Functions that every framework's module offers; there is one instance."""

    Average, Sum, Adasum, Min, Max, Product = Average, Sum, Adasum, Min, Max, Product

    def __init__(self) -> None:
        self._comm: Any = None
        self._process = 0  # that is the rank, and not a child of it
        self._is_registered = False

    # ---- Beginning and end --------------------------------------------------

    def init(self, comm: Any = None, process_sets: Any = None) -> None:
        """Join the job and wait for all other ranks of it.

        ``comm`` is a communicator of mpi4py's, whose processes are then the job;
        a list of ranks is accepted and means all of them. ``process_sets`` is a
        list of :class:`ProcessSet`, the same on all ranks, or ``"dynamic"``.

        Does nothing if there is a job already. :class:`ValueError` names the
        ranks that did not come, or says what is wrong.
        """
        if comm is not None and not is_communicator(comm) and not _is_list_of_ranks(comm):
            raise ValueError(f"comm is a list of ranks or a communicator, not {comm!r}")
        wanted = _check_sets(process_sets)
        if self._process != os.getpid():
            sets.end()  # a child's copy of its parent's
        if self._process != os.getpid() or not _core.is_initialized():
            self._open(_place_of(comm), wanted, comm)
        self._be_there(wanted)

    def init_at(
        self, rank: int, size: int, timeout_ms: int, exchange: Callable[[bytes], bytes]
    ) -> None:
        """Join the job at a place that the caller knows; ``exchange`` passes rank 0's bytes.

        For bindings that have found their place, and a way to the other ranks, themselves.
        """
        sets.end()
        self._open(_Place(rank, size, None, exchange, timeout_ms), [], None)
        self._be_there([])

    def _be_there(self, wanted: list[ProcessSet]) -> None:
        """There is a context: begin what stands on it."""
        self._begin_sets(wanted)
        if not self._is_registered:
            atexit.register(self.shutdown)
            self._is_registered = True
        excepthook.install()

    def _open(self, place: _Place, wanted: list[ProcessSet], comm: Any) -> None:
        # Made with it, where all ranks compare their lists before the first.
        process_sets = _text_of(wanted) if wanted else None
        try:
            _core.init(
                place.rank, place.size, place.timeout_ms, place.store, place.exchange, process_sets
            )
        except ValueError as error:
            if _core.elastic_is_refused():
                _leave(error)
            raise
        self._process = os.getpid()
        if _core.elastic_term() > 0:
            _name_place()
        self._comm = comm if is_communicator(comm) else None

    def _begin_sets(self, wanted: list[ProcessSet]) -> None:
        try:
            sets.begin(wanted, bool(_core.has_dynamic_sets()))
        except RuntimeError as error:
            raise ValueError(f"the process sets could not be made: {error}") from error

    def shutdown(self) -> None:
        """Leave the job. Other ranks that still need this one get an error."""
        sets.end()
        _core.shutdown()
        self._comm = None

    is_initialized = staticmethod(_core.is_initialized)

    # ---- Who and where ------------------------------------------------------

    rank = staticmethod(_core.rank)
    size = staticmethod(_core.size)
    local_rank = staticmethod(_core.local_rank)
    local_size = staticmethod(_core.local_size)
    cross_rank = staticmethod(_core.cross_rank)
    cross_size = staticmethod(_core.cross_size)
    is_homogeneous = staticmethod(_core.is_homogeneous)

    def is_master(self) -> bool:
        """Is this rank 0, which writes files and messages for all?"""
        return _core.rank() == 0

    # ---- Timeline -----------------------------------------------------------

    def start_timeline(self, file_path: str, mark_cycles: bool = False) -> None:
        """Write a trace of what happens on all ranks from now on; rank 0's call counts.

        If there is one already it ends, and goes on in this file.
        """
        if not _core.has_timeline():
            raise ValueError(
                "set HOROVOD_TIMELINE=DYNAMIC before init() to start timelines from a program"
            )
        _core.timeline_start(file_path, mark_cycles)

    def stop_timeline(self) -> None:
        """End the trace, if there is one; rank 0 waits until its file is whole."""
        _core.rank()
        _core.timeline_stop()

    # ---- What there is ------------------------------------------------------

    def mpi_enabled(self) -> bool:
        """Was this job started by MPI?"""
        return self._comm is not None or places.is_mpi()

    def gloo_enabled(self) -> bool:
        """Was it started in another way? (No Gloo is involved.)"""
        return not self.mpi_enabled()

    def mpi_threads_supported(self) -> bool:
        """May several threads do collectives? :class:`ValueError` without MPI."""
        _core.rank()
        if not self.mpi_enabled():
            raise ValueError("this job was not started by MPI")
        return True

    def mpi_built(self) -> bool:
        """Can jobs be started by MPI? Always."""
        return True

    def gloo_built(self) -> bool:
        """Can jobs be started without MPI? Always. (No Gloo is involved.)"""
        return True

    def nccl_built(self) -> int:
        """Always 0, also where NCCL carries tensors on GPUs: it is opened at run time.

        Scripts ask this to learn whether Adasum on GPUs averages the ranks of each host
        first, and then multiply their learning rate by :func:`local_size`. Here Adasum
        combines all ranks one by one.
        """
        return 0

    def ddl_built(self) -> bool:
        """Is IBM's DDL there? Never."""
        return False

    def ccl_built(self) -> bool:
        """Is oneCCL there? Never."""
        return False

    def cuda_built(self) -> bool:
        """Can the driver of NVIDIA's GPUs be loaded here? Nothing is built against it.

        The library is the one that tensors on a GPU need: that of ``RUEDA_CUDA_LIB``, or
        ``libcuda.so.1``. No GPU is opened.
        """
        try:
            ctypes.CDLL(os.environ.get("RUEDA_CUDA_LIB") or "libcuda.so.1")
        except OSError:
            return False
        return True

    def rocm_built(self) -> bool:
        """Are GPUs of AMD supported? No."""
        return False

    def _get_process_set_ids_and_ranks(self) -> dict[int, list[int]]:
        return sets.ids_and_ranks()


#: The one instance, for all frameworks of the process.
basics = HorovodBasics()
