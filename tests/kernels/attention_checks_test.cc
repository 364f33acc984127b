// What attention refuses, before anything is written, and layouts that it must not refuse.

#include <gtest/gtest.h>

#include <functional>

#include "headlight/kernels/attention.h"
#include "kernels/attention_cases.h"

namespace headlight {
namespace {

using namespace testing_attention;

// A problem with every optional part.
Case<float> full_case() {
  Case<float> c({2, 6, 7, 4, 2, 8, 5});
  RandomStream random(1, 8, 0);
  for (const auto* x : {&c.q, &c.k, &c.v}) randomize(*x, random);
  c.mask = Tensor<uint8_t, 4>(std::array<int64_t, 4>{1, 1, 1, 7});
  c.mask.each([](uint8_t& x, const auto&) { x = 1; });
  c.bias = Tensor<float, 4>(std::array<int64_t, 4>{2, 4, 6, 1});
  c.slopes = Tensor<float, 1>(std::array<int64_t, 1>{4});
  c.sinks = Tensor<float, 1>(std::array<int64_t, 1>{4});
  c.additive = Tensor<float, 2>(std::array<int64_t, 2>{4, 8});
  for (auto span : {&Case<float>::q_len, &Case<float>::k_len, &Case<float>::q_begin, &Case<float>::k_begin}) {
    c.*span = Tensor<int64_t, 1>(std::array<int64_t, 1>{2});
  }
  c.q_len.each([](int64_t& x, const auto&) { x = 6; });
  c.k_len.each([](int64_t& x, const auto&) { x = 7; });
  c.soft_cap = 10.0f;
  c.poison_outputs();
  return c;
}

bool untouched(const Case<float>& c) {
  bool same = true;
  const float poison = c.o(0, 0, 0, 0);
  for (const auto* x : {&c.o, &c.dq, &c.dk, &c.dv, &c.dbias}) {
    x->each([&](float& value, const auto&) { same = same && value == poison; });
  }
  for (const auto* x : {&c.dslopes, &c.dsinks}) {
    x->each([&](float& value, const auto&) { same = same && value == poison; });
  }
  c.d_additive.each([&](float& value, const auto&) { same = same && value == poison; });
  c.statistics.each([&](RowStatistic<float>& value, const auto&) { same = same && value.max == poison; });
  return same;
}

// Refused with a message that has `text`, and nothing written.
void expect_refusal(const Case<float>& c, const std::string& text, const std::function<void()>& call) {
  SCOPED_TRACE(text);
  try {
    call();
    ADD_FAILURE() << "expected a refusal";
  } catch (const LogicError& error) {
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
  EXPECT_TRUE(untouched(c));
}

// Both ways, after `spoil` has changed something that both read.
void expect_refusal(const std::string& text, const std::function<void(Case<float>&)>& spoil) {
  Case<float> c = full_case();
  spoil(c);
  expect_refusal(c, "attention_forward: ", [&] { attention_forward(c.forward()); });
  expect_refusal(c, text, [&] { attention_forward(c.forward()); });
  expect_refusal(c, "attention_backward: ", [&] { attention_backward(c.backward()); });
  expect_refusal(c, text, [&] { attention_backward(c.backward()); });
}

TEST(AttentionChecks, AcceptTheProblemThatTheOthersSpoil) {
  const Case<float> c = full_case();
  run(c);
  EXPECT_FALSE(untouched(c));
}

TEST(AttentionChecks, RefuseSizesThatDoNotFit) {
  const auto wrong = [](const std::array<int64_t, 4>& sizes) { return Tensor<float, 4>(sizes); };
  expect_refusal("batches differ", [&](Case<float>& c) { c.k = wrong({3, 7, 2, 8}); });
  expect_refusal("widths of heads differ", [&](Case<float>& c) { c.k = wrong({2, 7, 2, 9}); });
  expect_refusal("q (2,6,4,8), k (2,7,3,8): 4 query heads are not a multiple of 3", [&](Case<float>& c) {
    c.k = wrong({2, 7, 3, 8});
  });
  expect_refusal("4 query heads are not a multiple of 0", [&](Case<float>& c) { c.k = wrong({2, 7, 0, 8}); });
  expect_refusal("v (2,6,2,5); wanted (2,7,2,5)", [&](Case<float>& c) { c.v = wrong({2, 6, 2, 5}); });
  expect_refusal("v (2,7,4,5); wanted (2,7,2,5)", [&](Case<float>& c) { c.v = wrong({2, 7, 4, 5}); });
  expect_refusal("o (2,6,4,4); wanted (2,6,4,5)", [&](Case<float>& c) {
    c.o = wrong({2, 6, 4, 4});
    c.o.poison();
  });
  expect_refusal("mask (1,1,1,6)", [&](Case<float>& c) {
    c.mask = Tensor<uint8_t, 4>(std::array<int64_t, 4>{1, 1, 1, 6});
  });
  expect_refusal("bias (2,2,6,1)", [&](Case<float>& c) { c.bias = wrong({2, 2, 6, 1}); });
  expect_refusal("slopes (3); wanted (4)",
                 [&](Case<float>& c) { c.slopes = Tensor<float, 1>(std::array<int64_t, 1>{3}); });
  expect_refusal("sinks (2); wanted (4)",
                 [&](Case<float>& c) { c.sinks = Tensor<float, 1>(std::array<int64_t, 1>{2}); });
  expect_refusal("additive (4,7); wanted (4,8)", [&](Case<float>& c) {
    c.additive = Tensor<float, 2>(std::array<int64_t, 2>{4, 7});
  });
  expect_refusal("q_len (3); wanted (2)",
                 [&](Case<float>& c) { c.q_len = Tensor<int64_t, 1>(std::array<int64_t, 1>{3}); });
}

TEST(AttentionChecks, RefuseSpansThatLeaveTheRows) {
  expect_refusal("q rows of entry 1", [](Case<float>& c) { c.q_len(1) = 7; });
  expect_refusal("q rows of entry 0", [](Case<float>& c) { c.q_begin(0) = 1; });
  expect_refusal("k rows of entry 1", [](Case<float>& c) { c.k_len(1) = -1; });
  expect_refusal("k rows of entry 0", [](Case<float>& c) { c.k_begin(0) = -1; });
  expect_refusal("k rows of entry 0", [](Case<float>& c) { c.k_begin(0) = std::numeric_limits<int64_t>::max(); });
}

TEST(AttentionChecks, RefuseNumbersOutOfTheirRange) {
  expect_refusal("left -1 is negative", [](Case<float>& c) { c.left = -1; });
  expect_refusal("right -1 is negative", [](Case<float>& c) { c.right = -1; });
  expect_refusal("soft cap 0", [](Case<float>& c) { c.soft_cap = 0.0f; });
  expect_refusal("soft cap", [](Case<float>& c) { c.soft_cap = kNaN<float>; });
  expect_refusal("positions overflow", [](Case<float>& c) { c.pos0 = std::numeric_limits<int64_t>::max() - 3; });
}

TEST(AttentionChecks, RefuseSizesAndStridesThatOverflow) {
  const Case<float> c = full_case();
  const auto with = [&](const std::function<void(AttentionForward<float>&)>& spoil) {
    return [&, spoil] {
      AttentionForward<float> args = c.forward();
      spoil(args);
      attention_forward(args);
    };
  };
  expect_refusal(c, "overflow", with([](auto& args) { args.q.sizes = {int64_t{1} << 31, int64_t{1} << 31, 4, 8}; }));
  expect_refusal(c, "overflow", with([](auto& args) { args.k.strides[1] = std::numeric_limits<int64_t>::max() / 2; }));
  expect_refusal(c, "overflow", with([](auto& args) { args.v.strides[0] = std::numeric_limits<int64_t>::min(); }));
  expect_refusal(c, "negative", with([](auto& args) { args.v.sizes[3] = -5; }));
  expect_refusal(c, "no data", with([](auto& args) { args.v.data = nullptr; }));
}

TEST(AttentionChecks, RefuseOutputsThatShareMemory) {
  const Case<float> c = full_case();
  const auto forward = [&](const std::function<void(AttentionForward<float>&)>& spoil) {
    return [&, spoil] {
      AttentionForward<float> args = c.forward();
      spoil(args);
      attention_forward(args);
    };
  };
  const auto backward = [&](const std::function<void(AttentionBackward<float>&)>& spoil) {
    return [&, spoil] {
      AttentionBackward<float> args = c.backward();
      spoil(args);
      attention_backward(args);
    };
  };
  // elements of one output on top of each other
  expect_refusal(c, "o (2,6,4,5) has elements that share memory", forward([](auto& args) { args.o.strides[0] = 0; }));
  expect_refusal(c, "o (2,6,4,5) has elements that share memory", forward([](auto& args) { args.o.strides[1] = 19; }));
  // an output on top of an input or of another output
  expect_refusal(c, "o shares memory with v", forward([&](auto& args) { args.v.data = c.o.view().data; }));
  expect_refusal(c, "o shares memory with bias",
                 forward([&](auto& args) { args.pattern.bias.data = c.o.view().data; }));
  expect_refusal(c, "statistics shares memory with o", forward([&](auto& args) {
                   args.statistics.data = reinterpret_cast<RowStatistic<float>*>(c.o.view().data + 2);
                 }));
  expect_refusal(c, "dq shares memory with q", backward([&](auto& args) { args.q.data = c.dq.view().data; }));
  expect_refusal(c, "dv shares memory with dk", backward([&](auto& args) { args.dv.data = c.dk.view().data + 3; }));
  expect_refusal(c, "dslopes shares memory with dsinks", backward([](auto& args) { args.dsinks = args.dslopes; }));
  expect_refusal(c, "d_additive shares memory with additive",
                 backward([&](auto& args) { args.pattern.additive = args.d_additive; }));
}

TEST(AttentionChecks, RefuseGradientsOfWhatIsNotThere) {
  const Case<float> c = full_case();
  const auto without = [&](const std::function<void(AttentionBackward<float>&)>& spoil) {
    return [&, spoil] {
      AttentionBackward<float> args = c.backward();
      spoil(args);
      attention_backward(args);
    };
  };
  expect_refusal(c, "dbias is wanted but there are no bias", without([](auto& args) { args.pattern.bias = {}; }));
  expect_refusal(c, "dslopes is wanted but there are no slopes", without([](auto& args) { args.pattern.slopes = {}; }));
  expect_refusal(c, "dsinks is wanted but there are no sinks", without([](auto& args) { args.pattern.sinks = {}; }));
  expect_refusal(c, "d_additive is wanted but there are no additive",
                 without([](auto& args) { args.pattern.additive = {}; }));
}

TEST(AttentionChecks, RefuseRowsAndHeadsThatAreNotThere) {
  const Case<float> c = full_case();
  const Tensor<float, 4> weights({2, 2, 3, 7});
  expect_refusal(c, "rows from 4, 3 of them", [&] { attention_rows(c.rows(weights, 4, 0)); });
  expect_refusal(c, "rows from -1", [&] { attention_rows(c.rows(weights, -1, 0)); });
  expect_refusal(c, "heads from 3, 2 of them", [&] { attention_rows(c.rows(weights, 0, 3)); });
  const Tensor<float, 4> narrow({2, 2, 3, 6});
  expect_refusal(c, "weights (2,2,3,6); wanted (2,2,3,7)", [&] { attention_rows(c.rows(narrow)); });
}

TEST(AttentionChecks, AcceptQueriesKeysAndValuesOfOneBuffer) {
  // (B, T, 3, H, K), as one product makes them, and gradients likewise; and per head (B, T, H, 3, K)
  for (const bool heads_outside : {false, true}) {
    SCOPED_TRACE(heads_outside);
    Case<float> c({2, 9, 9, 3, 3, 8, 8});
    RandomStream random(2, 8, 0);
    for (const auto* x : {&c.q, &c.k, &c.v, &c.d_o}) randomize(*x, random);
    c.right = 0;
    run(c);
    std::vector<float> inputs(2 * 9 * 3 * 3 * 8), gradients(inputs.size());
    const auto third = [&](std::vector<float>& memory, int64_t which) {
      const int64_t head = heads_outside ? 3 * 8 : 8, step = heads_outside ? 8 : 3 * 8;
      return View<float, 4>(memory.data() + which * step, {2, 9, 3, 8}, {9 * 72, 72, head, 1});
    };
    int64_t which = 0;
    for (const auto* x : {&c.q, &c.k, &c.v}) {
      const View<float, 4> view = third(inputs, which++);
      x->each([&](float& value, const auto& at) { view(at[0], at[1], at[2], at[3]) = value; });
    }
    AttentionForward<float> forward = c.forward();
    AttentionBackward<float> backward = c.backward();
    forward.q = backward.q = third(inputs, 0);
    forward.k = backward.k = third(inputs, 1);
    forward.v = backward.v = third(inputs, 2);
    backward.dq = third(gradients, 0);
    backward.dk = third(gradients, 1);
    backward.dv = third(gradients, 2);
    attention_forward(forward);
    attention_backward(backward);
    which = 0;
    for (const auto* x : {&c.dq, &c.dk, &c.dv}) {
      const View<float, 4> view = third(gradients, which++);
      x->each([&](float& value, const auto& at) { EXPECT_EQ(view(at[0], at[1], at[2], at[3]), value); });
    }
  }
}

TEST(AttentionChecks, AcceptInputsThatShareMemoryAndAbsentOutputs) {
  Case<float> c({1, 5, 5, 1, 1, 4, 4});
  RandomStream random(3, 8, 0);
  randomize(c.q, random);
  randomize(c.d_o, random);
  AttentionForward<float> forward = c.forward();
  forward.k = forward.v = forward.q;
  attention_forward(forward);
  AttentionBackward<float> backward = c.backward();
  backward.k = backward.v = backward.q;
  attention_backward(backward);
  const Tensor<float, 4> dk = c.dk;
  c.dk.poison();
  backward.dq = backward.dv = {};
  attention_backward(backward);
  expect_same_bits("dk", c.dk, dk);
}

}  // namespace
}  // namespace headlight
