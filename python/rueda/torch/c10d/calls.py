# SPDX-License-Identifier: Apache-2.0
"""From the tensors of a call to operations of the library.

A :class:`Call` collects the operations that one call of ``torch.distributed`` needs, the
memory that they use, and what is to be done when all have ended: results that the library
cannot write to their places, because these have gaps or reductions of their own, are
copied there.

Shapes are such that ranks which do not agree get an error: the library compares all
dimensions but the number of rows of what is gathered.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, Callable

import torch
import torch.distributed as dist

from rueda import _core
from rueda.torch.memory import is_reachable, on_host
from rueda.torch.tensors import DTYPES, refuse, take

__all__ = ["Call", "reduction_of"]

Tensor = torch.Tensor

_NO_DATA = _core.DTYPE_UINT8
_ANY_PEER = -1
_Op = dist.ReduceOp.RedOpType

_BY_LIBRARY = {
    _Op.SUM: _core.REDUCTION_SUM,
    _Op.AVG: _core.REDUCTION_AVERAGE,
    _Op.MIN: _core.REDUCTION_MIN,
    _Op.MAX: _core.REDUCTION_MAX,
    _Op.PRODUCT: _core.REDUCTION_PRODUCT,
}
# What is done here, row by row.
_BY_ROW: dict[Any, Callable[[Tensor, Tensor], Tensor]] = {
    _Op.MIN: torch.minimum,
    _Op.MAX: torch.maximum,
    _Op.PRODUCT: torch.mul,
    _Op.BAND: torch.bitwise_and,
    _Op.BOR: torch.bitwise_or,
    _Op.BXOR: torch.bitwise_xor,
}


def reduction_of(op: Any) -> Any:
    """The kind of a ``ReduceOp``, or an exception if it is not supported."""
    kind = getattr(op, "op", op)
    if kind not in _BY_LIBRARY and kind not in _BY_ROW:
        raise ValueError(
            f"{op} is not supported by the back end rueda; it has SUM, AVG, MIN, MAX, PRODUCT, "
            "BAND, BOR and BXOR"
        )
    return kind


def _check_place(tensor: Tensor) -> None:
    if tensor.layout is not torch.strided or not is_reachable(tensor):
        raise refuse(tensor, None)


def _where(tensor: Tensor) -> dict[str, Any]:
    """What submit() wants to know of numbers on a GPU."""
    if not tensor.is_cuda:
        return {}
    stream = torch.cuda.current_stream(tensor.device).cuda_stream
    return {"device": tensor.device.index, "stream": stream}


def _as_numbers(tensor: Tensor) -> Tensor:
    """Complex numbers as pairs."""
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def _rows_reduced(kind: Any, rows: Tensor) -> Tensor:
    return reduce(_BY_ROW[kind], rows.unbind(0))


class Call:
    """The operations of one call, in their order."""

    def __init__(self, size: int, ranks: Sequence[int], rank: int) -> None:
        self._size = size
        self._ranks = ranks
        self._rank = rank
        self.orders: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
        self.keep: list[Any] = []
        self._gpu: torch.device | None = None  # of the tensors, if they are on one
        self._after: list[Callable[[], None]] = []

    def finish(self) -> None:
        """All operations have ended."""
        with torch.no_grad():
            for step in self._after:
                step()
        if self._after and self._gpu is not None:
            # Results are complete for every stream, on whichever thread this runs.
            torch.cuda.current_stream(self._gpu).synchronize()

    # ---- Memory -------------------------------------------------------------

    def _check(self, tensor: Tensor) -> None:
        _check_place(tensor)
        if tensor.is_cuda:
            self._gpu = tensor.device

    def _source(self, tensor: Tensor) -> Tensor:
        """Its numbers one after another."""
        self._check(tensor)
        found = tensor.detach().resolve_neg().contiguous().view(-1)
        self.keep.append(found)
        return found

    def _target(self, tensor: Tensor, source: Tensor | None = None) -> Tensor:
        """Memory for as many numbers: its own, unless it has gaps or is the source's."""
        self._check(tensor)
        own = tensor.detach()
        if own.is_contiguous() and not own.is_neg() and not _overlap(own, source):
            target = own.view(-1)
        else:
            target = torch.empty(own.numel(), dtype=own.dtype, device=own.device)
            self._after.append(lambda: _copy(own, target))
        self.keep.append(target)
        return target

    def _in_place(self, tensor: Tensor) -> Tensor:
        """Memory that is read and written."""
        source = self._source(tensor)
        own = tensor.detach()
        if source.data_ptr() != own.data_ptr():
            self._after.append(lambda: _copy(own, source))
        return source

    def _add(
        self, kind: int, source: Tensor, target: Tensor, shape: tuple[int, ...], **more: Any
    ) -> None:
        """Numbers that are moved, whatever they mean; the two are of one type."""
        dtype = DTYPES.get(source.dtype)
        if dtype is None:
            bytes_each = source.element_size()
            shape = (*shape[:-1], shape[-1] * bytes_each)
            dtype = _NO_DATA
        send, recv = source.data_ptr(), target.data_ptr()
        self.orders.append(((kind, dtype, send, recv, shape), {**more, **_where(source)}))

    def _add_reduced(
        self, kind: int, source: Tensor, target: Tensor, shape: tuple[int, ...], op: Any
    ) -> None:
        dtype = DTYPES.get(source.dtype)
        if dtype is None:
            raise refuse(source, None)
        send, recv = source.data_ptr(), target.data_ptr()
        more = {"reduction": _BY_LIBRARY[op], **_where(source)}
        self.orders.append(((kind, dtype, send, recv, shape), more))

    def _like(self, tensor: Tensor, count: int) -> Tensor:
        found = torch.empty(count, dtype=tensor.dtype, device=tensor.device)
        self.keep.append(found)
        return found

    # ---- Reductions ---------------------------------------------------------

    def allreduce(self, tensor: Tensor, op: Any) -> None:
        """In place."""
        if tensor.is_sparse:
            self._allreduce_sparse(tensor, op)
            return
        numbers = _as_numbers(tensor)
        if op in _BY_LIBRARY:
            data = self._in_place(numbers)
            self._add_reduced(_core.KIND_ALLREDUCE, data, data, (data.numel(),), op)
            return
        source = self._source(numbers)
        rows = self._like(source, self._size * source.numel()).view(self._size, -1)
        self._add(_core.KIND_ALLGATHER, source, rows, (1, source.numel()))
        self._after.append(lambda: _copy(numbers, _rows_reduced(op, rows)))

    def _allreduce_sparse(self, tensor: Tensor, op: Any) -> None:
        """Each rank brings as many rows as it has."""
        if op != _Op.SUM:
            raise ValueError("sparse tensors are reduced by SUM only")
        mine = tensor.detach().coalesce()
        indices = mine.indices().t().contiguous()
        values = mine.values().contiguous()
        if values.dtype not in DTYPES:
            raise refuse(values, None)
        places, numbers = self._gather_rows(indices), self._gather_rows(values)

        def finish() -> None:
            total = torch.sparse_coo_tensor(places().t(), numbers(), mine.shape)
            tensor.copy_(total.coalesce())

        self._after.append(finish)

    def _gather_rows(self, tensor: Tensor) -> Callable[[], Tensor]:
        """Rows of a number that only their rank knows; the result is there in the end.

        The library makes memory on the host for them.
        """
        room = _core.room()
        self._check(tensor)
        home = tensor.device
        tensor = on_host(tensor)
        shape = tuple(tensor.shape)
        dtype = DTYPES[tensor.dtype]
        order = (_core.KIND_ALLGATHER, dtype, tensor.data_ptr(), 0, shape)
        self.orders.append((order, {"room": room}))
        self.keep.append((tensor, room))
        return lambda: take(room, dtype, tensor, 0).to(home)

    def reduce(self, tensor: Tensor, op: Any, root: int) -> None:
        """All ranks compute the result, and only the root keeps it."""
        self.allreduce(tensor if root == self._rank else tensor.detach().clone(), op)

    def reduce_scatter(self, output: Tensor, source: Tensor, op: Any) -> None:
        """Each rank gets one of equal pieces."""
        output, source = _as_numbers(output), _as_numbers(source)
        count = output.numel()
        self._check_share(source.numel(), count, output, source)
        numbers = self._source(source)
        if op in (_Op.SUM, _Op.AVG):
            target = self._target(output, numbers)
            shape = (self._size, count)
            self._add_reduced(_core.KIND_REDUCE_SCATTER, numbers, target, shape, op)
            return
        rows = self._like(numbers, self._size * count).view(self._size, count)
        self._add(_core.KIND_ALLTOALL, numbers, rows, (self._size, count))
        self._after.append(lambda: _copy(output, _rows_reduced(op, rows)))

    def reduce_scatter_list(self, output: Tensor, sources: Sequence[Tensor], op: Any) -> None:
        """Pieces may have different sizes; then each rank adds up its own."""
        if len(sources) != self._size:
            raise ValueError(f"{len(sources)} tensors to scatter among {self._size} ranks")
        if all(one.numel() == output.numel() for one in sources):
            self.reduce_scatter(output, _joined(sources), op)
            return
        received = self._exchange(
            _joined([_as_numbers(one) for one in sources]),
            [_as_numbers(one).numel() for one in sources],
            [_as_numbers(output).numel()] * self._size,
        )

        def finish() -> None:
            rows = received().view(self._size, -1)
            if op in (_Op.SUM, _Op.AVG):
                total = rows.sum(0, dtype=rows.dtype)
                _copy(_as_numbers(output), total / self._size if op == _Op.AVG else total)
            else:
                _copy(_as_numbers(output), _rows_reduced(op, rows))

        self._after.append(finish)

    # ---- From one to all, from all to all ----------------------------------------

    def broadcast(self, tensor: Tensor, root: int) -> None:
        data = self._in_place(tensor)
        self._add(_core.KIND_BROADCAST, data, data, (data.numel(),), root=self._ranks[root])

    def allgather(self, output: Tensor, source: Tensor) -> None:
        """Into one tensor, of which the source may be this rank's own part."""
        self._check_share(output.numel(), source.numel(), source, output)
        numbers = self._source(source)
        target = self._target(output)
        self._add(_core.KIND_ALLGATHER, numbers, target, (1, numbers.numel()))

    def allgather_list(self, outputs: Sequence[Tensor], source: Tensor) -> None:
        if len(outputs) != self._size:
            raise ValueError(f"{len(outputs)} tensors to gather from {self._size} ranks")
        if all(one.numel() == source.numel() for one in outputs):
            self._check_types(source, *outputs)
            numbers = self._source(source)
            rows = self._like(numbers, self._size * numbers.numel())
            self._add(_core.KIND_ALLGATHER, numbers, rows, (1, numbers.numel()))
            self._after.append(lambda: _spread(rows, outputs))
            return
        counts = [one.numel() for one in outputs]
        data = self._source(source)
        received = self._exchange(data.repeat(self._size), [data.numel()] * self._size, counts)
        self._after.append(lambda: _spread(received(), outputs))

    def alltoall(
        self, output: Tensor, source: Tensor, got: Sequence[int], given: Sequence[int]
    ) -> None:
        """By the first dimension: rows from and to each rank, or equal parts."""
        self._check_types(output, source)
        if not got and not given:
            self._check_equal(output, source)
            numbers = self._source(source)
            target = self._target(output, numbers)
            shape = (self._size, numbers.numel() // self._size)
            self._add(_core.KIND_ALLTOALL, numbers, target, shape)
            return
        counts = [_counts_of(one, splits, self._size) for one, splits in
                  ((source, given), (output, got))]  # fmt: skip
        received = self._exchange(source, *counts)
        self._after.append(lambda: _copy(output, received()))

    def alltoall_lists(self, outputs: Sequence[Tensor], sources: Sequence[Tensor]) -> None:
        if len(outputs) != self._size or len(sources) != self._size:
            raise ValueError(
                f"{len(sources)} tensors to {len(outputs)} in a group of {self._size} ranks"
            )
        self._check_types(*outputs, *sources)
        received = self._exchange(
            _joined(sources), [one.numel() for one in sources], [one.numel() for one in outputs]
        )
        self._after.append(lambda: _spread(received(), outputs))

    def _exchange(
        self, source: Tensor, given: Sequence[int], got: Sequence[int]
    ) -> Callable[[], Tensor]:
        """Numbers to and from each rank, as the lists say; the result is there in the end.

        The library makes the memory, on the host: a rank that sends another number than is
        expected here must not write over what lies behind.
        """
        self._check(source)
        home = source.device
        numbers = self._source(on_host(source))
        dtype = DTYPES.get(numbers.dtype)
        each = 1 if dtype is not None else numbers.element_size()
        kind = numbers.dtype
        if dtype is None:
            numbers, dtype = numbers.view(torch.uint8), _NO_DATA
        room = _core.room()
        splits = tuple(count * each for count in given)
        order = (_core.KIND_ALLTOALL, dtype, numbers.data_ptr(), 0, (numbers.numel(),))
        self.orders.append((order, {"splits": splits, "room": room}))
        self.keep.append((numbers, room))
        expected = sum(got)

        def result() -> Tensor:
            received = take(room, dtype, numbers, 0).view(kind)
            if received.numel() != expected:
                raise ValueError(
                    f"this rank expects {expected} numbers from the others, which sent "
                    f"{received.numel()}; the sizes on all ranks have to fit"
                )
            return received.to(home)

        return result

    # ---- To and from a root -------------------------------------------------------

    def gather(self, outputs: Sequence[Tensor] | None, source: Tensor, root: int) -> None:
        """Each rank gives one row to the root."""
        numbers = self._source(source)
        is_root = root == self._rank
        if is_root:
            self._check_list(outputs, source)
        rows = self._like(numbers, self._size * numbers.numel() if is_root else 1)
        splits = tuple(int(rank == root) for rank in range(self._size))
        self._add_rows(numbers, rows, 1, splits)
        if is_root:
            self._after.append(lambda: _spread(rows, outputs or ()))

    def scatter(self, output: Tensor, sources: Sequence[Tensor] | None, root: int) -> None:
        """The root gives one row to each rank."""
        is_root = root == self._rank
        if is_root:
            self._check_list(sources, output)
        target = self._target(output)
        numbers = self._source(_joined(sources or ())) if is_root else self._like(target, 1)
        splits = (int(is_root),) * self._size
        self._add_rows(numbers, target, self._size if is_root else 0, splits, output.numel())

    def _add_rows(
        self,
        source: Tensor,
        target: Tensor,
        rows: int,
        splits: tuple[int, ...],
        row: int | None = None,
    ) -> None:
        shape = (rows, source.numel() // max(rows, 1) if row is None else row)
        self._add(_core.KIND_ALLTOALL, source, target, shape, splits=splits)

    # ---- Messages -------------------------------------------------------------

    # They are between processes: what is on a GPU goes by way of the host.

    def send(self, tensor: Tensor, to: int, tag: int) -> None:
        self._check(tensor)
        data = self._source(on_host(tensor))
        self._add(_core.KIND_SEND, data, data, (data.numel(),), peer=self._ranks[to], tag=tag)

    def recv(self, tensor: Tensor, source: int | None, tag: int) -> None:
        """From whichever member sends first, where no source is given."""
        self._check(tensor)
        place = tensor
        if tensor.is_cuda:
            place = torch.empty(tensor.shape, dtype=tensor.dtype)
            self._after.append(lambda: _copy(tensor, place))
        data = self._target(place)
        if source is None:
            # One row, of which there may not come less.
            shape: tuple[int, ...] = (1, data.numel())
            peer = _ANY_PEER
        else:
            shape, peer = (data.numel(),), self._ranks[source]
        self._add(_core.KIND_RECV, data, data, shape, peer=peer, tag=tag)

    def barrier(self) -> None:
        self.orders.append(((_core.KIND_BARRIER, _NO_DATA, 0, 0, ()), {}))

    # ---- Checks ---------------------------------------------------------------

    def _check_share(self, whole: int, share: int, small: Tensor, large: Tensor) -> None:
        self._check_types(small, large)
        if whole != share * self._size:
            raise ValueError(
                f"{share} numbers for each of {self._size} ranks do not make {whole}: the "
                f"tensors have shapes {tuple(small.shape)} and {tuple(large.shape)}"
            )

    def _check_equal(self, output: Tensor, source: Tensor) -> None:
        if output.numel() != source.numel() or source.numel() % self._size:
            raise ValueError(
                f"tensors of shape {tuple(source.shape)} and {tuple(output.shape)} are not "
                f"equal parts for {self._size} ranks; give split sizes"
            )

    def _check_list(self, many: Sequence[Tensor] | None, one: Tensor) -> None:
        if many is None or len(many) != self._size:
            raise ValueError(
                f"the root needs a tensor for each of {self._size} ranks, not "
                f"{0 if many is None else len(many)}"
            )
        self._check_types(one, *many)
        if any(other.numel() != one.numel() for other in many):
            raise ValueError("all tensors of a gather or scatter have the same size")

    @staticmethod
    def _check_types(first: Tensor, *others: Tensor) -> None:
        for other in others:
            if other.dtype != first.dtype:
                raise ValueError(f"tensors of types {first.dtype} and {other.dtype} in one call")


# ---- Tensors ------------------------------------------------------------------


def _overlap(own: Tensor, source: Tensor | None) -> bool:
    if source is None or not own.numel() or not source.numel():
        return False
    begin, other = own.data_ptr(), source.data_ptr()
    return begin < other + source.nbytes and other < begin + own.nbytes


def _copy(own: Tensor, numbers: Tensor) -> None:
    own.detach().copy_(numbers.view(own.shape))


def _joined(tensors: Sequence[Tensor]) -> Tensor:
    for tensor in tensors:
        _check_place(tensor)
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors])


def _spread(numbers: Tensor, outputs: Sequence[Tensor]) -> None:
    """To each output its own."""
    at = 0
    for output in outputs:
        _copy(output, numbers[at : at + output.numel()])
        at += output.numel()


def _counts_of(tensor: Tensor, splits: Sequence[int], size: int) -> list[int]:
    """From rows to numbers."""
    rows = tensor.shape[0] if tensor.dim() else 0
    if not splits:
        if rows % size:
            raise ValueError(f"{rows} rows are not equal parts for {size} ranks")
        splits = [rows // size] * size
    if len(splits) != size or sum(splits) != rows:
        raise ValueError(
            f"the split sizes {list(splits)} do not fit {rows} rows in a group of {size} ranks"
        )
    row = tensor.numel() // rows if rows else 0
    return [count * row for count in splits]
