"""What Numba needs that is not Python: pointers, half precision, fused multiply-add.

**Why pointers at all.** A step's contributions are separate buffers, some read-only or memory
mapped, any number of them. Numba compiles a tuple of arrays anew for every length, and takes
milliseconds to unbox a list of thousands. An int64 array of addresses is one type whatever the
number, and costs nothing.

**Why that is safe.** A pointer carries none of an array's checks, so they are all made before one
is taken, by :class:`onefold.exact.buffers.Buffers`, the only place that takes any: dtype, native
byte order, alignment, contiguity and length; and it holds the arrays for as long as it lives
itself. Kernels get the number of elements with the addresses and read nothing beyond it. Whoever
calls a kernel keeps its ``Buffers`` until the kernel has returned. Within kernels no address of an
array is ever taken: Numba frees an array after the last use of its *name*, which a pointer to its
data is not.

Half precision: Numba knows neither float16 nor bfloat16. Float kernels see the former as int16 and
the latter as uint16, and convert the bits here.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np import arrayobj

__all__ = ["array_at", "fma", "half_to_single", "prefetch", "single_to_half"]


@intrinsic
def array_at(_context: Any, _address: Any, _size: Any, like: Any) -> Any:
    """The ``size`` elements at an address, as an array of the dtype of the array ``like``."""
    kind = types.Array(like.dtype, 1, "C")

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        address, size, _ = arguments
        array = arrayobj.make_array(kind)(context, builder)
        item_bytes = context.get_abi_sizeof(context.get_data_type(like.dtype))
        itemsize = context.get_constant(types.intp, item_bytes)
        arrayobj.populate_array(
            array,
            data=builder.inttoptr(address, array.data.type),
            shape=cgutils.pack_array(builder, [size]),
            strides=cgutils.pack_array(builder, [itemsize]),
            itemsize=itemsize,
            meminfo=None,
        )
        return array._getvalue()  # noqa: SLF001  # so its siblings in Numba do

    return kind(types.intp, types.intp, like), generate


@intrinsic
def fma(_context: Any, _x: Any, _y: Any, _z: Any) -> Any:
    """``x * y + z``, rounded once."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), generate


@intrinsic
def half_to_single(_context: Any, _bits: Any) -> Any:
    """The value of float16 bits, exactly."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.fpext(builder.bitcast(arguments[0], ir.HalfType()), ir.FloatType())

    return types.float32(types.int16), generate


@intrinsic
def single_to_half(_context: Any, _value: Any) -> Any:
    """The float16 bits of a float32, rounded to nearest even."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        half = builder.fptrunc(arguments[0], ir.HalfType())
        return builder.bitcast(half, ir.IntType(16))

    return types.int16(types.float32), generate


@intrinsic
def prefetch(_context: Any, _address: Any) -> Any:
    """Ask for the line of an address. It reads nothing, so no address is wrong."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        word, pointer = ir.IntType(32), cgutils.voidptr_t
        kind = ir.FunctionType(ir.VoidType(), [pointer, word, word, word])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        target = builder.inttoptr(arguments[0], pointer)
        builder.call(function, [target, word(0), word(3), word(1)])
        return _context.get_dummy_value()

    return types.void(types.intp), generate
