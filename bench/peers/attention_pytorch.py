"""PyTorch's attention for compare_attention.sh, each in the faster of two layouts: scaled_dot_product_attention with
its fused back end, and matrix product, softmax, matrix product, written out or as its math back end has them."""

import argparse
import torch
import torch.nn.functional as F
from serve import Contender, Problem, fastest, serve
from torch.nn.attention import SDPBackend, sdpa_kernel

class Tensors:
    """Inputs as (B, heads, T, K): a view of (B, T, heads, K), or copied so that a head's rows follow each other."""

    def __init__(self, p: Problem, copied: bool):
        self.p = p

        def tensor(name: str) -> torch.Tensor:
            x = torch.from_numpy(p.load(name)).transpose(1, 2)
            return (x.contiguous() if copied else x).requires_grad_(p.has_gradients)

        self.q = tensor("q")
        k, v = tensor("k"), tensor("v")
        # clone() keeps strides
        self.sets = [(k, v)] + [(k.clone(), v.clone()) for _ in range(1, p.sets)]
        self.d_o = tensor("d_o").detach() if p.has_gradients else None


def named(arrays: dict[str, torch.Tensor]) -> dict:
    return {name: x.detach().transpose(1, 2).numpy() for name, x in arrays.items()}


def contender(name: str, variant: str, tensors: Tensors, attend) -> Contender:
    """attend(q, k, v) -> o"""
    if not tensors.p.has_gradients:

        def run(index: int) -> torch.Tensor:
            with torch.inference_mode():
                return attend(tensors.q, *tensors.sets[index])

        return Contender(name, variant, run, lambda: named({"o": run(0)}))
    k, v = tensors.sets[0]
    o = attend(tensors.q, k, v) if tensors.p.kind == "backward" else None

    def gradients(_: int) -> tuple:
        out = attend(tensors.q, k, v) if o is None else o
        return torch.autograd.grad(out, (tensors.q, k, v), tensors.d_o, retain_graph=o is not None)

    return Contender(name, variant, gradients, lambda: named(dict(zip(("dq", "dk", "dv"), gradients(0)))))


def layout(copied: bool) -> str:
    return "(B,H,T,K) in memory" if copied else "(B,T,H,K) in memory"


def sdpa(p: Problem, back_end: SDPBackend, copied: bool) -> Contender:
    causal = p.causal and p.Tq > 1  # a single query sees all keys
    grouped = p.H != p.Hkv

    def attend(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=grouped)

    def attend_by_choice(q, k, v):
        with sdpa_kernel(back_end):
            return attend(q, k, v)

    if back_end == SDPBackend.FLASH_ATTENTION:  # what PyTorch takes by itself: the choice would cost time at each call
        return contender("PyTorch", f"flash, {layout(copied)}", Tensors(p, copied), attend)
    return contender("PyTorch composed", f"its math back end, {layout(copied)}", Tensors(p, copied), attend_by_choice)


def composed(p: Problem, copied: bool) -> Contender:
    hidden = None
    if p.causal and p.Tq > 1:
        hidden = torch.full((p.Tq, p.Tk), float("-inf")).triu(1)
    group = p.H // p.Hkv

    def attend(q, k, v):
        if group > 1:  # the queries of a key/value head as its rows
            q = q.reshape(p.B, p.Hkv, group * p.Tq, p.K)
        scores = (q * p.scale) @ k.transpose(2, 3)
        if hidden is not None:
            scores = scores + hidden
        return (torch.softmax(scores, -1) @ v).reshape(p.B, p.H, p.Tq, p.K)

    return contender("PyTorch composed", f"@, softmax, @, {layout(copied)}", Tensors(p, copied), attend)


def contenders_for(p: Problem) -> list[Contender]:
    both = (False, True)
    fused = [lambda c=c: sdpa(p, SDPBackend.FLASH_ATTENTION, c) for c in both]
    plain = [lambda c=c: composed(p, c) for c in both] + [lambda c=c: sdpa(p, SDPBackend.MATH, c) for c in both]
    return fastest(fused, p.sets) + fastest(plain, p.sets)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, required=True)
    torch.set_num_threads(parser.parse_args().threads)
    serve(contenders_for)


if __name__ == "__main__":
    main()
