// Finds the records of arbitrary bytes, looks at them as lines of JSON, and takes them apart into words.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "../text/json_objects.hpp"
#include "../text/record_starts.hpp"
#include "../text/tokens.hpp"
#include "../text/vw.hpp"

namespace maxcosine {
namespace {

void expect(bool holds, const char* law) {
  if (holds) return;
  std::fprintf(stderr, "this does not hold: %s\n", law);
  std::abort();
}

// Records begin one after another, and a block can be cut behind any whole record.
void check_records(std::string_view text, char delimiter, bool quotes) {
  const char *const begin = text.data(), *const stop = begin + text.size();
  const RecordStarts all = find_records(begin, stop, delimiter, quotes);
  for (std::size_t k = 0; k < all.starts.size(); ++k) {
    expect(all.starts[k] >= 0 && all.starts[k] < std::int64_t(text.size()), "a record starts in the text");
    expect(k == 0 || (all.starts[k - 1] < all.starts[k] && all.lines[k - 1] < all.lines[k]), "starts and lines rise");
    const char* const start = begin + all.starts[k];
    expect(std::count(begin, start, '\n') == all.lines[k], "lines are those of the starts");
    (void)check_json_line(start, end_of_line(start, stop));
  }
  const char* const cut = begin + all.whole;
  const RecordStarts first = find_records(begin, cut, delimiter, quotes), second = find_records(cut, stop, delimiter, quotes);
  expect(first.whole == all.whole && !first.is_open && second.whole == 0, "what is whole stays so");
  expect(first.starts.size() + second.starts.size() == all.starts.size(), "a cut behind a whole record loses none");
  expect(first.n_lines + second.n_lines == all.n_lines, "a cut loses no line");
  expect(all.is_open == second.is_open, "only the last record can be within quotes");
}

[[nodiscard]] TokenizedTexts tokens_of(std::string_view text, const TokenOptions& options) {
  Tokenizer tokenizer("word:", "word~", options);
  tokenizer.add(text);
  tokenizer.add(text);
  return std::move(tokenizer).take();
}

// Hashed features are the hashes of the names.
void check_tokens(std::string_view text, std::uint8_t byte) {
  TokenOptions options{0, byte & 3u, 0, 0, true};
  if ((byte & 4) != 0 || options.ngrams == 0) {
    options.min_chars = 1 + (byte >> 3 & 3);
    options.max_chars = options.min_chars + (byte >> 5);
  }
  const TokenizedTexts named = tokens_of(text, options);
  options.bits = 18;
  const TokenizedTexts hashed = tokens_of(text, options);
  const std::size_t n = named.name_starts.size() - 1;
  expect(named.indptr.back() == std::int64_t(n) && hashed.columns.size() == n, "there is one column for each name");
  expect(named.indptr[1] * 2 == named.indptr[2], "the same text has the same features");
  for (std::size_t k = 0; k < n; ++k) {
    std::string name(named.letters.data() + named.name_starts[k], named.letters.data() + named.name_starts[k + 1]);
    const std::string prefix = name.substr(0, 5) + std::string(PADDING, '\0');
    const std::size_t size = name.size() - 5;
    name += std::string(PADDING, '\0');
    expect(hashed.columns[k] == column_of_name({prefix.data(), 5}, {name.data() + 5, size}, 18), "columns are hashes");
  }
}

}  // namespace
}  // namespace maxcosine

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace maxcosine;
  if (size == 0) return 0;
  const std::vector<char> memory(data + 1, data + size);  // a sanitizer sees reads beyond its end
  const std::string_view text(memory.data(), memory.size());
  for (const char delimiter : {'\0', ',', '\t'}) {
    check_records(text, delimiter, false);
    if (delimiter != '\0') check_records(text, delimiter, true);
  }
  check_tokens(text, data[0]);
  return 0;
}
