#include "peers/onednn.h"

#include <omp.h>

#include <memory>
#include <oneapi/dnnl/dnnl.hpp>

#include "headlight/base/thread_pool.h"

namespace headlight::bench {
namespace {

dnnl::memory::desc layout(const View<float, 2>& v) {
  return {{v.size(0), v.size(1)}, dnnl::memory::data_type::f32, {v.stride(0), v.stride(1)}};
}

dnnl::matmul::primitive_desc plan(const dnnl::engine& engine, const dnnl::memory::desc& a, const dnnl::memory::desc& b,
                                  const dnnl::memory::desc& c) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine, a, b, c};
#else
  return {dnnl::matmul::desc(a, b, c), engine};
#endif
}

struct Product {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  dnnl::memory a, b, c;
  dnnl::matmul matmul;

  Product(View<float, 2> va, View<float, 2> vb, View<float, 2> vc, bool pack_b)
      : a(layout(va), engine, va.data), b(layout(vb), engine, vb.data), c(layout(vc), engine, vc.data) {
    const dnnl::memory::desc any({vb.size(0), vb.size(1)}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::any);
    const auto pd = plan(engine, layout(va), pack_b ? any : layout(vb), layout(vc));
    matmul = dnnl::matmul(pd);
    if (!pack_b || pd.weights_desc() == layout(vb)) return;
    dnnl::memory packed(pd.weights_desc(), engine);
    dnnl::reorder(b, packed).execute(stream, b, packed);
    stream.wait();
    b = packed;
  }

  void run() {
    matmul.execute(stream, {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}});
    stream.wait();
  }
};

}  // namespace

Work onednn_matmul(const std::string& name, View<float, 2> a, View<float, 2> b, View<float, 2> c, bool pack_b) {
  omp_set_num_threads(default_pool().threads());
  const auto product = std::make_shared<Product>(a, b, c, pack_b);
  const double operations = 2.0 * static_cast<double>(a.size(0) * a.size(1) * b.size(1));
  return {name, operations, [product] { product->run(); }};
}

}  // namespace headlight::bench
