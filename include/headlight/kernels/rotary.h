#pragma once
// Rotary positions (Su et al. 2021): pairs of coordinates of a query or key turned by position * frequency.

#include <cstdint>

#include "headlight/tensor/view.h"

namespace headlight {

enum class RotaryPairs {
  kHalves,    // coordinate c is paired with c + R/2 (GPT-NeoX, Llama in the Hugging Face layout)
  kAdjacent,  // coordinate 2c with 2c + 1 (the original paper, llama2.c)
};

// Turns pair c of each row by angle(position, c), given as tables of its cosine and sine. Coordinates from
// R on are copied. y may be x itself. Strides of the first three dimensions are free, the last is 1.
// Throws LogicError when sizes do not fit, R is wider than K, or a position is outside the tables.
template <class T>
struct Rotary {
  View<const T, 4> x;                // (B, T, H, K)
  View<const int32_t, 2> positions;  // (B, T)
  View<const T, 2> cosine;           // (positions, R/2)
  View<const T, 2> sine;             // (positions, R/2)
  View<T, 4> y;                      // (B, T, H, K), set
  RotaryPairs pairs = RotaryPairs::kHalves;
  bool inverse = false;  // turns back: the backward, dx from dy
};
template <class T>
void rotary(const Rotary<T>& args);

}  // namespace headlight
