// The exact feature index: 64-bit ids, or names, to slots, for a feature space that is not known in advance.
//
// Keys are stored in the order of their slots, so frequent features are neighbours in memory. A table of places
// with open addressing and linear probing, at most three quarters full, tells where each key is stored.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace maxcosine {

inline constexpr std::uint32_t NO_SLOT = std::numeric_limits<std::uint32_t>::max();
inline constexpr std::size_t MAX_FEATURES = (std::size_t{1} << 30) - 1;

// Spreads all bits of a word upwards: the golden ratio times 2^64 (Knuth, volume 3, section 6.4).
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t word) noexcept {
  return (word ^ (word >> 32)) * 0x9E3779B97F4A7C15u;
}

template <class Word>
[[nodiscard]] inline std::uint64_t load_word(const char* from) noexcept {
  Word word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

// The first and the last eight bytes of a name, or what a shorter name has; up to 16 bytes they tell all of it.
struct NameEnds {
  std::uint64_t first, last;

  // Branches on the size only four ways, because sizes vary and a loop over words would often be mispredicted.
  [[nodiscard]] static NameEnds of(std::string_view name) noexcept {
    const char* start = name.data();
    const char* stop = start + name.size();
    if (name.size() >= 8) return {load_word<std::uint64_t>(start), load_word<std::uint64_t>(stop - 8)};
    if (name.size() >= 4) return {load_word<std::uint32_t>(start), load_word<std::uint32_t>(stop - 4)};
    if (name.empty()) return {0, 0};
    return {load_word<std::uint8_t>(start) << 8 | load_word<std::uint8_t>(start + name.size() / 2),
            load_word<std::uint8_t>(stop - 1)};
  }
  [[nodiscard]] bool operator==(const NameEnds&) const noexcept = default;
};

[[nodiscard]] inline std::uint64_t hash_name(std::string_view name) noexcept {
  const NameEnds ends = NameEnds::of(name);
  std::uint64_t hash = mix(mix(name.size() ^ ends.first) ^ ends.last);
  for (std::size_t at = 8; at + 8 < name.size(); at += 8)
    hash = mix(hash ^ load_word<std::uint64_t>(name.data() + at));
  return hash;
}

[[nodiscard]] inline bool same_name(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size() || NameEnds::of(a) != NameEnds::of(b)) return false;
  return a.size() <= 16 || std::memcmp(a.data() + 8, b.data() + 8, a.size() - 16) == 0;
}

// Slots 0, 1, 2, ... for ids or names in the order of their first appearance.
//
// Threads may look up (grow = false) at the same time; whatever changes the index needs it exclusively.
class FeatureIndex {
 public:
  enum class Kind { ids, names };

  explicit FeatureIndex(Kind kind) : kind_(kind) {}

  [[nodiscard]] Kind kind() const noexcept { return kind_; }
  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  [[nodiscard]] std::size_t nbytes() const noexcept {
    return places_.capacity() * sizeof(std::uint32_t) + keys_.capacity() * sizeof(std::uint64_t);
  }

  // The slot of a key; if it is unknown, a new slot if the index may grow, or else NO_SLOT.
  std::uint32_t slot_of_id(std::uint64_t id, bool grow) {
    const std::uint32_t slot = places_[place_of_id(id)];
    return slot == NO_SLOT && grow ? add_id(id) : slot;
  }

  std::uint32_t slot_of_name(std::string_view name, bool grow) { return slot_of_name(name, hash_name(name), grow); }

  std::uint32_t slot_of_name(std::string_view name, std::uint64_t hash, bool grow) {
    const std::uint32_t record = places_[place_of_name(name, hash)];
    if (record != NO_SLOT) return slot_of_record(record);
    return grow ? add_name(name, hash) : NO_SLOT;
  }

  // Lookups of several keys overlap if each prefetches first the place of its hash and then the key stored there.
  // The hash of an id is hash_id(id).
  [[nodiscard]] static constexpr std::uint64_t hash_id(std::uint64_t id) noexcept { return mix(id); }
  void prefetch_place(std::uint64_t hash) const noexcept { __builtin_prefetch(&places_[first_place(hash)]); }
  void prefetch_key(std::uint64_t hash) const noexcept {
    const std::uint32_t found = places_[first_place(hash)];
    if (found != NO_SLOT) __builtin_prefetch(&keys_[found]);
  }

  // Slots of many ids: NO_SLOT where the value is zero, and where the id is unknown and the index may not grow.
  template <class Id, class T>
  void map_ids(std::span<const Id> ids, std::span<const T> values, bool grow, std::span<std::uint32_t> slots) {
    for (std::size_t k = 0; k < ids.size(); ++k) slots[k] = values[k] == 0 ? NO_SLOT : slot_of_id(ids[k], grow);
  }

  // As map_ids: name k is letters[starts[k]:starts[k + 1]].
  template <class T>
  void map_names(const char* letters, std::span<const std::int64_t> starts, std::span<const T> values, bool grow,
                 std::span<std::uint32_t> slots) {
    std::uint64_t hashes[GROUP];
    const auto name = [&](std::size_t k) {
      return std::string_view(letters + starts[k], std::size_t(starts[k + 1] - starts[k]));
    };
    for (std::size_t start = 0; start < values.size(); start += GROUP) {
      const std::size_t stop = std::min(start + GROUP, values.size());
      for (std::size_t k = start; k < stop; ++k) {
        hashes[k - start] = hash_name(name(k));
        prefetch_place(hashes[k - start]);
      }
      for (std::size_t k = start; k < stop; ++k) prefetch_key(hashes[k - start]);
      for (std::size_t k = start; k < stop; ++k)
        slots[k] = values[k] == 0 ? NO_SLOT : slot_of_name(name(k), hashes[k - start], grow);
    }
  }

  // The ids in the order of their slots.
  [[nodiscard]] std::span<const std::uint64_t> ids() const noexcept { return keys_; }

  // Calls visit(name) for each name in the order of their slots.
  template <class Visit>
  void each_name(Visit visit) const {
    for (std::size_t record = 0; record < keys_.size(); record += record_words(name_at(record).size()))
      visit(name_at(record));
  }

  // Forgets all features but the first n. It allocates nothing, so it cannot fail.
  void truncate(std::size_t n) noexcept {
    if (n >= count_) return;
    std::size_t n_words = n;
    if (kind_ == Kind::names) {
      n_words = 0;
      for (std::size_t slot = 0; slot < n; ++slot) n_words += record_words(name_at(n_words).size());
    }
    keys_.resize(n_words);
    count_ = std::uint32_t(n);
    fill_places();
  }

 private:
  static constexpr std::size_t GROUP = 32;
  static constexpr std::size_t FIRST_PLACES = 64;
  static constexpr std::size_t MAX_WORDS = NO_SLOT;  // NO_SLOT itself marks an empty place

  [[nodiscard]] std::size_t first_place(std::uint64_t hash) const noexcept { return hash >> shift_; }
  [[nodiscard]] std::size_t next_place(std::size_t place) const noexcept {
    return (place + 1) & (places_.size() - 1);
  }

  // A record of a name in keys_: its slot and size in one word, and then its letters, padded with zeros.
  [[nodiscard]] static std::size_t record_words(std::size_t size) noexcept { return 1 + (size + 7) / 8; }
  [[nodiscard]] std::uint32_t slot_of_record(std::size_t record) const noexcept {
    return std::uint32_t(keys_[record] >> 32);
  }
  [[nodiscard]] std::string_view name_at(std::size_t record) const noexcept {
    return {reinterpret_cast<const char*>(&keys_[record] + 1), std::uint32_t(keys_[record])};
  }

  // The place of a key, or the empty place where it belongs.
  [[nodiscard]] std::size_t place_of_id(std::uint64_t id) const noexcept {
    std::size_t place = first_place(hash_id(id));
    while (places_[place] != NO_SLOT && keys_[places_[place]] != id) place = next_place(place);
    return place;
  }
  [[nodiscard]] std::size_t place_of_name(std::string_view name, std::uint64_t hash) const noexcept {
    std::size_t place = first_place(hash);
    while (places_[place] != NO_SLOT && !same_name(name_at(places_[place]), name)) place = next_place(place);
    return place;
  }

  std::uint32_t add_id(std::uint64_t id) {
    make_room(1);
    places_[place_of_id(id)] = count_;
    keys_.push_back(id);
    return count_++;
  }

  std::uint32_t add_name(std::string_view name, std::uint64_t hash) {
    if (name.size() >= NO_SLOT) throw std::overflow_error("a feature name is longer than 4 GiB; shorten it");
    const std::size_t record = keys_.size(), n_words = record_words(name.size());
    make_room(n_words);
    places_[place_of_name(name, hash)] = std::uint32_t(record);
    keys_.resize(record + n_words);
    keys_[record] = std::uint64_t(count_) << 32 | name.size();
    if (!name.empty()) std::memcpy(&keys_[record + 1], name.data(), name.size());
    return count_++;
  }

  // Makes room for one more key of so many words. If memory is short, it throws and the index stays as it was.
  // Keys grow by a quarter, where std::vector would double, to keep the memory of a feature small.
  void make_room(std::size_t n_words) {
    const std::size_t needed = keys_.size() + n_words;
    if (count_ >= MAX_FEATURES) throw std::overflow_error("an index holds at most 2^30 - 1 features; hash them");
    if (needed > MAX_WORDS) throw std::overflow_error("the names of an index take at most 32 GiB; hash them");
    if (needed > keys_.capacity()) keys_.reserve(std::max({needed, keys_.size() / 4 * 5, FIRST_PLACES}));
    if (count_ < places_.size() / 4 * 3) return;
    places_ = std::vector<std::uint32_t>(places_.size() * 2);
    --shift_;
    fill_places();
  }

  void fill_places() noexcept {
    std::fill(places_.begin(), places_.end(), NO_SLOT);
    if (kind_ == Kind::ids) {
      for (std::uint32_t slot = 0; slot < count_; ++slot) places_[place_of_id(keys_[slot])] = slot;
      return;
    }
    std::size_t record = 0;
    each_name([&](std::string_view name) {
      places_[place_of_name(name, hash_name(name))] = std::uint32_t(record);
      record += record_words(name.size());
    });
  }

  Kind kind_;
  std::uint32_t count_ = 0;
  int shift_ = 64 - std::countr_zero(FIRST_PLACES);
  std::vector<std::uint64_t> keys_;  // ids in the order of their slots, or records of names
  // Slots of ids, or where the records of names begin; NO_SLOT if empty.
  std::vector<std::uint32_t> places_ = std::vector<std::uint32_t>(FIRST_PLACES, NO_SLOT);
};

}  // namespace maxcosine
