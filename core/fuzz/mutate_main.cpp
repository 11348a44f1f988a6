// Drives LLVMFuzzerTestOneInput with mutated lines where libFuzzer is not installed: `driver [seconds] [seed]`.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Random = std::mt19937_64;

const std::string SVMLIGHT_LINES[] = {
    "+1 qid:3 1:1 17:0.5 123456:0.123456 1048575:6.2699720e-02 # a comment",
    "-1 1:0.4797 3:0.1463 4:0.6984 7:0.2920 13:0.8711 15:-0.2754 34:12 38:.5 41:5. 50:-7 106:1.2345678 107:1.234567",
    "-1 1:1 2:-2.5e3 18446744073709551615:0.1234567890123456789 7:3 7:-3 00000000000000000000012:1 2:0.5",
    "1.50 268435455:1e300 268435456:1 99999999:1e-50 3:179769313486231570814527423731704356798070e270 5:4.9e-324",
    "spam 3:1\t4:2  5:.5 6:1. ",
    "\xe6\x97\xa5 13:1e23 14:9007199254740993 15:2.2250738585072011e-308 16:nan",
    "",
    "# nothing",
};
const std::string VW_LINES[] = {
    "1 2.5 0.5 'tag|user:0.5 age:0.3 male|item id_1234567890 price:1e3 | plain",
    "-1 |f 12:0.25 13:1 14:-2.5e-3 word another_word:2 yet_another_long_word word:-1 word:0",
    "spam 'x |a b c d e:1.5",
    "\xe6\x97\xa5 |gr\xc3\xb6\xc3\x9f" "e \xc3\xa4:1 \xc3\xb6:0.123456789 \xc3\xbc",
    "1 1e39 |f:1e30 a:1e9 b:inf",
    "| a b:3",
    "",
};

const std::string RECORDS[] = {
    "id,\"quoted, with \"\"quotes\"\" and\na line end\",2024-01-31,3.5",
    "\"\",,\"a\"b,c\"d\",\r",
    "plain\ttabs\tand \"quotes\" within",
    "{\"a\": {\"b\": [1, {\"c\": \"}\\\"\\\\\"}]}, \"text\": \"Two words\"}",
    "{\"a\":1}{\"a\":2}",
    "Na\xc3\xafve caf\xc3\xa9s_in \xe6\x9d\xb1\xe4\xba\xac \xe3\x82\xab\xe3\x83\x8a \xf0\x9f\x98\x80 e\xcc\x81 42nd",
    "",
};

template <class Items>
const auto& one_of(const Items& items, Random& random) {
  return items[random() % std::size(items)];
}

std::string some_lines(Random& random) {
  const auto kind = random() % 3;
  std::string text(1, static_cast<char>(random()));  // drivers take options from the first byte
  for (std::size_t n = random() % 6; n-- > 0;) {
    text += kind == 0 ? one_of(VW_LINES, random) : kind == 1 ? one_of(SVMLIGHT_LINES, random) : one_of(RECORDS, random);
    text += random() % 8 == 0 ? "\r\n" : "\n";
  }
  return text;
}

void mutate(std::string& text, Random& random) {
  static const std::string MEANINGFUL("0123456789.eE+-:|# \t\r\n'\0\x80\xc3\xff" "aqid\",{}[]\\", 38);
  const std::size_t at = random() % text.size();
  switch (random() % 6) {
    case 0: text[at] = one_of(MEANINGFUL, random); break;
    case 1: text.insert(at, 1, one_of(MEANINGFUL, random)); break;
    case 2: text.erase(at, 1 + random() % 5); break;
    case 3: text.insert(at, text.substr(random() % text.size(), random() % 30)); break;
    case 4: text[at] ^= static_cast<char>(1 << random() % 8); break;
    case 5: if (random() % 4 == 0) text.resize(at); break;
  }
}

}  // namespace

int main(int argc, char** argv) {
  using Clock = std::chrono::steady_clock;
  const double seconds = argc > 1 ? std::atof(argv[1]) : 60;
  Random random(argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
  const auto start = Clock::now();
  std::size_t n_inputs = 0, n_bytes = 0;
  while (std::chrono::duration<double>(Clock::now() - start).count() < seconds) {
    std::string text = some_lines(random);
    for (std::size_t n = random() % 8; n-- > 0 && !text.empty();) mutate(text, random);
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
    ++n_inputs;
    n_bytes += text.size();
  }
  std::printf("%zu inputs, %.1f MB, nothing found\n", n_inputs, static_cast<double>(n_bytes) / 1e6);
}
