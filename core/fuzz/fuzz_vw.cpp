// Parses arbitrary bytes as Vowpal Wabbit's text and compares the result with that of a plain reader.
#include "text_driver.hpp"

namespace {

using namespace maxcosine;

template <class Value>
void check(std::string_view text, const ReadOptions& options) {
  const plain::Result found = plain::as_result(parse_vw<Value>(text, options), options.exact);
  expect_equal(found, plain::read<Value>(text, options, options.exact, plain::read_vw<Value>), text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  ReadOptions options = options_of(data[0]);
  options.exact = options.bits == 0;
  const PaddedText padded(data + 1, size - 1, (data[0] & 64) != 0 ? '7' : '\n');
  if ((data[0] & 128) != 0)
    check<double>(padded.text(), options);
  else
    check<float>(padded.text(), options);
  return 0;
}
