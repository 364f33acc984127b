#pragma once
// Numbers as people read them.

#include <cstdint>
#include <string>

namespace headlight::cli {

std::string grouped(int64_t n);                     // 41,308,160
std::string rounded(double n, int figures = 3);     // 312, 49.2 k, 1.31 M, 20.0 G
std::string byte_size(double bytes);                // 312 B, 4.12 MB
std::string duration(double seconds);               // 21 s, 3 min 5 s, 2 h 10 min
std::string percent(double part, double whole);     // 12.3 %
std::string signed_number(double x, int decimals);  // +2.60, -0.03; +0.00 where it rounds to 0

}  // namespace headlight::cli
