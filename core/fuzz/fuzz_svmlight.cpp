// Parses arbitrary bytes as svmlight text and compares the result with that of a plain reader.
#include "text_driver.hpp"

namespace {

using namespace maxcosine;

template <class Key, class Value>
void check(std::string_view text, const ReadOptions& options) {
  const plain::Result found = plain::as_result(parse_svmlight<Key, Value>(text, options), false);
  expect_equal(found, plain::read<Value>(text, options, false, plain::read_svmlight<Value>), text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const ReadOptions options = options_of(data[0]);
  const PaddedText padded(data + 1, size - 1, (data[0] & 64) != 0 ? '7' : '\n');
  if (options.exact)
    check<std::uint64_t, double>(padded.text(), options);
  else if ((data[0] & 128) != 0)
    check<std::uint32_t, double>(padded.text(), options);
  else
    check<std::uint32_t, float>(padded.text(), options);
  return 0;
}
