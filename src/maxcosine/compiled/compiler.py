"""Compilation by Numba, which is imported here and in what only this uses.

Compiled functions are linked with what they call into one piece of object code that needs nothing of Numba to
run: it is entered by a function of C, and takes the memory for its own arrays from C's `malloc`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import numba
import numpy as np
from llvmlite import ir
from numba.core import caching, cgutils, types
from numba.core.ccallback import CFunc
from numba.core.registry import cpu_target
from numba.core.typing.typeof import typeof_impl
from numba.extending import intrinsic
from numba.np import arrayobj, numpy_support

from maxcosine.compiled import INSIDE, OPTIONS, Compilable, Named
from maxcosine.compiled.code import ENTRY
from maxcosine.compiled.store import Compiled, stamp

_I8, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_POINTER = _I8.as_pointer()
_NUMBERS = types.CPointer(types.float64)

_TYPES = {
    bool: types.boolean,
    np.bool_: types.boolean,
    int: types.int64,
    np.int64: types.int64,
    np.uint64: types.uint64,
    float: types.float64,
    np.float64: types.float64,
}
_RESULTS = {types.boolean: "?", types.int64: "q", types.uint64: "Q", types.float64: "d"}


def register() -> None:
    """What Numba calls before it compiles anything, so that functions of our users, too, can call ours.

    To import this module is enough: what follows is registered then.
    """


@typeof_impl.register(Named)
@typeof_impl.register(Compilable)
def _type_of_later(value: Any, _: Any) -> Any:
    """For Numba, what is compiled later is what it then becomes."""
    known = "real" in vars(value)
    real = value.real
    if isinstance(value, Named) and not known:  # instructions that were imported now are new to Numba
        cpu_target.typing_context.refresh()
        cpu_target.target_context.refresh()
    return cpu_target.typing_context.resolve_value_type(real)


# --- functions that Numba calls --------------------------------------------------------------


class _PackageStamp:
    def get_source_stamp(self) -> str:
        """Numba's own covers the file of a function only, not those of the helpers that it calls."""
        return stamp()


class _UserProvided(_PackageStamp, caching.UserProvidedCacheLocator):  # type: ignore[misc]
    """The folder of NUMBA_CACHE_DIR, if set."""


class _InTree(_PackageStamp, caching.InTreeCacheLocator):  # type: ignore[misc]
    """`__pycache__` beside the source, if it can be written."""


class _UserWide(_PackageStamp, caching.UserWideCacheLocator):  # type: ignore[misc]
    """The user's cache folder, for installations that cannot be written."""


class _PackageCacheImpl(caching.CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_UserProvided, _InTree, _UserWide)


class PackageCache(caching.FunctionCache):  # type: ignore[misc]
    """Numba's function cache, stale as soon as any file of the package changes."""

    _impl_class = _PackageCacheImpl


def dispatcher(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """What Numba makes of a function."""
    return numba.njit(function, **options)


def cached_dispatcher(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """What Numba makes of a function, and keeps on disk."""
    made = dispatcher(function, options)
    made._cache = PackageCache(function)
    return made


def entry_of(made: Any, *arguments: Any) -> Any:
    """What a dispatcher calls for arguments of these types."""
    return made.compile(tuple(numba.typeof(argument) for argument in arguments))


def compile_c_function(function: Callable[..., Any], signature: str) -> Any:
    """A function of C that may use whatever Numba offers, and lives as long as what is returned."""
    callback = CFunc(function, (_callback_types(signature), types.void), {}, {"error_model": "numpy"})
    callback.compile()
    return callback


# --- functions that need no Numba to be called -----------------------------------------------


def type_of(argument: Any) -> Any:
    """The type for which a kernel is compiled, to be given this argument."""
    if isinstance(argument, np.ndarray):
        return types.Array(numpy_support.from_dtype(argument.dtype), argument.ndim, "C")
    if isinstance(argument, tuple):
        return types.BaseTuple.from_types([type_of(part) for part in argument], type(argument))
    return _TYPES[type(argument)]


def compile_kernel(made: Any, arguments: tuple[Any, ...]) -> Compiled:
    """Compile for arguments of these types: `int entry(int64_t *slots)`.

    The slots hold the arguments, and later the results; it returns 0, or something else if it failed.
    """
    signature = tuple(type_of(argument) for argument in arguments)
    result = _compiled(made, signature)
    returned = result.signature.return_type
    kinds = () if returned == types.none else getattr(returned, "types", (returned,))

    def body(builder: Any, given: Any) -> None:
        slots = builder.bitcast(given[0], _I64.as_pointer())
        reader = _Reader(result.target_context, builder, slots)
        status, value = _call(builder, result, [reader.next(kind) for kind in signature])
        with builder.if_then(status.is_error):
            builder.ret(status.code)
        for k, kind in enumerate(kinds):
            number = builder.extract_value(value, k) if len(kinds) > 1 else value
            if kind == types.boolean:
                number = builder.zext(number, _I64)
            slot = builder.gep(slots, [_I64(k)])
            builder.store(number, builder.bitcast(slot, number.type.as_pointer()))
        builder.ret(_I32(0))

    return Compiled(_linked(result, _I32, [_POINTER], body), "".join(_RESULTS[kind] for kind in kinds))


def compile_callback(function: Callable[..., Any], signature: str) -> Compiled:
    """Compile a function of C: a d in the signature is a double, a p a pointer to doubles."""
    made = dispatcher(function, {**OPTIONS, **INSIDE})
    result = _compiled(made, _callback_types(signature))
    arguments = [result.target_context.get_value_type(kind) for kind in result.signature.args]

    def body(builder: Any, given: Any) -> None:
        _call(builder, result, given)  # an error inside it leaves what it should have written as it was
        builder.ret_void()

    return Compiled(_linked(result, ir.VoidType(), arguments, body))


def _callback_types(signature: str) -> tuple[Any, ...]:
    return tuple(types.float64 if kind == "d" else _NUMBERS for kind in signature)


def _compiled(made: Any, signature: tuple[Any, ...]) -> Any:
    made.compile(signature)
    return made.overloads[signature]


def _call(builder: Any, result: Any, arguments: Any) -> Any:
    """Call what was compiled; how that ended, and what it returned."""
    context, signature = result.target_context, result.signature
    function = context.declare_function(builder.module, result.fndesc)
    return context.call_conv.call_function(
        builder, function, signature.return_type, signature.args, arguments
    )


class _Reader:
    """Reads arguments from slots, one after another."""

    def __init__(self, context: Any, builder: Any, slots: Any) -> None:
        self.context, self.builder, self.slots, self.count = context, builder, slots, 0

    def next(self, kind: Any) -> Any:
        builder, context = self.builder, self.context
        if isinstance(kind, types.BaseTuple):
            return context.make_tuple(builder, kind, [self.next(part) for part in kind.types])
        if isinstance(kind, types.Array):
            return self._next_array(kind)
        if kind == types.boolean:
            return builder.icmp_unsigned("!=", self._load(_I64), _I64(0))
        return self._load(context.get_value_type(kind))

    def _load(self, kind: Any) -> Any:
        slot = self.builder.gep(self.slots, [_I64(self.count)])
        self.count += 1
        return self.builder.load(self.builder.bitcast(slot, kind.as_pointer()))

    def _next_array(self, kind: Any) -> Any:
        builder, context = self.builder, self.context
        element = context.get_data_type(kind.dtype)
        data = builder.inttoptr(self._load(_I64), element.as_pointer())
        shape = [self._load(_I64) for _ in range(kind.ndim)]
        strides = [_I64(context.get_abi_sizeof(element))]
        for extent in reversed(shape[1:]):
            strides.insert(0, builder.mul(strides[0], extent))
        array = context.make_array(kind)(context, builder)
        arrayobj.populate_array(
            array, data=data, shape=shape, strides=strides, itemsize=strides[-1], meminfo=None
        )
        return array._getvalue()


def _linked(result: Any, returns: Any, arguments: list[Any], body: Callable[[Any, Any], None]) -> bytes:
    """Object code of what was compiled, with an entry of this body, and its own ways to get memory."""
    codegen = result.target_context.codegen()
    entry = codegen._create_empty_module(ENTRY)
    function = ir.Function(entry, ir.FunctionType(returns, arguments), ENTRY)
    body(ir.IRBuilder(function.append_basic_block()), function.args)
    _define_memory(entry)
    module = llvm.parse_assembly(str(entry))
    module.link_in(result.library._final_module.clone())
    return bytes(codegen._tm.emit_object(module))


# Of what Numba knows of memory that it has allocated, 64 bits each.
_REFERENCES, _DATA, _HEADER = 0, 3, 6


def _define_memory(module: Any) -> None:
    """The two functions of Numba's runtime that arrays inside a kernel need.

    Before what is allocated lies what Numba's own code reads: how many there are that refer to it, and its
    address.
    """

    def define(name: str, returns: Any, arguments: list[Any]) -> tuple[Any, Any]:
        function = ir.Function(module, ir.FunctionType(returns, arguments), name)
        return ir.IRBuilder(function.append_basic_block()), function.args

    def declare(name: str, returns: Any, arguments: list[Any]) -> Any:
        return cgutils.get_or_insert_function(module, ir.FunctionType(returns, arguments), name)

    builder, (size, alignment) = define("NRT_MemInfo_alloc_aligned", _POINTER, [_I64, _I32])
    alignment = builder.zext(alignment, _I64)
    header = _I64(8 * _HEADER)
    whole = builder.add(builder.add(size, alignment), header)
    memory = builder.call(declare("malloc", _POINTER, [_I64]), [whole])
    with builder.if_then(cgutils.is_not_null(builder, memory)):
        first = builder.add(
            builder.ptrtoint(memory, _I64), builder.add(header, builder.sub(alignment, _I64(1)))
        )
        words = builder.bitcast(memory, _I64.as_pointer())
        for word in range(_HEADER):
            content = {_REFERENCES: _I64(1), _DATA: builder.and_(first, builder.neg(alignment))}
            builder.store(content.get(word, _I64(0)), builder.gep(words, [_I64(word)]))
    builder.ret(memory)

    builder, (memory,) = define("NRT_MemInfo_call_dtor", ir.VoidType(), [_POINTER])
    builder.call(declare("free", ir.VoidType(), [_POINTER]), [memory])
    builder.ret_void()


@intrinsic
def borrow(typingctx: Any, array: Any) -> Any:
    """See `maxcosine.compiled.borrow`."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        view = context.make_array(sig.args[0])(context, builder, args[0])
        view.meminfo = cgutils.get_null_value(view.meminfo.type)
        view.parent = cgutils.get_null_value(view.parent.type)
        return view._getvalue()

    return array(array), codegen
