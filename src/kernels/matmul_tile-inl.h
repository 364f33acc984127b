// The register tile of the matrix product: kRows x kVectors vectors of sums that never leave the registers
// while one block of k is summed. Included once per instruction set.

#if defined(HEADLIGHT_KERNELS_MATMUL_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLIGHT_KERNELS_MATMUL_TILE_INL_H_
#undef HEADLIGHT_KERNELS_MATMUL_TILE_INL_H_
#else
#define HEADLIGHT_KERNELS_MATMUL_TILE_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cstdint>
#include <utility>

#include "kernels/matmul_plan.h"
#include "kernels/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// As many sums as the registers hold beside one row of b and one element of a.
#if HWY_TARGET == HWY_AVX3
constexpr int kTileRows = 14;
constexpr int kTileVectors = 2;
#elif HWY_TARGET == HWY_AVX2
constexpr int kTileRows = 6;
constexpr int kTileVectors = 2;
#elif HWY_ARCH_ARM_A64
constexpr int kTileRows = 6;
constexpr int kTileVectors = 4;
#else
constexpr int kTileRows = 3;
constexpr int kTileVectors = 4;
#endif

template <class T>
using TileTag = hn::ScalableTag<T>;
template <class T>
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(TileTag<T>()));
// Columns rounded up to whole vectors.
template <class T>
constexpr int64_t in_vectors(int64_t columns) {
  return quotient_up(columns, kLanes<T>) * kLanes<T>;
}
// columns of a whole tile
template <class T>
constexpr int64_t kTileColumns = kTileVectors* kLanes<T>;

// One tile: out(r, j) = addend(r, j) + sum over i < k of a(r, i) b(i, j), the sum being one chain of
// multiply-adds from 0 in rising i. Rows of b, addend and out have unit stride.
template <class T>
struct Tile {
  int64_t k;
  const T* a;
  int64_t a_row;   // from a(r, i) to a(r + 1, i)
  int64_t a_step;  // from a(r, i) to a(r, i + 1)
  const T* b;      // readable up to whole vectors
  int64_t b_step;
  const T* addend;  // or null: absent
  int64_t addend_row;
  T* out;
  int64_t out_row;
  int64_t columns;  // of addend and out
  const T* ahead;   // or null: what is fetched while the sums are made, one row of a tile in each step
  int64_t ahead_step;
};

template <class T>
constexpr int64_t kLineElements = 64 / static_cast<int64_t>(sizeof(T));

// From this length on the sum takes long enough to fetch the lines that it will be written to.
constexpr int64_t kLongSum = 256;

template <class V, std::size_t kCount, std::size_t... kAt>
HWY_INLINE void clear(V (&sums)[kCount], std::index_sequence<kAt...>) {
  ((sums[kAt] = hn::Zero(hn::DFromV<V>())), ...);
}

template <class V, std::size_t kCount, std::size_t... kAt>
HWY_INLINE void add_products(V (&sums)[kCount], V a, const V (&b)[kCount], std::index_sequence<kAt...>) {
  ((sums[kAt] = hn::MulAdd(a, b[kAt], sums[kAt])), ...);
}

template <class T, class V, std::size_t kCount, std::size_t... kAt>
HWY_INLINE void load_vectors(const T* from, V (&to)[kCount], std::index_sequence<kAt...>) {
  ((to[kAt] = hn::LoadU(TileTag<T>(), from + kAt * kLanes<T>)), ...);
}

// Rows are addressed from every third, so that few registers hold the addresses of all.
constexpr int kRowsPerAddress = 3;

template <class T, class V, std::size_t kVectors, std::size_t kAddresses, std::size_t... kRow>
HWY_INLINE void add_outer_product(V (&sums)[sizeof...(kRow)][kVectors], const T* const (&a)[kAddresses], int64_t a_row,
                                  const T* b, std::index_sequence<kRow...>) {
  constexpr auto kEach = std::make_index_sequence<kVectors>();
  V b_row[kVectors];
  load_vectors(b, b_row, kEach);
  (add_products(sums[kRow], hn::Set(TileTag<T>(), a[kRow / kRowsPerAddress][(kRow % kRowsPerAddress) * a_row]), b_row,
                kEach),
   ...);
}

template <class T, std::size_t kAddresses, std::size_t... kAt>
HWY_INLINE void set_addresses(const T* (&a)[kAddresses], const T* first, int64_t apart, std::index_sequence<kAt...>) {
  ((a[kAt] = first + static_cast<int64_t>(kAt) * apart), ...);
}

template <class T, std::size_t kAddresses, std::size_t... kAt>
HWY_INLINE void advance(const T* (&a)[kAddresses], int64_t step, std::index_sequence<kAt...>) {
  ((a[kAt] += step), ...);
}

template <class T, class V, class P>
HWY_INLINE void put_vector(P part, V sum, const T* addend, T* out) {
  const TileTag<T> d;
  part.store(d, addend == nullptr ? sum : hn::Add(part.load(d, addend), sum), out);
}

template <class T, class V, std::size_t kVectors, std::size_t... kAt>
HWY_INLINE void put_row(const V (&sums)[kVectors], const T* addend, T* out, int64_t columns,
                        std::index_sequence<kAt...>) {
  constexpr int64_t kLast = (kVectors - 1) * kLanes<T>;
  const T* last_addend = addend == nullptr ? nullptr : addend + kLast;
  ((put_vector(Whole{}, sums[kAt], addend == nullptr ? nullptr : addend + kAt * kLanes<T>, out + kAt * kLanes<T>)),
   ...);
  if (kLanes<T> == 1 || columns == kLast + kLanes<T>) {
    put_vector(Whole{}, sums[kVectors - 1], last_addend, out + kLast);
  } else {
    put_vector(Part{columns - kLast}, sums[kVectors - 1], last_addend, out + kLast);
  }
}

template <class T, class V, std::size_t kVectors, std::size_t... kRow>
HWY_INLINE void put_rows(const V (&sums)[sizeof...(kRow)][kVectors], const Tile<T>& tile,
                         std::index_sequence<kRow...>) {
  constexpr auto kAllButLast = std::make_index_sequence<kVectors - 1>();
  (put_row(sums[kRow], tile.addend == nullptr ? nullptr : tile.addend + static_cast<int64_t>(kRow) * tile.addend_row,
           tile.out + static_cast<int64_t>(kRow) * tile.out_row, tile.columns, kAllButLast),
   ...);
}

template <class V, std::size_t kVectors, std::size_t... kRow>
HWY_INLINE void clear_rows(V (&sums)[sizeof...(kRow)][kVectors], std::index_sequence<kRow...>) {
  (clear(sums[kRow], std::make_index_sequence<kVectors>()), ...);
}

template <class T, int kRows, int kVectors>
void run_tile(const Tile<T>& tile) {
  constexpr auto kEachRow = std::make_index_sequence<kRows>();
  constexpr int kAddresses = (kRows + kRowsPerAddress - 1) / kRowsPerAddress;
  constexpr auto kEachAddress = std::make_index_sequence<kAddresses>();
  hn::Vec<TileTag<T>> sums[kRows][kVectors];
  clear_rows(sums, kEachRow);
  const T* a[kAddresses];
  set_addresses(a, tile.a, kRowsPerAddress * tile.a_row, kEachAddress);
  const T* b = tile.b;
  const int64_t a_row = tile.a_row;
  const int64_t a_step = tile.a_step;
  const int64_t b_step = tile.b_step;
  if (tile.k >= kLongSum) {
    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < kVectors; ++v) __builtin_prefetch(tile.out + r * tile.out_row + v * kLanes<T>, 1);
    }
  }
  if (tile.ahead != nullptr) {
    const T* ahead = tile.ahead;
    for (int64_t i = tile.k; i > 0; --i) {
      for (int64_t line = 0; line < kTileColumns<T>; line += kLineElements<T>) hwy::Prefetch(ahead + line);
      ahead += tile.ahead_step;
      add_outer_product(sums, a, a_row, b, kEachRow);
      advance(a, a_step, kEachAddress);
      b += b_step;
    }
  } else {
    for (int64_t i = tile.k; i > 0; --i) {
      add_outer_product(sums, a, a_row, b, kEachRow);
      advance(a, a_step, kEachAddress);
      b += b_step;
    }
  }
  put_rows(sums, tile, kEachRow);
}

template <class T>
using TileFunction = void (*)(const Tile<T>&);

template <class T>
struct TileFunctions {
  TileFunction<T> of[kTileRows * kTileVectors];
};

template <class T, std::size_t... kAt>
constexpr TileFunctions<T> tile_functions(std::index_sequence<kAt...>) {
  return {{run_tile<T, kAt / kTileVectors + 1, kAt % kTileVectors + 1>...}};
}

// The variant for `rows` x `vectors`, both at least 1.
template <class T>
TileFunction<T> tile_function(int64_t rows, int64_t vectors) {
  static constexpr TileFunctions<T> kTable = tile_functions<T>(std::make_index_sequence<kTileRows * kTileVectors>());
  return kTable.of[(rows - 1) * kTileVectors + vectors - 1];
}

}  // namespace headlight::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
