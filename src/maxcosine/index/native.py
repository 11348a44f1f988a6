"""Read a dict and bytes in memory, from compiled code.

The functions of Python's C interface that Numba does not offer. Kernels that use those of dicts hold
the interpreter lock, and none of them calls Python code, so that no dict changes while it is read. Each has
a plain Python twin for NUMBA_DISABLE_JIT=1.
"""

from __future__ import annotations

import ctypes
import itertools
from collections import deque
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from maxcosine.compiled import JIT_ENABLED

# Where `next_item` leaves what it found, and `text_of` the length of a text.
POSITION, KEY, VALUE, SIZE = 0, 1, 2, 3
CURSOR_LENGTH = 4


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
    """Move the cursor to the next item of the dict at address `mapping`; whether there is one."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        cells = [_cell(context, builder, sig.args[1], args[1], k) for k in (POSITION, KEY, VALUE)]
        dict_pointer = builder.inttoptr(args[0], _OBJECT)
        found = _call(builder, "PyDict_Next", _I32, [dict_pointer, *cells])
        return builder.icmp_signed("!=", found, _I32(0))

    return types.boolean(mapping, cursor), codegen


@intrinsic
def text_of(typingctx: Any, key: Any, cursor: Any) -> Any:
    """Address of the UTF-8 bytes of the str at address `key`, their number in the cursor; 0 if none."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        size = _cell(context, builder, sig.args[1], args[1], SIZE)
        text = _call(builder, "PyUnicode_AsUTF8AndSize", _OBJECT, [builder.inttoptr(args[0], _OBJECT), size])
        return builder.ptrtoint(text, _I64)

    return types.int64(key, cursor), codegen


@intrinsic
def id_of(typingctx: Any, key: Any) -> Any:
    """The int at address `key`, as 64 bits without a sign; see `failed`."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _call(builder, "PyLong_AsUnsignedLongLong", _I64, [builder.inttoptr(args[0], _OBJECT)])

    return types.uint64(key), codegen


@intrinsic
def number_of(typingctx: Any, value: Any) -> Any:
    """The float or int at address `value`; see `failed`."""

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
    """Whether one of the functions above failed; the error it left is cleared."""

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
    """Eight bytes from an address."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _load(builder, args[0], 64)

    return types.uint64(address), codegen


@intrinsic
def byte_at(typingctx: Any, address: Any) -> Any:
    """The byte at an address."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _load(builder, args[0], 8)

    return types.uint64(address), codegen


@intrinsic
def fetch_ahead(typingctx: Any, address: Any) -> Any:
    """Ask the memory for what lies at an address, wherever that is."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        signature = ir.FunctionType(ir.VoidType(), [_OBJECT, _I32, _I32, _I32])
        function = cgutils.get_or_insert_function(builder.module, signature, "llvm.prefetch.p0")
        builder.call(function, [builder.inttoptr(args[0], _OBJECT), _I32(0), _I32(3), _I32(1)])
        return context.get_dummy_value()

    return types.void(address), codegen


@intrinsic
def pointer_to(typingctx: Any, address: Any) -> Any:
    """An address as a pointer."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], cgutils.voidptr_t)

    return types.voidptr(address), codegen


if not JIT_ENABLED:
    _alive: deque[Any] = deque(maxlen=100)  # the texts whose addresses were given away last
    _errors: list[Exception] = []

    def _object_at(address: int) -> Any:
        return ctypes.cast(int(address), ctypes.py_object).value

    def next_item(mapping: Any, cursor: Any) -> bool:
        items = itertools.islice(_object_at(mapping).items(), int(cursor[POSITION]), None)
        for key, value in items:
            cursor[POSITION] += 1
            cursor[KEY], cursor[VALUE] = id(key), id(value)
            return True
        return False

    def text_of(key: Any, cursor: Any) -> int:
        try:
            text = ctypes.create_string_buffer(str.encode(_object_at(key)))
        except (TypeError, UnicodeEncodeError) as error:
            _errors.append(error)
            return 0
        _alive.append(text)
        cursor[SIZE] = len(text) - 1
        return ctypes.addressof(text)

    def id_of(key: Any) -> Any:
        value = _object_at(key)
        if isinstance(value, int) and 0 <= value < 2**64:
            return np.uint64(value)
        _errors.append(TypeError("not an id"))
        return np.uint64(2**64 - 1)

    def number_of(value: Any) -> float:
        number = _object_at(value)
        try:
            if isinstance(number, float | int):
                return float(number)
            raise TypeError("neither float nor int")
        except (TypeError, OverflowError) as error:
            _errors.append(error)
            return -1.0

    def failed() -> bool:
        occurred = bool(_errors)
        _errors.clear()
        return occurred

    def word_at(address: Any) -> Any:
        return np.uint64(ctypes.c_uint64.from_address(int(address)).value)

    def byte_at(address: Any) -> Any:
        return np.uint64(ctypes.c_uint8.from_address(int(address)).value)

    def fetch_ahead(address: Any) -> None:
        pass
