// Drives the feature index with arbitrary ids and names, beside a std::unordered_map that must agree with it.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "../feature_index.hpp"

namespace {

using maxcosine::FeatureIndex;
using maxcosine::NO_SLOT;

// Stops the fuzzer if the index is wrong.
void check(bool holds) {
  if (!holds) std::abort();
}

// Reads the input from its start; behind its end there are zeros.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}

  [[nodiscard]] bool empty() const { return at_ >= size_; }
  std::uint8_t byte() { return empty() ? 0 : data_[at_++]; }

  // Ids of one to eight bytes, so that some of them repeat, shifted so that low bits may all be zero.
  std::uint64_t id() {
    const std::uint8_t shape = byte();
    std::uint64_t id = 0;
    for (int k = 0; k <= (shape & 7); ++k) id = id << 8 | byte();
    return id << (shape >> 3 & 31);
  }

  // Names that differ in one letter, in memory of exactly their size, so that a sanitizer sees reads past their end.
  std::vector<char> name() {
    std::vector<char> letters(byte() % 40, 'a');
    if (!letters.empty()) letters[byte() % letters.size()] = char(byte());
    return letters;
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_, at_ = 0;
};

template <class Key>
void expect(std::uint32_t slot, std::unordered_map<Key, std::uint32_t>& known, const Key& key, bool grow) {
  const auto found = known.find(key);
  if (found != known.end()) return check(slot == found->second);
  check(slot == (grow ? known.size() : NO_SLOT));
  if (grow) known.emplace(key, slot);
}

template <class Key>
void truncate(FeatureIndex& index, std::unordered_map<Key, std::uint32_t>& known, std::size_t n) {
  index.truncate(n);
  std::erase_if(known, [n](const auto& item) { return item.second >= n; });
  check(index.count() == known.size());
}

void drive_ids(Input& input) {
  FeatureIndex index(FeatureIndex::Kind::ids);
  std::unordered_map<std::uint64_t, std::uint32_t> known;
  while (!input.empty()) {
    const std::uint8_t action = input.byte();
    if (action == 255) truncate(index, known, input.byte());
    const bool grow = action & 3;
    const std::vector<std::uint64_t> ids{input.id(), input.id(), action};
    const std::vector<float> values{1.0f, float(action & 4), -1.0f};
    std::vector<std::uint32_t> slots(ids.size());
    index.map_ids(std::span<const std::uint64_t>(ids), std::span<const float>(values), grow, std::span(slots));
    for (std::size_t k = 0; k < ids.size(); ++k) {
      if (values[k] == 0)
        check(slots[k] == NO_SLOT);
      else
        expect(slots[k], known, ids[k], grow);
    }
  }
  check(index.count() == known.size() && index.ids().size() == known.size());
  for (std::uint32_t slot = 0; slot < index.count(); ++slot) check(known.at(index.ids()[slot]) == slot);
}

void drive_names(Input& input) {
  FeatureIndex index(FeatureIndex::Kind::names);
  std::unordered_map<std::string, std::uint32_t> known;
  while (!input.empty()) {
    const std::uint8_t action = input.byte();
    if (action == 255) truncate(index, known, input.byte());
    const bool grow = action & 3;
    std::vector<char> letters = input.name();
    std::vector<std::int64_t> starts{0, std::int64_t(letters.size())};
    if (action & 8) {  // a second name behind the first one
      const std::vector<char> second = input.name();
      letters.insert(letters.end(), second.begin(), second.end());
      starts.push_back(std::int64_t(letters.size()));
    }
    letters.shrink_to_fit();
    const std::vector<double> values(starts.size() - 1, action & 4 ? 0.0 : 0.5);
    std::vector<std::uint32_t> slots(values.size());
    index.map_names(letters.data(), std::span<const std::int64_t>(starts), std::span<const double>(values), grow,
                    std::span(slots));
    for (std::size_t k = 0; k < slots.size(); ++k) {
      const std::string name(letters.begin() + starts[k], letters.begin() + starts[k + 1]);
      if (values[k] == 0)
        check(slots[k] == NO_SLOT);
      else
        expect(slots[k], known, name, grow);
    }
  }
  std::uint32_t slot = 0;
  index.each_name([&](std::string_view name) { check(known.at(std::string(name)) == slot++); });
  check(slot == known.size() && index.count() == known.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  if (input.byte() & 1)
    drive_ids(input);
  else
    drive_names(input);
  return 0;
}
