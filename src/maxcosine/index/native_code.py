"""How the instructions of `native` are written; only the compiler needs this."""

from __future__ import annotations

import ctypes
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from maxcosine.index.native import KEY, POSITION, SIZE, VALUE


def _offset(value: Any, kind: Any, content: Any) -> int:
    """How many bytes from the beginning of an object something lies."""
    offsets = range(0, type(value).__basicsize__, 8)
    return next(offset for offset in offsets if kind.from_address(id(value) + offset).value == content)


_TYPE_OFFSET = _offset(-1.5, ctypes.c_size_t, id(float))
_NUMBER_OFFSET = _offset(-1.5, ctypes.c_double, -1.5)

_I32, _I64, _DOUBLE = ir.IntType(32), ir.IntType(64), ir.DoubleType()
_OBJECT = cgutils.voidptr_t


def _call(builder: Any, name: str, result: Any, arguments: list[Any]) -> Any:
    """Call a function of Python's C interface."""
    signature = ir.FunctionType(result, [argument.type for argument in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, signature, name), arguments)


def _cell(context: Any, builder: Any, cursor_type: Any, cursor: Any, k: int) -> Any:
    """Pointer to an element of the cursor."""
    return builder.gep(context.make_array(cursor_type)(context, builder, cursor).data, [_I64(k)])


@intrinsic
def next_item(typingctx: Any, mapping: Any, cursor: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        cells = [_cell(context, builder, sig.args[1], args[1], k) for k in (POSITION, KEY, VALUE)]
        dict_pointer = builder.inttoptr(args[0], _OBJECT)
        found = _call(builder, "PyDict_Next", _I32, [dict_pointer, *cells])
        return builder.icmp_signed("!=", found, _I32(0))

    return types.boolean(mapping, cursor), codegen


@intrinsic
def text_of(typingctx: Any, key: Any, cursor: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        size = _cell(context, builder, sig.args[1], args[1], SIZE)
        text = _call(builder, "PyUnicode_AsUTF8AndSize", _OBJECT, [builder.inttoptr(args[0], _OBJECT), size])
        return builder.ptrtoint(text, _I64)

    return types.int64(key, cursor), codegen


@intrinsic
def id_of(typingctx: Any, key: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _call(builder, "PyLong_AsUnsignedLongLong", _I64, [builder.inttoptr(args[0], _OBJECT)])

    return types.uint64(key), codegen


@intrinsic
def number_of(typingctx: Any, value: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        number = builder.inttoptr(args[0], _OBJECT)
        float_type = context.get_python_api(builder).get_c_object("PyFloat_Type")

        def cell(offset: int, kind: Any) -> Any:
            return builder.inttoptr(builder.add(args[0], _I64(offset)), kind.as_pointer())

        type_of = builder.load(cell(_TYPE_OFFSET, _OBJECT))
        result = cgutils.alloca_once(builder, _DOUBLE)
        is_float = builder.icmp_unsigned("==", type_of, float_type)
        with builder.if_else(is_float, likely=True) as (then, otherwise):
            with then:
                builder.store(builder.load(cell(_NUMBER_OFFSET, _DOUBLE)), result)
            with otherwise:
                derived = _call(builder, "PyType_IsSubtype", _I32, [type_of, float_type])
                with builder.if_else(builder.icmp_signed("!=", derived, _I32(0))) as (floats, others):
                    with floats:
                        builder.store(_call(builder, "PyFloat_AsDouble", _DOUBLE, [number]), result)
                    with others:
                        builder.store(_call(builder, "PyLong_AsDouble", _DOUBLE, [number]), result)
        return builder.load(result)

    return types.float64(value), codegen


@intrinsic
def failed(typingctx: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        error = _call(builder, "PyErr_Occurred", _OBJECT, [])
        _call(builder, "PyErr_Clear", ir.VoidType(), [])
        return cgutils.is_not_null(builder, error)

    return types.boolean(), codegen


def _load(builder: Any, address: Any, bits: int) -> Any:
    """So many bits from an address that need not be a multiple of anything, as 64 bits."""
    stored = ir.IntType(bits)
    value = builder.load(builder.inttoptr(address, stored.as_pointer()), align=1)
    return value if bits == _I64.width else builder.zext(value, _I64)


@intrinsic
def word_at(typingctx: Any, address: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _load(builder, args[0], 64)

    return types.uint64(address), codegen


@intrinsic
def byte_at(typingctx: Any, address: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _load(builder, args[0], 8)

    return types.uint64(address), codegen


@intrinsic
def fetch_ahead(typingctx: Any, address: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        signature = ir.FunctionType(ir.VoidType(), [_OBJECT, _I32, _I32, _I32])
        function = cgutils.get_or_insert_function(builder.module, signature, "llvm.prefetch.p0")
        builder.call(function, [builder.inttoptr(args[0], _OBJECT), _I32(0), _I32(3), _I32(1)])
        return context.get_dummy_value()

    return types.void(address), codegen


@intrinsic
def pointer_to(typingctx: Any, address: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], cgutils.voidptr_t)

    return types.voidptr(address), codegen


@intrinsic
def put_word(typingctx: Any, address: Any, word: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        builder.store(args[1], builder.inttoptr(args[0], args[1].type.as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(address, word), codegen


@intrinsic
def count_bits(typingctx: Any, word: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return word(word), codegen


@intrinsic
def trailing_zeros(typingctx: Any, word: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return word(word), codegen


@intrinsic
def leading_zeros(typingctx: Any, word: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.ctlz(args[0], ir.Constant(ir.IntType(1), 0))

    return word(word), codegen
