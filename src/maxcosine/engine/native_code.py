"""How the instructions of `native` are written; only the compiler needs this."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import impl_ret_borrowed
from numba.extending import intrinsic, models, register_model
from numba.np import arrayobj

from maxcosine.engine.native import LANES

_I32, _I64, _DOUBLE = ir.IntType(32), ir.IntType(64), ir.DoubleType()
_VECTOR = ir.VectorType(_DOUBLE, LANES)


class LanesType(types.Type):  # type: ignore[misc]
    """Four float64 accumulators in one register."""

    def __init__(self) -> None:
        super().__init__(name="Lanes")


@register_model(LanesType)
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, frontend_type: Any) -> None:
        super().__init__(manager, frontend_type, _VECTOR)


_lanes = LanesType()


def _element(context: Any, builder: Any, array_type: Any, array: Any, indices: list[Any]) -> Any:
    """Pointer to an element of a C-contiguous array; indices are trusted and not negative."""
    view = context.make_array(array_type)(context, builder, array)
    offset = _I64(0)
    for axis, index in enumerate(indices):
        wide = builder.zext(index, _I64) if index.type.width < _I64.width else index
        extent = builder.extract_value(view.shape, axis)
        offset = builder.add(builder.mul(offset, extent), wide)
    return builder.gep(view.data, [offset])


def _load_lanes(context: Any, builder: Any, array_type: Any, array: Any, indices: list[Any]) -> Any:
    """Four neighbouring elements as float64."""
    dtype = array_type.dtype
    stored = ir.VectorType(context.get_value_type(dtype), LANES)
    pointer = _element(context, builder, array_type, array, indices)
    values = builder.load(builder.bitcast(pointer, stored.as_pointer()), align=dtype.bitwidth // 8)
    return builder.fpext(values, _VECTOR) if dtype == types.float32 else values


@intrinsic
def prefetch(typingctx: Any, v: Any, slot: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        array, index = args
        pointer = _element(context, builder, sig.args[0], array, [index, _I64(0)])
        address = builder.bitcast(pointer, cgutils.voidptr_t)
        signature = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, _I32, _I32, _I32])
        function = cgutils.get_or_insert_function(builder.module, signature, "llvm.prefetch.p0")
        # to read, into the second cache level, data
        builder.call(function, [address, _I32(0), _I32(2), _I32(1)])
        return context.get_dummy_value()

    return types.void(v, slot), codegen


@intrinsic
def only_column(typingctx: Any, v: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        matrix = context.make_array(sig.args[0])(context, builder, args[0])
        vector = context.make_array(sig.return_type)(context, builder)
        arrayobj.populate_array(
            vector,
            data=matrix.data,
            shape=[builder.extract_value(matrix.shape, 0)],
            strides=[matrix.itemsize],
            itemsize=matrix.itemsize,
            meminfo=matrix.meminfo,
        )
        return impl_ret_borrowed(context, builder, sig.return_type, vector._getvalue())

    return v.copy(ndim=1)(v), codegen


@intrinsic
def call_rule(
    typingctx: Any,
    entry: Any,
    margin: Any,
    sq_w: Any,
    sq_x: Any,
    coef_sum: Any,
    state: Any,
    params: Any,
    move: Any,
) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        numbers = _DOUBLE.as_pointer()
        signature = ir.FunctionType(ir.VoidType(), [_DOUBLE] * 4 + [numbers] * 3)
        function = builder.inttoptr(args[0], signature.as_pointer())
        arrays = [
            context.make_array(array_type)(context, builder, array).data
            for array_type, array in zip(sig.args[5:], args[5:], strict=True)
        ]
        builder.call(function, [*args[1:5], *arrays])
        return context.get_dummy_value()

    return types.void(entry, margin, sq_w, sq_x, coef_sum, state, params, move), codegen


@intrinsic
def zero_lanes(typingctx: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return ir.Constant(_VECTOR, [0.0] * LANES)

    return _lanes(), codegen


@intrinsic
def multiply_add(typingctx: Any, lanes: Any, x: Any, v: Any, slot: Any, head: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        lanes, x, array, slot, head = args
        weights = _load_lanes(context, builder, sig.args[2], array, [slot, head])
        undefined = ir.Constant(_VECTOR, ir.Undefined)
        first = builder.insert_element(undefined, x, _I32(0))
        zeros = ir.Constant(ir.VectorType(_I32, LANES), [0] * LANES)
        everywhere = builder.shuffle_vector(first, undefined, zeros)
        return builder.fadd(lanes, builder.fmul(weights, everywhere))

    return _lanes(lanes, x, v, slot, head), codegen


@intrinsic
def gather_multiply_add(typingctx: Any, lanes: Any, x: Any, v: Any, slots: Any, k: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        lanes, x, v, slots, k = args
        values = _load_lanes(context, builder, sig.args[1], x, [k])
        dtype = sig.args[2].dtype
        weights = ir.Constant(ir.VectorType(context.get_value_type(dtype), LANES), ir.Undefined)
        for lane in range(LANES):
            position = builder.add(k, _I64(lane))
            slot = builder.load(_element(context, builder, sig.args[3], slots, [position]))
            weight = builder.load(_element(context, builder, sig.args[2], v, [slot, _I64(0)]))
            weights = builder.insert_element(weights, weight, _I32(lane))
        if dtype == types.float32:
            weights = builder.fpext(weights, _VECTOR)
        return builder.fadd(lanes, builder.fmul(values, weights))

    return _lanes(lanes, x, v, slots, k), codegen


@intrinsic
def add_squares(typingctx: Any, lanes: Any, x: Any, k: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        values = _load_lanes(context, builder, sig.args[1], args[1], [args[2]])
        return builder.fadd(args[0], builder.fmul(values, values))

    return _lanes(lanes, x, k), codegen


@intrinsic
def add_lanes(typingctx: Any, a: Any, b: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.fadd(*args)

    return _lanes(a, b), codegen


@intrinsic
def sum_lanes(typingctx: Any, lanes: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        first, second, third, fourth = (builder.extract_element(args[0], _I32(i)) for i in range(LANES))
        return builder.fadd(builder.fadd(first, second), builder.fadd(third, fourth))

    return types.float64(lanes), codegen


@intrinsic
def store_lanes(typingctx: Any, scores: Any, head: Any, lanes: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pointer = _element(context, builder, sig.args[0], args[0], [args[1]])
        builder.store(args[2], builder.bitcast(pointer, _VECTOR.as_pointer()), align=8)
        return context.get_dummy_value()

    return types.void(scores, head, lanes), codegen
