// Asks the processor which x86-64 level it supports, by cpuid and xgetbv: __builtin_cpu_supports needs a symbol of the
// compiler's runtime library, which not every toolchain links.
#include <nanobind/nanobind.h>

#include <cpuid.h>

namespace {

struct CpuId {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

CpuId cpuid(unsigned leaf) {
  CpuId found;
  if (!__get_cpuid_count(leaf, 0, &found.eax, &found.ebx, &found.ecx, &found.edx)) return {};
  return found;
}

// Whether the operating system saves the registers of AVX.
bool saves_avx_registers() {
  unsigned low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & 6) == 6;
}

constexpr bool has_all(unsigned found, unsigned wanted) { return (found & wanted) == wanted; }

// 3 for x86-64-v3 (AVX2, FMA, BMI, MOVBE, F16C, LZCNT), else 2.
int x86_64_level() {
  constexpr unsigned LZCNT = 1u << 5;
  const CpuId basic = cpuid(1), extended = cpuid(0x80000001), features = cpuid(7);
  if (!has_all(basic.ecx, bit_OSXSAVE | bit_AVX | bit_FMA | bit_MOVBE | bit_F16C)) return 2;
  if (!has_all(extended.ecx, LZCNT) || !has_all(features.ebx, bit_AVX2 | bit_BMI | bit_BMI2)) return 2;
  return saves_avx_registers() ? 3 : 2;
}

}  // namespace

NB_MODULE(_processor, m) { m.def("x86_64_level", &x86_64_level); }
