// A small trainer in a process of its own, for tests that kill it or count what it allocates.
//   train_child train FOLDER THREADS    starts or resumes the run in FOLDER; exit code 0 when it is done
//   train_child allocations             prints how often memory was taken in the steps after the first three
//   train_child full-disk FOLDER        trains on a disk that is too small, mounted at FOLDER for this process alone,
//                                       and prints what it met; exit code 77 when the system does not let it mount
#include <sched.h>
#include <sys/mount.h>

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>

#include "headlight/train/loop.h"
#include "train/small.h"

namespace {

std::atomic<int> allocations{0};

void* counted(std::size_t bytes, std::size_t alignment) {
  ++allocations;
  // aligned_alloc wants whole multiples of the alignment
  void* memory = std::aligned_alloc(alignment, (bytes + alignment) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return counted(bytes, alignof(std::max_align_t));
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace headlight {
namespace {

TrainerOptions options() {
  TrainerOptions o = small_run(30);
  o.checkpoint_interval = 3;
  o.log_interval = 1;
  return o;
}

int train_in(const std::filesystem::path& folder) {
  const bool resumes = std::filesystem::exists(folder / "training.json");
  Trainer trainer = resumes ? Trainer::resume(folder) : Trainer(options());
  train(trainer, folder, {.observe = observe_norm});
  return 0;
}

int count_allocations() {
  Trainer trainer(options());
  for (int i = 0; i < 3; ++i) trainer.step();
  const int before = allocations;
  for (int i = 0; i < 5; ++i) trainer.step();
  std::printf("%d allocations\n", allocations - before);
  return 0;
}

int train_on_a_full_disk(const std::filesystem::path& folder) {
  // room for two checkpoints and the model, not for a third
  if (::unshare(CLONE_NEWNS) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return 77;
  ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
  if (::mount("none", folder.c_str(), "tmpfs", 0, "size=1000k") != 0) return 77;
  try {
    train_in(folder);
    std::puts("no error");
  } catch (const Error& error) {
    std::printf("kind %d: %s\n", static_cast<int>(error.kind()), error.what());
  }
  std::printf("resumed at step %d\n", static_cast<int>(Trainer::resume(folder).step_number()));
  std::printf("model of %d weights\n", static_cast<int>(load_model(folder).weights().count()));
  return 0;
}

}  // namespace
}  // namespace headlight

int main(int count, char** words) {
  const std::string mode = count > 1 ? words[1] : "";
  if (mode == "full-disk" && count == 3) return headlight::train_on_a_full_disk(words[2]);
  if (mode == "allocations") return headlight::count_allocations();
  if (mode != "train" || count != 4) return 2;
  headlight::set_threads(std::stoi(words[3]));
  return headlight::train_in(words[2]);
}
