# SPDX-License-Identifier: Apache-2.0
"""Calls rueda._core without any framework; argv: the folder that has rueda."""

import array
import ctypes
import gc
import sys

sys.path.insert(0, sys.argv[1])
from rueda import _core
from rueda.common.basics import basics

basics.init()
assert (basics.rank(), basics.size()) == (0, 1)
numbers = array.array("f", [1, 2, 3])
place, _ = numbers.buffer_info()
kind, dtype, total = _core.KIND_ALLREDUCE, _core.DTYPE_FLOAT32, _core.REDUCTION_SUM
_core.wait(_core.submit(kind, "x", 0, dtype, place, place, (3,), total, 0, 1.0, 2.0))
assert list(numbers) == [2, 4, 6], numbers

room = _core.room()
handle = _core.submit(
    _core.KIND_ALLGATHER, None, 0, dtype, place, 0, (3,), 0, 0, 1.0, 1.0, None, room
)
assert _core.wait_for(handle, 0)[0] == 3
assert "dltensor" in repr(_core.take(room, dtype, (3,)))
assert _core.take(room, dtype, (3,)) is None  # it is taken

fields = dict(
    kind=kind,
    name="x",
    set=0,
    dtype=dtype,
    send=place,
    recv=place,
    shape=(3,),
    reduction=total,
    device=None,
    stream=None,
)
_core.wait(_core.submit(**fields))
_core.wait(_core.submit(kind, "x", 0, dtype, place, place, (3,), postscale=0.5, reduction=total))
_core.wait(_core.submit_group([fields])[0])
_core.wait(_core.submit(**{**fields, "name": None, "ordered": True}))
assert list(numbers) == [1, 2, 3], numbers
for more, error in (
    ({"kind": kind}, TypeError),
    ({"size": 3}, TypeError),
    ({"stream": "x"}, TypeError),
    ({"reduction": total, "splits": (1, 2)}, ValueError),
    ({"ordered": True, "device": 0}, NotImplementedError),
):
    try:
        _core.submit(kind, None, 0, dtype, place, place, (3,), **more)
    except error:
        continue
    raise AssertionError(f"{more} was accepted")
numbers[:] = array.array("f", [2, 4, 6])
for wrong, error in (
    (3, TypeError),
    ((0,) * 19, TypeError),
    ((), TypeError),
    (("x", None, 0, dtype, place, place, (3,)), TypeError),
    ((99, None, 0, dtype, place, place, (3,)), ValueError),
    ((kind, None, 0, dtype, place, place, [3]), TypeError),
    ((kind, None, 0, dtype, place, place, (-3,)), OverflowError),
    ((kind, None, 0, dtype, place, place, (1,) * 33), ValueError),
    ((kind, None, 7, dtype, place, place, (3,)), ValueError),
    ((kind, chr(0xD800), 0, dtype, place, place, (3,)), UnicodeEncodeError),
):
    for function, arguments in ((_core.submit, wrong), (_core.submit_group, ([wrong],))):
        try:
            function(*(arguments if isinstance(arguments, tuple) else (arguments,)))
        except error:
            continue
        raise AssertionError(f"{wrong} was accepted")


# A gradient, and what it thinks is a tensor.
class Grad:
    dtype, layout, is_cpu, requires_grad, _version = "float", "rows", True, False, 0
    numel, data_ptr = (lambda self: 3), (lambda self: place)

    def is_contiguous(self):
        return self.layout == "rows"


class Gradient(_core.Gradient):
    process_set_id = 0


def make(shape=(3,)):
    gradient, in_flight, others = Gradient(), [], []
    gradient.param, gradient.passes_left, gradient.is_fast = Gradient(), 1, True
    gradient.param.grad = Grad()
    gradient.prepare(
        b"y",
        Grad.dtype,
        dtype,
        Grad.layout,
        shape,
        gradient,
        total,
        1.0,
        2.0,
        in_flight,
        others.append,
    )
    return gradient, in_flight, others


gradient, in_flight, others = make()
gradient(None)
assert in_flight == [gradient] and gradient.passes_left == 0
assert gradient.sent is gradient.param.grad
odd = []
assert _core.settle(in_flight, 2, odd) is None and odd == [] and others == []
assert list(numbers) == [4, 8, 12] and gradient.passes_left == 2 and gradient.sent is None
gradient("a pass that is not the last")
assert others.pop() == "a pass that is not the last"
for name, value in (
    ("dtype", "double"),
    ("layout", "sparse"),
    ("is_cpu", False),
    ("requires_grad", True),
    ("numel", lambda: 4),
    ("data_ptr", None),
    ("is_contiguous", lambda: False),
):
    gradient, in_flight, others = make()
    setattr(gradient.param.grad, name, value)
    gradient(name)
    assert others == [name] and in_flight == [] and gradient.passes_left == 1, name
for is_neg in (False, True):
    gradient, in_flight, others = make((1,))
    gradient.param.grad.numel, gradient.param.grad.is_neg = lambda: 1, lambda is_neg=is_neg: is_neg
    gradient("negated when read")
    assert others == ["negated when read"] * is_neg and len(in_flight) == (not is_neg)
    assert _core.settle(in_flight, 1, odd) is None
for change in (
    lambda: setattr(gradient.sent, "_version", 1),  # noqa: B023
    lambda: setattr(gradient.param, "grad", 1),  # noqa: B023
):
    gradient, in_flight, others = make()
    gradient(None)
    change()
    assert _core.settle(in_flight, 1, odd) is None and odd.pop() is gradient and gradient.sent
gradient, in_flight, others = make()
gradient(None)
assert isinstance(_core.settle(in_flight + in_flight, 1, odd), ValueError)
for wrong in ((Gradient(), RuntimeError), (lambda *_: _core.settle([1], 1, []), TypeError)):
    try:
        wrong[0](None)
    except wrong[1]:
        continue
    raise AssertionError(f"{wrong[1]} is missing")

# The same of a type that has DLPack's table of functions.
assert not _core.learn(Grad) and not _core.learn(3)


class Dl(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    ]


pair = ctypes.c_int64 * 2
plain = dict(
    data=place - 8,
    device=(1, 0),
    ndim=2,
    code=2,
    bits=32,
    lanes=1,
    shape=pair(3, 1),
    strides=pair(1, 7),
    offset=8,
)


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(Dl))
def describe(grad, out):
    for name, value in {**plain, **grad.other}.items():
        setattr(out[0], name, value)
    return 0


table = (ctypes.c_void_p * 8)(1, *[None] * 4, ctypes.cast(describe, ctypes.c_void_p))
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = (
    ctypes.py_object,
    [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p],
)


class Known(Grad):
    __dlpack_c_exchange_api__ = new_capsule(table, b"dlpack_exchange_api", None)
    other, data_ptr = {}, None


table[0] = 2
assert not _core.learn(Known)  # a version that nobody knows yet
table[0] = 1
assert _core.learn(Known)


class Another(Known):  # of another framework: both stay known
    pass


assert _core.learn(Another) and _core.learn(Known)
for other in (
    {},
    {"strides": None},
    {"device": (2, 0)},
    {"code": 0},
    {"bits": 64},
    {"lanes": 2},
    {"shape": pair(3, 2)},
    {"strides": pair(2, 1)},
    {"ndim": 0},
):
    gradient, in_flight, others = make()
    gradient.param.grad = (Another if other == {} else Known)()
    gradient.param.grad.other = other
    before = list(numbers)
    gradient("odd")
    assert _core.settle(in_flight, 1, odd) is None
    if other in ({}, {"strides": None}):
        assert others == [] and list(numbers) == [2 * number for number in before], other
    else:
        assert others == ["odd"] and in_flight == [] and list(numbers) == before, other

gradient = in_flight = others = change = wrong = None
odd.clear()
gc.collect()
assert not [one for one in gc.get_objects() if isinstance(one, _core.Gradient)]
basics.shutdown()
print("good")
