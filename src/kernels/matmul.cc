#include "headlight/kernels/matmul.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/matmul.cc"
#include "kernels/simd.h"
// simd.h first: it chooses the targets
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <span>
#include <type_traits>
#include <vector>

#include "headlight/base/thread_pool.h"
#include "kernels/check.h"
#include "kernels/matmul_finish-inl.h"
#include "kernels/matmul_pack-inl.h"
#include "kernels/matmul_plan.h"
#include "kernels/matmul_rows-inl.h"
#include "kernels/matmul_tile-inl.h"
#include "kernels/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// What a task keeps in its worker's part of the scratch memory, in elements: panels of b that it packed, its
// sums over the blocks of k so far, and one finished tile for the epilogue.
template <class T>
struct TaskMemory {
  int64_t packed;
  int64_t partial_row;
  int64_t partial;
  int64_t all;

  explicit TaskMemory(const MatmulPlan& plan) {
    partial_row = plan.panels_per_task * kTileColumns<T>;
    packed = partial_row * plan.order.length;
    partial = plan.order.blocks > 1 ? plan.tiles_per_task * kTileRows * partial_row : 0;
    all = quotient_up(packed + partial + kTileRows * kTileColumns<T>, 64) * 64;
  }
};

// One task: for each block of k, the tiles of its rows and columns.
template <class T, class B>
class Task {
 public:
  Task(const Matmul<T, B>& args, const MatmulPlan& plan, const TaskMemory<T>& sizes, int64_t index, T* memory)
      : args_(args),
        plan_(plan),
        work_(plan.task(index)),
        epilogue_(has_epilogue(args)),
        packed_(memory),
        partial_(packed_ + sizes.packed),
        partial_row_(sizes.partial_row),
        finished_(partial_ + sizes.partial) {}

  void run() {
    for (int64_t block = 0; block < plan_.order.blocks; ++block) {
      for (int64_t panel = work_.first_panel; panel < work_.end_panel; ++panel) pack(block, panel);
      for (int64_t tile = work_.first_tile; tile < work_.end_tile; ++tile) {
        for (int64_t panel = work_.first_panel; panel < work_.end_panel; ++panel) multiply_tile(block, tile, panel);
      }
    }
  }

 private:
  int64_t columns_of(int64_t panel) const { return std::min(kTileColumns<T>, plan_.columns - panel * kTileColumns<T>); }
  // the tile reads whole vectors of b, as T
  bool is_packed(int64_t panel) const {
    return !std::is_same_v<T, B> || args_.b.stride(1) != 1 || columns_of(panel) % kLanes<T> != 0;
  }
  T* packed_panel(int64_t panel) const {
    return packed_ + (panel - work_.first_panel) * kTileColumns<T> * plan_.order.length;
  }

  void pack(int64_t block, int64_t panel) {
    if (!is_packed(panel)) return;
    const int64_t column = panel * kTileColumns<T>;
    const int64_t columns = columns_of(panel);
    const View<const B, 2> rows = args_.b.slice(0, plan_.order.begin(block), plan_.order.end(block));
    pack_panel<T>(rows.slice(1, column, column + columns), in_vectors<T>(columns), packed_panel(panel));
  }

  void multiply_tile(int64_t block, int64_t index, int64_t panel) {
    const int64_t row = plan_.first_row(index);
    const int64_t rows = plan_.first_row(index + 1) - row;
    const int64_t column = panel * kTileColumns<T>;
    const int64_t k = plan_.order.begin(block);
    const int64_t vectors = quotient_up(columns_of(panel), kLanes<T>);
    T* c = args_.c.data + row * args_.c.stride(0) + column;
    T* partial = partial_ + (row - plan_.first_row(work_.first_tile)) * partial_row_ +
                 (panel - work_.first_panel) * kTileColumns<T>;

    Tile<T> tile;
    tile.k = plan_.order.end(block) - k;
    point_to_factors(row, k, panel, tile);
    tile.columns = columns_of(panel);
    read_ahead(index, panel, tile);
    // the sums so far
    tile.addend = block > 0 ? partial : args_.accumulate ? c : nullptr;
    tile.addend_row = block > 0 ? partial_row_ : args_.c.stride(0);
    if (block + 1 < plan_.order.blocks) {
      tile.out = partial;
      tile.out_row = partial_row_;
      tile_function<T>(rows, vectors)(tile);
    } else if (epilogue_) {
      const FinishedSums<T> sums{finished_, kTileColumns<T>, row, rows, column, tile.columns};
      tile.out = finished_;
      tile.out_row = kTileColumns<T>;
      fetch_for_finish(args_, sums);
      tile_function<T>(rows, vectors)(tile);
      finish(args_, sums);
    } else {
      tile.out = c;
      tile.out_row = args_.c.stride(0);
      tile_function<T>(rows, vectors)(tile);
    }
  }

  // Sums of length 0 have no factors: their views may be null, which no offset may be added to.
  void point_to_factors(int64_t row, int64_t k, int64_t panel, Tile<T>& tile) const {
    const bool any = tile.k > 0;
    const bool packed = is_packed(panel);
    tile.a = any ? args_.a.data + row * args_.a.stride(0) + k * args_.a.stride(1) : nullptr;
    tile.a_row = any ? args_.a.stride(0) : 0;
    tile.a_step = any ? args_.a.stride(1) : 0;
    tile.b = packed ? packed_panel(panel) : nullptr;
    if constexpr (std::is_same_v<T, B>) {
      if (!packed && any) tile.b = args_.b.data + k * args_.b.stride(0) + panel * kTileColumns<T>;
    }
    tile.b_step = packed ? in_vectors<T>(columns_of(panel)) : args_.b.stride(0);
  }

  // What no earlier tile of this task has brought into the cache, and no processor guesses.
  void read_ahead(int64_t index, int64_t panel, Tile<T>& tile) const {
    tile.ahead = nullptr;
    tile.ahead_step = 0;
    if (tile.k < kLongSum) return;
    if (index == work_.first_tile && !is_packed(panel)) {
      // rows of b to come
      constexpr int64_t kSteps = 32;
      tile.ahead = tile.b + kSteps * tile.b_step;
      tile.ahead_step = tile.b_step;
    } else if (tile.a_row == 1 && panel + 1 == work_.end_panel && index + 1 < work_.end_tile) {
      // the next tile of a transposed a; only its last element can lie on a line that this one does not touch
      tile.ahead = tile.a + 2 * kTileRows - 1;
      tile.ahead_step = tile.a_step;
    }
  }

  const Matmul<T, B>& args_;
  const MatmulPlan& plan_;
  MatmulTask work_;
  bool epilogue_;
  T* packed_;
  T* partial_;
  int64_t partial_row_;
  T* finished_;
};

// One job for all: its tasks are those of the products, one product after the other.
template <class T, class B>
void multiply_few_rows(std::span<const Matmul<T, B>> products) {
  ThreadPool& pool = default_pool();
  struct Share {
    FewRows<T, B> work;
    int64_t first_task, memory;
  };
  std::vector<Share> shares;
  shares.reserve(products.size());
  int64_t tasks = 0, memory_size = 0;
  for (const Matmul<T, B>& product : products) {
    const FewRows<T, B>& work = shares.emplace_back(Share{{product, pool.threads()}, tasks, memory_size}).work;
    tasks += work.tasks();
    memory_size += work.memory(pool.threads());
  }
  T* memory = reinterpret_cast<T*>(scratch(sizeof(T) * static_cast<std::size_t>(memory_size)));
  pool.run(tasks, [&](int64_t task, int worker) {
    std::size_t i = shares.size() - 1;
    while (task < shares[i].first_task) --i;
    shares[i].work.run(task - shares[i].first_task, worker, memory + shares[i].memory);
  });
  for (const Share& share : shares) share.work.finish(memory + share.memory);
}

template <class T, class B>
void multiply_tiles(const Matmul<T, B>& args) {
  const MatmulPlan plan(args.c.size(0), args.c.size(1), args.a.size(1), kTileRows, kTileColumns<T>);
  const TaskMemory<T> sizes(plan);
  ThreadPool& pool = default_pool();
  T* memory = reinterpret_cast<T*>(scratch(sizeof(T) * static_cast<std::size_t>(sizes.all * pool.threads())));
  pool.run(plan.tasks(),
           [&](int64_t index, int worker) { Task<T, B>(args, plan, sizes, index, memory + worker * sizes.all).run(); });
}

template <class T, class B>
void multiply(std::span<const Matmul<T, B>> products) {
  const auto is_short = [](const Matmul<T, B>& product) { return product.c.size(0) <= kFewRows; };
  if (std::all_of(products.begin(), products.end(), is_short)) return multiply_few_rows(products);
  for (const Matmul<T, B>& product : products) {
    is_short(product) ? multiply_few_rows<T, B>({&product, 1}) : multiply_tiles(product);
  }
}

void multiply_float(std::span<const Matmul<float>> products) { multiply(products); }
void multiply_double(std::span<const Matmul<double>> products) { multiply(products); }
void multiply_bf16(std::span<const Matmul<float, BFloat16>> products) { multiply(products); }
void multiply_f16(std::span<const Matmul<float, Float16>> products) { multiply(products); }

}  // namespace headlight::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headlight {
namespace {

HWY_EXPORT(multiply_float);
HWY_EXPORT(multiply_double);
HWY_EXPORT(multiply_bf16);
HWY_EXPORT(multiply_f16);

void dispatch(std::span<const Matmul<float>> all) { HEADLIGHT_DISPATCH(multiply_float)(all); }
void dispatch(std::span<const Matmul<double>> all) { HEADLIGHT_DISPATCH(multiply_double)(all); }
void dispatch(std::span<const Matmul<float, BFloat16>> all) { HEADLIGHT_DISPATCH(multiply_bf16)(all); }
void dispatch(std::span<const Matmul<float, Float16>> all) { HEADLIGHT_DISPATCH(multiply_f16)(all); }

constexpr const char* kName = "matmul";

template <class T, int Rank>
bool is_present(const View<T, Rank>& view) {
  return view.data != nullptr;
}

template <class T, class B>
void check_sizes(const Matmul<T, B>& args) {
  const int64_t m = args.a.size(0);
  const int64_t k = args.a.size(1);
  const int64_t n = args.b.size(1);
  require_sizes(kName, "b", args.b, {k, n});
  require_output<T>(kName, "c", args.c, {m, n});
  if (is_present(args.bias)) require_rows(kName, "bias", args.bias, {n});
  if (is_present(args.residual)) require_rows(kName, "residual", args.residual, {m, n});
  if (is_present(args.pre)) require_output<T>(kName, "pre", args.pre, {m, n});
  const bool alone = !is_present(args.bias) && !is_present(args.residual) && !is_present(args.pre) &&
                     args.activation == Activation::kNone;
  if (args.accumulate && !alone) {
    throw LogicError(kName, "accumulate with bias, activation, pre or residual; wanted it alone");
  }
}

// Rows of unit stride that hold the elements of `view`, and for strides other than 1 those between them.
template <class T>
View<const T, 2> covering_rows(View<const T, 2> view) {
  if (std::abs(view.stride(1)) != 1 && std::abs(view.stride(0)) == 1) view = view.swap(0, 1);
  if (view.empty()) return {view.data, {0, 0}};
  const int64_t reach = (view.size(1) - 1) * view.stride(1);
  return {view.data + std::min<int64_t>(0, reach), {view.size(0), std::abs(reach) + 1}, {view.stride(0), 1}};
}

template <class T, class B>
void check_overlaps(const Matmul<T, B>& args, const char* name, const View<T, 2>& output) {
  require_apart<T>(kName, name, output, "a", covering_rows<T>(args.a));
  if constexpr (std::is_same_v<T, B>) require_apart<T>(kName, name, output, "b", covering_rows<T>(args.b));
  if (is_present(args.bias)) {
    require_apart<T>(kName, name, output, "bias", {args.bias.data, {1, args.bias.size(0)}});
  }
}

template <class T, class B>
void check(const Matmul<T, B>& args) {
  check_sizes(args);
  check_overlaps(args, "c", args.c);
  if (is_present(args.residual)) require_same_or_apart<T>(kName, "c", args.c, "residual", args.residual);
  if (is_present(args.pre)) {
    check_overlaps(args, "pre", args.pre);
    require_apart<T>(kName, "pre", args.pre, "c", args.c);
    if (is_present(args.residual)) require_apart<T>(kName, "pre", args.pre, "residual", args.residual);
  }
}

// An output of one product against all that another reads and writes.
template <class T, class B>
void check_apart(const char* name, const View<T, 2>& output, const Matmul<T, B>& other) {
  check_overlaps(other, name, output);
  require_apart<T>(kName, name, output, "c of another", other.c);
  if (is_present(other.residual)) require_apart<T>(kName, name, output, "residual of another", other.residual);
  if (is_present(other.pre)) require_apart<T>(kName, name, output, "pre of another", other.pre);
}

template <class T, class B>
void check_and_multiply(std::span<const Matmul<T, B>> products) {
  for (const Matmul<T, B>& product : products) {
    check(product);
    for (const Matmul<T, B>& other : products) {
      if (&other == &product) continue;
      check_apart("c", product.c, other);
      if (is_present(product.pre)) check_apart("pre", product.pre, other);
    }
  }
  const auto is_empty = [](const Matmul<T, B>& product) { return product.c.empty(); };
  if (std::none_of(products.begin(), products.end(), is_empty)) return dispatch(products);
  for (const Matmul<T, B>& product : products) {
    if (!is_empty(product)) dispatch(std::span(&product, 1));
  }
}

}  // namespace

template <class T>
void matmul(const Matmul<T>& args) {
  check_and_multiply<T, T>({&args, 1});
}
void matmul(const Matmul<float, BFloat16>& args) { check_and_multiply<float, BFloat16>({&args, 1}); }
void matmul(const Matmul<float, Float16>& args) { check_and_multiply<float, Float16>({&args, 1}); }

template <class T>
void matmul_together(std::span<const Matmul<T>> products) {
  check_and_multiply(products);
}
void matmul_together(std::span<const Matmul<float, BFloat16>> products) { check_and_multiply(products); }
void matmul_together(std::span<const Matmul<float, Float16>> products) { check_and_multiply(products); }

template void matmul(const Matmul<float>&);
template void matmul(const Matmul<double>&);
template void matmul_together(std::span<const Matmul<float>>);
template void matmul_together(std::span<const Matmul<double>>);

}  // namespace headlight
#endif
