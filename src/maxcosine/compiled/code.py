"""Object code, as a compiler writes it, brought into memory to be run.

Numba compiles for the large code model, in which every address is written out in 64 bits. To load such code
on Linux and x86-64 is to copy its sections and to fill in the addresses [1]: a millisecond. LLVM, which does
it for all others, takes fifty to be imported.

[1] System V Application Binary Interface, AMD64 Architecture Processor Supplement, chapters 3.5 and 4.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import platform
import struct
import sys
from typing import Any, NamedTuple

ENTRY = "maxcosine_entry"
"""The name of the function by which loaded code is called."""

_HEADER = struct.Struct("<4s12sHHIQQQIHHHHHH")
_MAGIC, _RELOCATABLE, _X86_64 = b"\x7fELF", 1, 62
_SYMBOL_TABLE, _RELOCATIONS, _UNWINDING = 2, 4, 0x70000001
_WRITABLE, _ALLOCATED = 1, 2
_UNDEFINED = 0  # the section of what others define
_ADDRESS = 1  # the relocation that writes out an address, in 64 bits

# Functions of C that Numba calls by names of its own.
_IN_C = {"numba_ldexp": "ldexp", "numba_frexp": "frexp"}


def load(code: bytes) -> int:
    """Bring object code into memory; returns the address of its entry."""
    address = _load_elf(code) if sys.platform == "linux" and platform.machine() == "x86_64" else None
    return _load_by_llvm(code) if address is None else address


class _Section(NamedTuple):
    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int


class _Symbol(NamedTuple):
    name: int
    info: int
    other: int
    section: int
    value: int
    size: int


class _Relocation(NamedTuple):
    offset: int
    kind: int
    symbol: int
    addend: int


_LAYOUTS: dict[Any, struct.Struct] = {
    _Section: struct.Struct("<IIQQQQIIQQ"),
    _Symbol: struct.Struct("<IBBHQQ"),
    _Relocation: struct.Struct("<QIIq"),
}


def _records(kind: Any, code: bytes, offset: int, size: int) -> list[Any]:
    return [kind(*fields) for fields in _LAYOUTS[kind].iter_unpack(code[offset : offset + size])]


def _load_elf(code: bytes) -> int | None:
    """Load code and constants in which there is nothing but addresses to fill in; None if there is more."""
    magic, _, kind, machine, _, _, _, first, *_, n_sections, _ = _HEADER.unpack_from(code)
    if (magic, kind, machine) != (_MAGIC, _RELOCATABLE, _X86_64):
        return None
    sections = _records(_Section, code, first, n_sections * _LAYOUTS[_Section].size)
    places: dict[int, int] = {}
    size = 0
    for k, section in enumerate(sections):
        if section.flags & _ALLOCATED and section.kind != _UNWINDING:
            if section.flags & _WRITABLE and section.size:
                return None
            places[k] = size = -(-size // max(section.alignment, 1)) * max(section.alignment, 1)
            size += section.size
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for k, place in places.items():
        start = sections[k].offset
        memory[place : place + sections[k].size] = code[start : start + sections[k].size]

    table = next(section for section in sections if section.kind == _SYMBOL_TABLE)
    symbols = _records(_Symbol, code, table.offset, table.size)
    names = sections[table.link].offset

    def name_of(symbol: _Symbol) -> str:
        start = names + symbol.name
        return code[start : code.index(b"\0", start)].decode()

    known = {_UNDEFINED, *places}
    for section in sections:
        if section.kind == _RELOCATIONS and section.info in places:
            for relocation in _records(_Relocation, code, section.offset, section.size):
                symbol = symbols[relocation.symbol]
                if relocation.kind != _ADDRESS or symbol.section not in known:
                    return None
                if symbol.section == _UNDEFINED:
                    address = _address_in_c(name_of(symbol))
                else:
                    address = base + places[symbol.section] + symbol.value
                place = places[section.info] + relocation.offset
                memory[place : place + 8] = (address + relocation.addend).to_bytes(8, "little")
    c = ctypes.CDLL(None, use_errno=True)
    if c.mprotect(ctypes.c_void_p(base), ctypes.c_size_t(size), mmap.PROT_READ | mmap.PROT_EXEC):
        raise OSError(ctypes.get_errno(), "the system does not let compiled code be run")
    _keep(memory)
    entry: _Symbol = next(symbol for symbol in symbols if name_of(symbol) == ENTRY)
    return base + places[entry.section] + entry.value


def _keep(owner: Any) -> None:
    """Code stays until the process ends: even then a thread may be running it."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(owner))


@functools.cache
def _address_in_c(name: str) -> int:
    """Where a function of C's library is."""
    library = ctypes.cdll.msvcrt if sys.platform == "win32" else ctypes.CDLL(None)
    function = getattr(library, _IN_C.get(name, name), None)
    if function is None:
        raise RuntimeError(f"compiled code calls {name}, which this system does not have")
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    return address


def _load_by_llvm(code: bytes) -> int:
    import llvmlite.binding as llvm  # it takes a while, and is mostly not needed

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for name in _IN_C:
        llvm.add_symbol(name, _address_in_c(name))
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.object_file.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _keep(engine)
    return int(engine.get_function_address(ENTRY))
