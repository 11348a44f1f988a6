// Parses arbitrary bytes as Vowpal Wabbit's text, by fast and by plain code.
#include "text_driver.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace maxcosine;
  if (size == 0) return 0;
  ReadOptions options = options_of(data[0]);
  options.exact = options.bits == 0;
  const std::string text(data + 1, data + size);
  if ((data[0] & 128) != 0)
    check_doubled(text, [&](std::string_view block) { return parse_vw<double>(block, options); });
  else
    check_doubled(text, [&](std::string_view block) { return parse_vw<float>(block, options); });
  return 0;
}
