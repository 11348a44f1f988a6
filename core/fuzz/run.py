"""Build the fuzz drivers of the core with sanitizers and run them: ``python core/fuzz/run.py --seconds 300``.

Each driver `fuzz_NAME.cpp` defines LLVMFuzzerTestOneInput. By default it is linked with `mutate_main.cpp`, which
mutates seed inputs and needs only a compiler with AddressSanitizer and UndefinedBehaviorSanitizer; with --libfuzzer
and clang++, libFuzzer drives it. `threads_main.cpp` runs under ThreadSanitizer.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
BUILD = HERE.parent.parent / "build" / "fuzz"
FLAGS = ["-std=c++20", "-O1", "-g", "-fno-omit-frame-pointer", "-ffp-contract=off", "-Wno-psabi"]
ADDRESS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
# Share of the time for the driver of threads.
THREADS_SHARE = 0.1


def compiler(libfuzzer: bool) -> str:
    wanted = ("clang++",) if libfuzzer else (os.environ.get("CXX"), "g++", "clang++", "c++")
    found = next((path for name in wanted if name and (path := shutil.which(name))), None)
    if found is None:
        names = "clang++" if libfuzzer else "g++ or clang++"
        sys.exit(f"error: fuzzing needs {names} with sanitizers; install it, for example: apt-get install g++")
    return found


def levels() -> list[str]:
    """Flags of the instruction sets that this machine can run."""
    flags = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    return ["-march=x86-64-v3"] if " avx2 " in flags and " bmi2 " in flags else []


def build(command: list[str], target: Path) -> Path:
    BUILD.mkdir(parents=True, exist_ok=True)
    subprocess.run([*command, "-o", str(target)], check=True)
    return target


def run(command: list[str]) -> str:
    """Run a driver to its end; its output is shown if it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}\nerror: the driver found something, see above")
    return f"{Path(command[0]).name}: {done.stdout.strip().splitlines()[-1]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300, help="for all drivers together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--libfuzzer", action="store_true", help="use clang's libFuzzer if clang++ is installed")
    options = parser.parse_args()
    libfuzzer = options.libfuzzer and shutil.which("clang++") is not None
    cxx = compiler(libfuzzer)
    drivers = sorted(HERE.glob("fuzz_*.cpp"))
    engine = ["-fsanitize=fuzzer"] if libfuzzer else [str(HERE / "mutate_main.cpp")]
    jobs = [
        ([cxx, *FLAGS, *ADDRESS, *level, str(driver), *engine], BUILD / f"{driver.stem}{'-v3' if level else ''}")
        for driver in drivers
        for level in [[], *([flag] for flag in levels())]
    ]
    threads = ([cxx, *FLAGS, "-fsanitize=thread", str(HERE / "threads_main.cpp"), "-pthread"], BUILD / "threads")
    with ThreadPoolExecutor(2) as pool:
        *binaries, threads_binary = pool.map(lambda job: build(*job), [*jobs, threads])
        seconds = options.seconds * (1 - THREADS_SHARE) * 2 / len(binaries)
        commands = [
            [str(binary), f"-max_total_time={int(seconds)}"]
            if libfuzzer
            else [str(binary), str(seconds), str(options.seed)]
            for binary in binaries
        ]
        for line in pool.map(run, commands):
            print(line)
    print(run([str(threads_binary), str(options.seconds * THREADS_SHARE)]))


if __name__ == "__main__":
    main()
