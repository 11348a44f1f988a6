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

// The last bytes of a name, at most eight of them; it never reads past the end.
[[nodiscard]] inline std::uint64_t load_tail(const char* from, std::size_t size) noexcept {
  if (size >= 8) return load_word<std::uint64_t>(from + size - 8);
  if (size >= 4) return load_word<std::uint32_t>(from) | load_word<std::uint32_t>(from + size - 4) << 32;
  if (size == 0) return 0;
  return load_word<std::uint8_t>(from) | load_word<std::uint8_t>(from + size / 2) << 8 |
         load_word<std::uint8_t>(from + size - 1) << 16;
}

[[nodiscard]] inline std::uint64_t hash_name(std::string_view name) noexcept {
  std::uint64_t hash = name.size();
  std::size_t at = 0;
  for (; at + 8 < name.size(); at += 8) hash = mix(hash ^ load_word<std::uint64_t>(name.data() + at));
  return mix(mix(hash ^ load_tail(name.data() + at, name.size() - at)));
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
    std::size_t place = place_of_id(id);
    if (places_[place] != NO_SLOT) return places_[place];
    if (!grow) return NO_SLOT;
    if (is_full()) {
      make_room();
      place = place_of_id(id);
    }
    reserve_words(1);
    keys_.push_back(id);
    places_[place] = count_;
    return count_++;
  }

  std::uint32_t slot_of_name(std::string_view name, bool grow) { return slot_of_name(name, hash_name(name), grow); }

  std::uint32_t slot_of_name(std::string_view name, std::uint64_t hash, bool grow) {
    std::size_t place = place_of_name(name, hash);
    if (places_[place] != NO_SLOT) return slot_of_record(places_[place]);
    if (!grow) return NO_SLOT;
    if (is_full()) {
      make_room();
      place = place_of_name(name, hash);
    }
    const std::size_t record = keys_.size();
    append_record(name);
    places_[place] = std::uint32_t(record);
    return count_++;
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
    for (std::size_t start = 0; start < ids.size(); start += GROUP) {
      const std::size_t stop = std::min(start + GROUP, ids.size());
      for (std::size_t k = start; k < stop; ++k) prefetch_place(hash_id(ids[k]));
      for (std::size_t k = start; k < stop; ++k) prefetch_key(hash_id(ids[k]));
      for (std::size_t k = start; k < stop; ++k) slots[k] = values[k] == 0 ? NO_SLOT : slot_of_id(ids[k], grow);
    }
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
  [[nodiscard]] std::size_t next_place(std::size_t place) const noexcept { return (place + 1) & (places_.size() - 1); }
  [[nodiscard]] bool is_full() const noexcept { return count_ >= std::min(places_.size() / 4 * 3, MAX_FEATURES); }

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
    while (places_[place] != NO_SLOT && name_at(places_[place]) != name) place = next_place(place);
    return place;
  }

  void append_record(std::string_view name) {
    if (name.size() > std::numeric_limits<std::uint32_t>::max())
      throw std::overflow_error("a feature name is longer than 4 GiB; shorten it");
    const std::size_t record = keys_.size();
    reserve_words(record_words(name.size()));
    keys_.resize(record + record_words(name.size()));
    keys_[record] = std::uint64_t(count_) << 32 | name.size();
    if (!name.empty()) std::memcpy(&keys_[record + 1], name.data(), name.size());
  }

  // Grows by a quarter, where std::vector would double, to keep the memory of a feature small.
  void reserve_words(std::size_t n) {
    const std::size_t needed = keys_.size() + n;
    if (needed > MAX_WORDS) throw std::overflow_error("the names of an index take at most 32 GiB; hash the features");
    if (needed > keys_.capacity()) keys_.reserve(std::max({needed, keys_.size() / 4 * 5, FIRST_PLACES}));
  }

  void make_room() {
    if (count_ >= MAX_FEATURES) throw std::overflow_error("an index holds at most 2^30 - 1 features; hash the features");
    places_ = std::vector<std::uint32_t>(places_.size() * 2, NO_SLOT);
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
  std::vector<std::uint32_t> places_ = std::vector<std::uint32_t>(FIRST_PLACES, NO_SLOT);  // slots, or records of names
  std::vector<std::uint64_t> keys_;                                                       // ids by slot, or records
};

}  // namespace maxcosine
