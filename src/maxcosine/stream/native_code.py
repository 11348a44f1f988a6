"""How the instructions of `native` are written; only the compiler needs this."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, config, types
from numba.core.codegen import get_host_cpu_features
from numba.extending import intrinsic

_EIGHT = 8
_ZEROS = 0x3030303030303030
_I8, _I32, _I64, _DOUBLE = ir.IntType(8), ir.IntType(32), ir.IntType(64), ir.DoubleType()


def _vector(element: Any, n: int = _EIGHT) -> Any:
    return ir.VectorType(element, n)


def _all(kind: Any, value: Any) -> Any:
    """The same value in every lane."""
    return ir.Constant(kind, [value] * kind.count)


def _load(builder: Any, address: Any, kind: Any) -> Any:
    return builder.load(builder.inttoptr(address, kind.as_pointer()), align=1)


def _gathered(builder: Any, addresses: list[Any], kind: Any) -> Any:
    """What lies at eight addresses."""
    found = ir.Constant(_vector(kind), ir.Undefined)
    for lane, address in enumerate(addresses):
        found = builder.insert_element(found, _load(builder, address, kind), _I32(lane))
    return found


def _last_bytes(builder: Any, words: Any, counts: Any) -> Any:
    """Of each word, so many of the last bytes; the others become 0."""
    wide = words.type
    rest = builder.shl(builder.sub(_all(wide, 8), counts), _all(wide, 3))
    rest = builder.and_(rest, _all(wide, 63))  # a shift by more means nothing
    return builder.shl(builder.lshr(words, rest), rest)


def _whole_numbers(builder: Any, values: Any) -> tuple[Any, Any]:
    """The numbers that the values of eight digits make, and what is not 0 if some are no digits; see
    `numbers.whole_number`."""
    wide = values.type
    others = builder.or_(builder.add(values, _all(wide, 0x7676767676767676)), values)
    others = builder.and_(others, _all(wide, 0x8080808080808080))
    for bits, factor in ((16, 10), (32, 100), (64, 10_000)):  # pairs of digits, then fours, then all
        kind = _vector(ir.IntType(bits), 64 * _EIGHT // bits)
        parts = builder.bitcast(values, kind)
        first = builder.and_(parts, _all(kind, 2 ** (bits // 2) - 1))
        second = builder.lshr(parts, _all(kind, bits // 2))
        values = builder.add(builder.mul(first, _all(kind, factor)), second)
    return values, others


def _without_point(builder: Any, values: Any) -> tuple[Any, Any, Any]:
    """Values of digits with the first point taken out, how many are behind it, and if there was one."""
    wide, small = values.type, _vector(_I8, 8 * _EIGHT)
    points = builder.icmp_unsigned("==", builder.bitcast(values, small), _all(small, ord(".") ^ ord("0")))
    points = builder.bitcast(builder.sext(points, small), wide)
    first = builder.and_(points, builder.neg(points))  # the lowest bit of that byte, or nothing
    before = builder.sub(first, _all(wide, 1))
    behind = builder.not_(builder.sub(builder.shl(first, _all(wide, 8)), _all(wide, 1)))
    joined = builder.or_(
        builder.and_(values, behind), builder.shl(builder.and_(values, before), _all(wide, 8))
    )
    is_there = builder.icmp_unsigned("!=", points, _all(wide, 0))
    count_bits = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(wide, [wide]), f"llvm.ctpop.v{_EIGHT}i64"
    )
    n_behind = builder.lshr(builder.call(count_bits, [behind]), _all(wide, 3))
    return builder.select(is_there, joined, values), n_behind, is_there


def _powers_of_ten(builder: Any, exponents: Any) -> Any:
    """As doubles, for exponents up to 7."""
    kind = _vector(_DOUBLE)
    power = None
    for bit, factor in ((1, 10.0), (2, 100.0), (4, 10_000.0)):
        asked = builder.and_(exponents, _all(exponents.type, bit))
        is_set = builder.icmp_unsigned("!=", asked, _all(exponents.type, 0))
        factors = builder.select(is_set, _all(kind, factor), _all(kind, 1.0))
        power = factors if power is None else builder.fmul(power, factors)
    return power


def _every_other(builder: Any, marks: Any, k: Any, first: int) -> Any:
    """Eight marks, every other one of the sixteen from the k-th on, as a vector."""
    sixteen = _vector(_I64, 2 * _EIGHT)
    found = builder.load(builder.bitcast(builder.gep(marks, [k]), sixteen.as_pointer()), align=8)
    lanes = ir.Constant(_vector(_I32), list(range(first, 2 * _EIGHT, 2)))
    return builder.shuffle_vector(found, found, lanes)


def _store(builder: Any, array: Any, feature: Any, values: Any) -> None:
    pointer = builder.gep(array, [feature])
    size = 4 if values.type.element in (_I32, ir.FloatType()) else 8
    builder.store(values, builder.bitcast(pointer, values.type.as_pointer()), align=size)


@intrinsic
def mark_bits(typingctx: Any, text: Any, p: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        start = builder.gep(context.make_array(sig.args[0])(context, builder, args[0]).data, [args[1]])
        kind = _vector(_I8, 64)
        letters = builder.load(builder.bitcast(start, kind.as_pointer()), align=1)
        marked = builder.or_(
            builder.icmp_unsigned("<=", letters, _all(kind, ord(" "))),
            builder.icmp_unsigned("==", letters, _all(kind, ord(":"))),
        )
        return builder.bitcast(marked, _I64)

    return types.uint64(text, p), codegen


def _can_compress() -> bool:
    """Whether there is an instruction that moves the bytes that are asked for next to each other."""
    asked = config.CPU_FEATURES
    return "+avx512vbmi2" in (get_host_cpu_features() if asked is None else asked).split(",")


def _compressed_positions(builder: Any, bits: Any) -> list[Any]:
    """The positions of the first sixteen bits, as two vectors of eight."""
    kind, flags = _vector(_I8, 64), _vector(ir.IntType(1), 64)
    compress = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(kind, [kind, kind, flags]), "llvm.x86.avx512.mask.compress.v64i8"
    )
    every = ir.Constant(kind, list(range(64)))
    found = builder.call(compress, [every, _all(kind, 0), builder.bitcast(bits, flags)])
    eights = [ir.Constant(_vector(_I32), list(range(first, first + _EIGHT))) for first in (0, _EIGHT)]
    return [builder.zext(builder.shuffle_vector(found, found, eight), _vector(_I64)) for eight in eights]


def _counted_positions(builder: Any, bits: Any) -> list[Any]:
    """The same, one bit after another."""
    eights = []
    for _ in range(2):
        eight = ir.Constant(_vector(_I64), ir.Undefined)
        for lane in range(_EIGHT):
            position = builder.cttz(bits, ir.Constant(ir.IntType(1), 0))
            eight = builder.insert_element(eight, position, _I32(lane))
            bits = builder.and_(bits, builder.sub(bits, _I64(1)))
        eights.append(eight)
    return eights


@intrinsic
def put_sixteen(typingctx: Any, marks: Any, count: Any, first: Any, bits: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        marks = context.make_array(sig.args[0])(context, builder, args[0]).data
        positions = _compressed_positions if _can_compress() else _counted_positions
        for k, eight in enumerate(positions(builder, args[3])):
            lanes = ir.Constant(_vector(_I32), [0] * _EIGHT)
            first = builder.insert_element(ir.Constant(eight.type, ir.Undefined), args[2], _I32(0))
            found = builder.add(eight, builder.shuffle_vector(first, first, lanes))
            _store(builder, marks, builder.add(args[1], _I64(k * _EIGHT)), found)
        return context.get_dummy_value()

    return types.void(marks, count, first, bits), codegen


@intrinsic
def read_eight(typingctx: Any, text: Any, at: Any, k: Any, ids: Any, data: Any, feature: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        arrays = (context.make_array(sig.args[i])(context, builder, args[i]) for i in (0, 1, 3, 4))
        text, marks, ids, data = (array.data for array in arrays)
        k, feature = args[2], args[5]
        wide, narrow, doubles = _vector(_I64), _vector(_I32), _vector(_DOUBLE)
        base = builder.ptrtoint(text, _I64)

        def addresses(first: int, less: int) -> list[Any]:
            """So many bytes before every other mark."""
            places = [builder.add(k, _I64(j)) for j in range(first, first + 2 * _EIGHT, 2)]
            found = [builder.load(builder.gep(marks, [place])) for place in places]
            return [builder.add(builder.add(base, mark), _I64(-less)) for mark in found]

        # The last seven bytes of each value, and what is behind it.
        tails = _gathered(builder, addresses(2, 7), _I64)
        ends = builder.lshr(tails, _all(wide, 56))
        space = builder.icmp_unsigned("==", ends, _all(wide, ord(" ")))
        newline = builder.icmp_unsigned("==", ends, _all(wide, ord("\n")))
        # Those up to the end of the line: all bits up to the first newline's, or all eight.
        line_end = builder.bitcast(newline, _I8)
        line_end = builder.and_(line_end, builder.neg(line_end))
        asked = builder.sub(builder.shl(line_end, _I8(1)), _I8(1))

        def all_of(flags: Any) -> Any:
            """Whether a flag is set for each of those."""
            return builder.icmp_unsigned("==", builder.and_(builder.bitcast(flags, _I8), asked), asked)

        result = cgutils.alloca_once_value(builder, _I64(0))
        with builder.if_then(all_of(builder.or_(space, newline))):
            starts, colons = _every_other(builder, marks, k, 0), _every_other(builder, marks, k, 1)
            stops = _every_other(builder, marks, builder.add(k, _I64(1)), 1)
            heads = _gathered(builder, addresses(1, 0), _I32)

            def byte(number: int) -> Any:
                """A byte of each value, from the colon on."""
                return builder.and_(builder.lshr(heads, _all(narrow, 8 * number)), _all(narrow, 0xFF))

            def equal(numbers: Any, value: int) -> Any:
                return builder.icmp_unsigned("==", numbers, _all(numbers.type, value))

            def below(numbers: Any, value: int) -> Any:
                return builder.icmp_unsigned("<", numbers, _all(numbers.type, value))

            negative = equal(byte(1), ord("-"))
            size = builder.sub(builder.sub(stops, colons), _all(wide, 1))
            size = builder.sub(size, builder.zext(negative, wide))
            # A value of eight or nine letters begins with a digit and a point; that digit is not in its tail.
            long = builder.icmp_unsigned(">", size, _all(wide, 7))
            digit = builder.sub(builder.select(negative, byte(2), byte(1)), _all(narrow, ord("0")))
            point = equal(builder.select(negative, byte(3), byte(2)), ord("."))
            fine = builder.and_(equal(byte(0), ord(":")), below(builder.sub(size, _all(wide, 1)), 9))
            begun = builder.and_(point, below(digit, 10))
            fine = builder.and_(fine, builder.or_(builder.not_(long), begun))

            n_digits = builder.sub(builder.sub(colons, starts), _all(wide, 1))
            fine = builder.and_(fine, below(builder.sub(n_digits, _all(wide, 1)), 8))
            letters = builder.xor(_gathered(builder, addresses(1, 8), _I64), _all(wide, _ZEROS))
            numbers, others = _whole_numbers(builder, _last_bytes(builder, letters, n_digits))
            fine = builder.and_(fine, equal(others, 0))

            letters = builder.shl(builder.xor(tails, _all(wide, _ZEROS)), _all(wide, 8))
            letters = _last_bytes(builder, letters, builder.select(long, _all(wide, 7), size))
            letters, exponent, has_point = _without_point(builder, letters)
            exponent = builder.select(equal(size, 9), _all(wide, 7), exponent)
            tail, others = _whole_numbers(builder, letters)
            fine = builder.and_(fine, equal(others, 0))
            # No digit at all, or a second point.
            wrong = builder.and_(has_point, builder.or_(equal(size, 1), equal(size, 9)))
            fine = builder.and_(fine, builder.not_(wrong))

            power = _powers_of_ten(builder, exponent)
            begin = builder.select(long, builder.sitofp(digit, doubles), _all(doubles, 0.0))
            whole = builder.fadd(
                builder.fmul(begin, power), builder.sitofp(builder.trunc(tail, narrow), doubles)
            )
            values = builder.fdiv(whole, power)  # of whole numbers that are doubles: the nearest one
            values = builder.select(negative, builder.fneg(values), values)
            if sig.args[3].dtype.bitwidth == _I32.width:
                numbers = builder.trunc(numbers, narrow)
            if sig.args[4].dtype == types.float32:
                values = builder.fptrunc(values, _vector(ir.FloatType()))
            _store(builder, ids, feature, numbers)
            _store(builder, data, feature, values)
            count = builder.zext(builder.ctpop(asked), _I64)
            builder.store(builder.select(all_of(fine), count, _I64(0)), result)
        return builder.load(result)

    return types.uint64(text, at, k, ids, data, feature), codegen
