#pragma once
// Tables of text for the terminal: columns as wide as what they hold, the last one wrapped to the screen.

#include <string>
#include <vector>

#include "console.h"

namespace headlight::cli {

enum class Align { kLeft, kRight };

struct Column {
  std::string title;
  Align align = Align::kRight;
};

struct Cell {
  Cell(std::string t, Paint p = Paint::kPlain) : text(std::move(t)), paint(p) {}  // NOLINT: a cell is its text
  Cell(const char* t, Paint p = Paint::kPlain) : text(t), paint(p) {}             // NOLINT
  std::string text;
  Paint paint;
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  // As many cells as columns, or fewer.
  void row(std::vector<Cell> cells) { rows_.push_back(std::move(cells)); }
  // A line of its own between rows, after an empty line.
  void heading(std::string title) { rows_.push_back({Cell("\n" + std::move(title), Paint::kBold)}); }
  // Every line ends in a newline.
  std::string text(const Screen& screen) const;

 private:
  struct Layout;
  Layout lay_out(const Screen& screen) const;
  std::string line(const std::vector<Cell>& cells, const Layout& layout, const Screen& screen) const;

  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace headlight::cli
