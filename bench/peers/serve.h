#pragma once
// A program of contenders that attention_compare.py drives over pipes: one JSON object a line, in and out.
//   {"do": "setup", "folder", "kind", "causal", "B", "H", "Hkv", "Tq", "Tk", "K", "sets"} -> {"contenders": [...]}
//   {"do": "results", "name"} -> {"arrays": [...]}, each written to folder/name-array.f32
//   {"do": "time", "name", "calls", "own"} -> {"seconds": of all calls}, with `own` those on a processor
// Inputs lie in the folder as packed float32 in the layout (B, T, heads, K): q, k, v, and d_o for the backward.
// With several sets, keys and values are there that many times and calls go through them in turn, so that they come
// from memory and not from a cache.

#include <cstdint>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "headlight/tensor/buffer.h"
#include "timing.h"

namespace headlight::bench {

// kTraining is a forward and the backward after it.
enum class Kind { kForward, kBackward, kTraining, kDecode };

struct Problem {
  std::string folder;
  Kind kind;
  bool causal;
  int64_t B, H, Hkv, Tq, Tk, K, sets;

  bool has_gradients() const { return kind == Kind::kBackward || kind == Kind::kTraining; }

  static Problem from(const nlohmann::json& in) {
    const std::map<std::string, Kind> kinds{{"forward", Kind::kForward},
                                            {"backward", Kind::kBackward},
                                            {"training", Kind::kTraining},
                                            {"decode", Kind::kDecode}};
    return {in.at("folder"), kinds.at(in.at("kind")),
            in.at("causal"), in.at("B"),
            in.at("H"),      in.at("Hkv"),
            in.at("Tq"),     in.at("Tk"),
            in.at("K"),      in.at("sets")};
  }
};

// Operands and results of a problem. What is of one query row is `queries` and `outputs`, of one key `keys` and
// `values`, (B, T, heads, K) each.
struct Operands {
  explicit Operands(const Problem& problem)
      : p(problem),
        q(p.B * p.Tq * p.H * p.K),
        o(q.count()),
        d_o(p.has_gradients() ? q.count() : 0),
        dq(d_o.count()),
        memory(2 * p.sets * key_count()),
        dk(p.has_gradients() ? key_count() : 0),
        dv(dk.count()) {
    read("q", q.data(), q.count());
    read("d_o", d_o.data(), d_o.count());
    for (int64_t set = 0; set < p.sets; ++set) {
      read("k", keys(set).data, key_count());
      read("v", values(set).data, key_count());
    }
  }

  int64_t key_count() const { return p.B * p.Tk * p.Hkv * p.K; }
  View<float, 4> of_queries(Buffer<float>& buffer) { return buffer.view<4>({p.B, p.Tq, p.H, p.K}); }
  View<float, 4> of_keys(Buffer<float>& buffer) { return buffer.view<4>({p.B, p.Tk, p.Hkv, p.K}); }
  View<float, 4> keys(int64_t set) { return memory.view<4>({p.B, p.Tk, p.Hkv, p.K}, 2 * set * key_count()); }
  View<float, 4> values(int64_t set) { return memory.view<4>({p.B, p.Tk, p.Hkv, p.K}, (2 * set + 1) * key_count()); }

  Problem p;
  Buffer<float> q, o, d_o, dq;
  Buffer<float> memory;  // keys and values of each set
  Buffer<float> dk, dv;

 private:
  void read(const std::string& name, float* to, int64_t count) const {
    if (count == 0) return;
    const std::string path = p.folder + "/" + name + ".f32";
    std::ifstream file(path, std::ios::binary);
    if (!file.read(reinterpret_cast<char*>(to), count * static_cast<int64_t>(sizeof(float)))) {
      throw std::runtime_error("cannot read " + path);
    }
  }
};

struct Contender {
  std::string name;
  std::string variant;  // how it is run, in words
  double amount;        // done by a call, when it is a ceiling: operations or bytes; else 0
  std::function<void(int64_t set)> run;
  std::map<std::string, View<float, 4>> results{};  // (B, T, heads, K)
};

inline nlohmann::json write_results(const Contender& contender, const std::string& folder) {
  contender.run(0);
  nlohmann::json arrays = nlohmann::json::array();
  for (const auto& [array, view] : contender.results) {
    std::ofstream file(folder + "/" + contender.name + "-" + array + ".f32", std::ios::binary);
    for (int64_t b = 0; b < view.size(0); ++b) {
      for (int64_t i = 0; i < view.size(1); ++i) {
        for (int64_t h = 0; h < view.size(2); ++h) {
          file.write(reinterpret_cast<const char*>(&view(b, i, h, 0)),
                     view.size(3) * static_cast<int64_t>(sizeof(float)));
        }
      }
    }
    arrays.push_back(array);
  }
  return {{"arrays", arrays}};
}

inline double seconds_of(const Contender& contender, int64_t calls, int64_t sets, clockid_t clock) {
  const double begin = seconds(clock);
  for (int64_t i = 0; i < calls; ++i) contender.run(i % sets);
  return seconds(clock) - begin;
}

// Answers until the input ends. `contenders_for` makes what can do a problem.
inline void serve(const std::function<std::vector<Contender>(const Problem&)>& contenders_for) {
  std::vector<Contender> contenders;
  Problem problem{};
  const auto find = [&](const std::string& name) -> const Contender& {
    for (const Contender& c : contenders) {
      if (c.name == name) return c;
    }
    throw std::runtime_error("no contender " + name);
  };
  for (std::string line; std::getline(std::cin, line);) {
    const nlohmann::json in = nlohmann::json::parse(line);
    nlohmann::json out;
    if (in.at("do") == "setup") {
      contenders.clear();
      problem = Problem::from(in);
      contenders = contenders_for(problem);
      for (const Contender& c : contenders) {
        out["contenders"].push_back({{"name", c.name}, {"variant", c.variant}, {"amount", c.amount}});
      }
    } else if (in.at("do") == "results") {
      out = write_results(find(in.at("name")), problem.folder);
    } else {
      const clockid_t clock = in.at("own") ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;
      out["seconds"] = seconds_of(find(in.at("name")), in.at("calls"), problem.sets, clock);
    }
    std::cout << out.dump() << std::endl;
  }
}

}  // namespace headlight::bench
