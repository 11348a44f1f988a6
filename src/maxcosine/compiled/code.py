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
from typing import Any

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


# Tables of an object file, each of which has one of these layouts, and what is in it.
_SECTION = struct.Struct("<IIQQQQIIQQ")  # name, kind, flags, ..., offset, size, link, info, alignment, ...
_SYMBOL = struct.Struct("<IBBHQQ")  # name, info, other, section, value, size
_RELOCATION = struct.Struct("<QIIq")  # offset, kind, symbol, addend


def _load_elf(code: bytes) -> int | None:
    """Load code and constants in which there is nothing but addresses to fill in; None if there is more."""
    magic, _, kind, machine, _, _, _, first, *_, n_sections, _ = _HEADER.unpack_from(code)
    if (magic, kind, machine) != (_MAGIC, _RELOCATABLE, _X86_64):
        return None
    sections = list(_SECTION.iter_unpack(code[first : first + n_sections * _SECTION.size]))
    contents = [code[offset : offset + size] for _, _, _, _, offset, size, *_ in sections]
    places: dict[int, int] = {}
    size = 0
    for k, (_, kind, flags, _, _, length, _, _, alignment, _) in enumerate(sections):
        if flags & _ALLOCATED and kind != _UNWINDING:
            if flags & _WRITABLE and length:
                return None
            places[k] = size = -(-size // max(alignment, 1)) * max(alignment, 1)
            size += length
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for k, place in places.items():
        memory[place : place + len(contents[k])] = contents[k]

    table, names = next(
        (contents[k], contents[link])
        for k, (_, kind, _, _, _, _, link, *_) in enumerate(sections)
        if kind == _SYMBOL_TABLE
    )
    symbols = [
        (names[name : names.index(b"\0", name)].decode(), section, value)
        for name, _, _, section, value, _ in _SYMBOL.iter_unpack(table)
    ]
    known = {_UNDEFINED, *places}
    for k, (_, kind, _, _, _, _, _, info, *_) in enumerate(sections):
        if kind == _RELOCATIONS and info in places:
            for offset, how, symbol, addend in _RELOCATION.iter_unpack(contents[k]):
                name, section, value = symbols[symbol]
                if how != _ADDRESS or section not in known:
                    return None
                address = _address_in_c(name) if section == _UNDEFINED else base + places[section] + value
                place = places[info] + offset
                memory[place : place + 8] = (address + addend).to_bytes(8, "little")
    c = ctypes.CDLL(None, use_errno=True)
    if c.mprotect(ctypes.c_void_p(base), ctypes.c_size_t(size), mmap.PROT_READ | mmap.PROT_EXEC):
        raise OSError(ctypes.get_errno(), "the system does not let compiled code be run")
    _keep(memory)
    section, value = next((section, value) for name, section, value in symbols if name == ENTRY)
    return base + places[section] + int(value)


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
