"""ONNX Runtime's attention for compare_attention.sh: com.microsoft's MultiHeadAttention and GroupQueryAttention, and
the Attention of the default domain's opset 23, each with the fastest of the layouts that it takes."""

import argparse

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper
from serve import Contender, Problem, fastest, serve

threads = 1


class Session:
    """One operator as a graph of its own, with inputs and outputs bound to memory beforehand, for each set."""

    def __init__(self, op: str, domain: str, attributes: dict, inputs: list[dict], outputs: dict, shared=()):
        """inputs: for each set its arrays by name, None for one that is left out. outputs: shapes by name; those in
        `shared`, (output, input) pairs, are written to the memory of an input."""
        first = inputs[0]
        kinds = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.int32): TensorProto.INT32}
        node = helper.make_node(
            op, [n if x is not None else "" for n, x in first.items()], list(outputs), domain=domain, **attributes
        )
        graph = helper.make_graph(
            [node],
            "attention",
            [helper.make_tensor_value_info(n, kinds[x.dtype], x.shape) for n, x in first.items() if x is not None],
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n, shape in outputs.items()],
        )
        opsets = [helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self.session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        self.out = ort.OrtValue.ortvalue_from_shape_and_type(outputs["o"], np.float32)
        self.bindings = []
        for arrays in inputs:
            binding = self.session.io_binding()
            values = {n: ort.OrtValue.ortvalue_from_numpy(x) for n, x in arrays.items() if x is not None}
            for n, value in values.items():
                binding.bind_ortvalue_input(n, value)
            for n, shape in outputs.items():
                if n == "o":
                    binding.bind_ortvalue_output(n, self.out)
                elif n in dict(shared):
                    binding.bind_ortvalue_output(n, values[dict(shared)[n]])
                else:
                    value = ort.OrtValue.ortvalue_from_shape_and_type(shape, np.float32)
                    binding.bind_ortvalue_output(n, value)
            self.bindings.append((binding, arrays))

    def run(self, index: int) -> None:
        self.session.run_with_iobinding(self.bindings[index][0])


def contender(p: Problem, name: str, variant: str, session: Session, heads_first: bool) -> Contender:
    def results() -> dict[str, np.ndarray]:
        session.run(0)
        o = session.out.numpy()
        if heads_first:
            o = o.reshape(p.B, p.H, p.Tq, p.K).transpose(0, 2, 1, 3)
        return {"o": o.reshape(p.B, p.Tq, p.H, p.K)}

    return Contender(name, variant, session.run, results)


def rows(x: np.ndarray) -> np.ndarray:
    """(B, T, heads, K) as (B, T, heads K)"""
    return x.reshape(x.shape[0], x.shape[1], -1)


def by_head(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x.transpose(0, 2, 1, 3))


def copies(p: Problem, fixed: dict, varying: dict) -> list[dict]:
    """The inputs of each set: `fixed`, and `varying` in memory of its own."""
    return [fixed | {n: None if x is None else x.copy() for n, x in varying.items()} for _ in range(p.sets)]


def multi_head(p: Problem, keys_by_head: bool) -> Contender:
    layout = by_head if keys_by_head else rows
    inputs = copies(p, {"q": rows(p.load("q"))}, {"k": layout(p.load("k")), "v": layout(p.load("v"))})
    attributes = {"num_heads": p.H, "scale": p.scale, "unidirectional": int(p.causal and p.Tq > 1)}
    session = Session("MultiHeadAttention", "com.microsoft", attributes, inputs, {"o": (p.B, p.Tq, p.H * p.K)})
    variant = "keys and values (B,H,T,K)" if keys_by_head else "(B,T,HK)"
    return contender(p, "ONNX Runtime MultiHeadAttention", variant, session, False)


def group_query(p: Problem) -> Contender:
    """Causal by definition. In decoding the last key is the new token's, written to the cache by the operator."""
    attributes = {"num_heads": p.H, "kv_num_heads": p.Hkv, "scale": p.scale}
    q, k, v = (p.load(n) for n in ("q", "k", "v"))
    lengths = np.full(p.B, p.Tk - 1, np.int32)
    total = np.array(p.Tk, np.int32)
    cache = (p.B, p.Hkv, p.Tk, p.K)
    outputs = {"o": (p.B, p.Tq, p.H * p.K), "present_k": cache, "present_v": cache}
    if p.kind == "decode":
        new = {"k": rows(k[:, -1:]), "v": rows(v[:, -1:])}
        inputs = copies(p, {"q": rows(q)}, {**new, "past_k": by_head(k), "past_v": by_head(v)})
        shared = (("present_k", "past_k"), ("present_v", "past_v"))
        variant = "cache shared between past and present"
    else:
        inputs = copies(p, {"q": rows(q)}, {"k": rows(k), "v": rows(v), "past_k": None, "past_v": None})
        shared, variant = (), "prompt"
    for arrays in inputs:
        arrays.update(lengths=lengths, total=total)
    session = Session("GroupQueryAttention", "com.microsoft", attributes, inputs, outputs, shared)
    return contender(p, "ONNX Runtime GroupQueryAttention", variant, session, False)


def standard(p: Problem, heads_first: bool) -> Contender:
    layout = by_head if heads_first else rows
    attributes = {"scale": p.scale, "is_causal": int(p.causal and p.Tq > 1)}
    shape = (p.B, p.H, p.Tq, p.K) if heads_first else (p.B, p.Tq, p.H * p.K)
    if not heads_first:
        attributes.update(q_num_heads=p.H, kv_num_heads=p.Hkv)
    inputs = copies(p, {"q": layout(p.load("q"))}, {"k": layout(p.load("k")), "v": layout(p.load("v"))})
    session = Session("Attention", "", attributes, inputs, {"o": shape})
    return contender(p, "ONNX Runtime Attention", "(B,H,T,K)" if heads_first else "(B,T,HK)", session, heads_first)


def contenders_for(p: Problem) -> list[Contender]:
    if p.has_gradients:  # inference only
        return []
    found = fastest([lambda c=c: standard(p, c) for c in (False, True)], p.sets)
    if p.H == p.Hkv:
        found += fastest([lambda c=c: multi_head(p, c) for c in (False, True)], p.sets)
    if p.causal or p.kind == "decode":
        found += fastest([lambda: group_query(p)], p.sets)
    return found


def main() -> None:
    global threads
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, required=True)
    threads = parser.parse_args().threads
    serve(contenders_for)


if __name__ == "__main__":
    main()
