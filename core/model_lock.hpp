// One lock a model: any number of threads read it, or one learns.
//
// Threads are served in the order in which they come, so neither readers nor learners starve; readers that come one
// after another read at the same time. The lock must not be taken twice by one thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace maxcosine {

class ModelLock {
 public:
  // Begins to read or to learn if that needs no waiting; false otherwise.
  [[nodiscard]] bool try_read() {
    const std::lock_guard held(mutex_);
    if (next_ != served_ || learning_) return false;
    ++n_readers_;
    return true;
  }

  [[nodiscard]] bool try_learn() {
    const std::lock_guard held(mutex_);
    if (next_ != served_ || learning_ || n_readers_ > 0) return false;
    begin_learning();
    return true;
  }

  // Waits until this thread may begin.
  void read() {
    std::unique_lock held(mutex_);
    const std::uint64_t ticket = next_++;
    changed_.wait(held, [&] { return served_ == ticket && !learning_; });
    ++n_readers_;
    ++served_;
    wake();  // the next in line may be a reader, too
  }

  void learn() {
    std::unique_lock held(mutex_);
    const std::uint64_t ticket = next_++;
    changed_.wait(held, [&] { return served_ == ticket && !learning_ && n_readers_ == 0; });
    ++served_;
    begin_learning();
  }

  void end_reading() {
    const std::lock_guard held(mutex_);
    if (--n_readers_ == 0) wake();
  }

  void end_learning() {
    const std::lock_guard held(mutex_);
    learning_ = false;
    wake();
  }

  // Whether this thread is the one that learns: it would wait for itself.
  [[nodiscard]] bool is_learner() {
    const std::lock_guard held(mutex_);
    return learning_ && learner_ == std::this_thread::get_id();
  }

 private:
  void wake() {
    if (next_ != served_) changed_.notify_all();
  }

  void begin_learning() {
    learning_ = true;
    learner_ = std::this_thread::get_id();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t next_ = 0, served_ = 0;  // tickets: the next to be given out, and the first that waits
  std::uint64_t n_readers_ = 0;
  bool learning_ = false;
  std::thread::id learner_;
};

}  // namespace maxcosine
