#pragma once
// How a matrix product is cut into blocks of the summed length, tiles, panels and tasks. By shape alone.

#include <algorithm>
#include <cstdint>

namespace headlight {

constexpr int64_t quotient_up(int64_t x, int64_t y) { return (x + y - 1) / y; }

// The summed length k in blocks. Each block is one chain of multiply-adds in rising k, and the blocks' sums
// are added in order: the order of every element's sum, on every path. Short blocks also keep the rounding
// error of long sums small.
struct SumOrder {
  static constexpr int64_t kLongest = 384;
  static constexpr int64_t kStep = 16;  // lengths of blocks are multiples of it, but for the last

  int64_t k;
  int64_t length = 0;
  int64_t blocks = 1;  // one empty block when k is 0

  explicit SumOrder(int64_t k_) : k(k_) {
    if (k == 0) return;
    length = quotient_up(quotient_up(k, quotient_up(k, kLongest)), kStep) * kStep;
    blocks = quotient_up(k, length);
  }
  int64_t begin(int64_t block) const { return block * length; }
  int64_t end(int64_t block) const { return std::min(k, (block + 1) * length); }
};

// Some tiles of some panels.
struct MatmulTask {
  int64_t first_tile;
  int64_t end_tile;
  int64_t first_panel;
  int64_t end_panel;
};

// Rows are cut into tiles of nearly equal height, columns into panels as wide as a tile.
struct MatmulPlan {
  SumOrder order;
  int64_t rows;
  int64_t columns;
  int64_t tiles;
  int64_t panels;
  int64_t tiles_per_task;
  int64_t panels_per_task;

  // rows and columns at least 1
  MatmulPlan(int64_t rows_, int64_t columns_, int64_t k, int64_t tile_rows, int64_t tile_columns)
      : order(k),
        rows(rows_),
        columns(columns_),
        tiles(quotient_up(rows, tile_rows)),
        panels(quotient_up(columns, tile_columns)),
        tiles_per_task(quotient_up(tiles, quotient_up(rows, kRowsPerTask))),
        panels_per_task(quotient_up(panels, quotient_up(columns, kColumnsPerTask))) {
    // enough tasks for several threads, as long as each has some work; the fewer the rows of a task, the less
    // is a packed panel used
    const auto work = [&] { return tiles_per_task * tile_rows * panels_per_task * tile_columns * (k + 1); };
    while (tasks() < kTasks && work() > kLeastWork && tiles_per_task * panels_per_task > 1) {
      int64_t& most = panels_per_task > 1 ? panels_per_task : tiles_per_task;
      most = quotient_up(most, 2);
    }
  }

  int64_t row_tasks() const { return quotient_up(tiles, tiles_per_task); }
  int64_t tasks() const { return row_tasks() * quotient_up(panels, panels_per_task); }
  int64_t first_row(int64_t tile) const { return tile * (rows / tiles) + std::min(tile, rows % tiles); }

  MatmulTask task(int64_t index) const {
    const int64_t tile = index % row_tasks() * tiles_per_task;
    const int64_t panel = index / row_tasks() * panels_per_task;
    return {tile, std::min(tiles, tile + tiles_per_task), panel, std::min(panels, panel + panels_per_task)};
  }

 private:
  static constexpr int64_t kRowsPerTask = 512;
  static constexpr int64_t kColumnsPerTask = 128;
  static constexpr int64_t kTasks = 16;
  static constexpr int64_t kLeastWork = 500'000;  // multiply-adds: some microseconds
};

}  // namespace headlight
