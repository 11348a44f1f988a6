// Several threads use the core as the product does: they parse blocks of one buffer, learn from them, each alone, and
// score with the same heads at the same time; the lock of the model keeps them apart. Built with ThreadSanitizer.
// Argument: seconds.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "../model_lock.hpp"
#include "../rules/builtin.hpp"
#include "../score.hpp"
#include "../sweep.hpp"
#include "../text/svmlight.hpp"

using namespace maxcosine;

namespace {

constexpr std::size_t N_THREADS = 4, LINES_PER_BLOCK = 50;

using Block = ParsedBlock<std::uint32_t, float>;

std::string random_lines(std::mt19937_64& random, std::size_t n_columns) {
  std::string text;
  for (std::size_t line = 0; line < LINES_PER_BLOCK; ++line) {
    text += random() % 2 ? "+1" : "-1";
    for (std::size_t column = random() % 4; column < n_columns; column += 1 + random() % 9)
      text += " " + std::to_string(column) + ":" + std::to_string(double(random() % 1000) / 100 - 5);
    text += "\n";
  }
  return text;
}

// Owns the arrays that Heads refers to: one averaged MCP head, whose weights grow with the columns seen.
struct Model {
  ModelLock lock;
  std::vector<float> v, bias = {0};
  std::vector<double> total, total_bias = {0};
  std::vector<Head> table = std::vector<Head>(1);
  std::vector<double> state = {0, 0}, params = {0};
  std::vector<RuleCall> rules = {{call_rule<Mcp>}};
  std::vector<std::int64_t> class_seen = {1, 1};
  ModelScalars scalars{};
  Calibration calibration{{1, 0, {1, 0, 1}}, 0, 0};

  Model() {
    table[0] = Head{};
    table[0].positive = table[0].stop = 1;
    table[0].scale_free = 1;
    table[0].scale = 1;
    table[0].highest = -1;
  }

  Heads<float> heads() {
    return {v.data(),     bias.data(), total.data(),  total_bias.data(), table.data(),  1,       v.size(), 1,
            state.data(), 2,           params.data(), 1,                 rules.data(),  false,   nullptr,  0,
            class_seen.data(), &scalars, &calibration, 1};
  }
};

// The weights in other memory, as `Heads.grow` moves them.
template <class T>
std::vector<T> longer(const std::vector<T>& weights, std::size_t n) {
  std::vector<T> moved(n);
  std::copy(weights.begin(), weights.end(), moved.begin());
  return moved;
}

void learn(Model& model, const Block& block) {
  if (!model.lock.try_learn()) model.lock.learn();
  std::vector<std::int64_t> codes(block.codes.begin(), block.codes.end());
  for (auto& code : codes) code &= 1;
  if (block.n_columns > model.v.size()) {
    model.v = longer(model.v, block.n_columns);
    model.total = longer(model.total, block.n_columns);
  }
  const Rows<float> rows{block.indptr.data(), block.keys.data(), block.values.data(), block.squares.data(), true};
  const Outcome outcome = sweep(model.heads(), rows, {codes.data(), nullptr, nullptr, codes.size(), nullptr});
  if (outcome.refusal != Refusal::none || !model.lock.is_learner()) std::abort();
  model.lock.end_learning();
}

void score(Model& model, const Block& block) {
  if (!model.lock.try_read()) model.lock.read();
  if (block.n_columns <= model.v.size()) {
    const Heads<float> heads = model.heads();
    std::vector<double> scores(block.codes.size());
    const Rows<float> rows{block.indptr.data(), block.keys.data(), block.values.data(), nullptr, true};
    score_rows(heads, column_factors(heads, false), rows, scores.size(), 1, scores.data());
  }
  model.lock.end_reading();
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 10;
  std::mt19937_64 random(1);
  Model model;
  std::size_t blocks_done = 0;
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < seconds) {
    std::vector<std::string> texts;
    for (std::size_t k = 0; k < N_THREADS; ++k)
      texts.push_back(std::string(PADDING, '\0') + random_lines(random, 8 + blocks_done % 1000) + std::string(PADDING, '\0'));
    std::vector<std::future<Block>> parsing;
    for (const std::string& text : texts)
      parsing.push_back(std::async(std::launch::async, [&text] {
        const std::string_view lines = std::string_view(text).substr(PADDING, text.size() - 2 * PADDING);
        return parse_svmlight<std::uint32_t, float>(lines, ReadOptions{});
      }));
    std::vector<Block> blocks;
    for (auto& parsed : parsing) blocks.push_back(parsed.get());
    std::vector<std::thread> threads;
    for (const Block& block : blocks) {
      threads.emplace_back([&] { learn(model, block); });
      threads.emplace_back([&] {
        for (int k = 0; k < 3; ++k) score(model, block);
      });
    }
    for (auto& thread : threads) thread.join();
    blocks_done += blocks.size();
    if (model.table[0].seen != std::int64_t(blocks_done * LINES_PER_BLOCK)) std::abort();  // no row was lost
  }
  std::printf("%zu blocks, %lld updates\n", blocks_done, static_cast<long long>(model.table[0].updates));
}
