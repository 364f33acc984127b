"""One training step of the model of bench/training_step.cc in PyTorch, eager, on the CPU.

    python training_step_pytorch.py --blocks 6 --width 384 --heads 6 --context 256 --batch 8 --vocabulary 256

Prints one JSON object: the median seconds of a step, and of what PyTorch the number is.
"""

import argparse
import json
import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.norm2 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        z = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(z.transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Model(nn.Module):
    def __init__(self, a: argparse.Namespace):
        super().__init__()
        self.embed = nn.Embedding(a.vocabulary, a.width)
        self.positions = nn.Embedding(a.context, a.width)
        self.blocks = nn.ModuleList(Block(a.width, a.heads) for _ in range(a.blocks))
        self.norm = nn.LayerNorm(a.width)
        self.unembed = nn.Linear(a.width, a.vocabulary, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens) + self.positions.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.unembed(self.norm(x))


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("blocks", "width", "heads", "context", "batch", "vocabulary"):
        parser.add_argument("--" + name, type=int, required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--warmup", type=int, default=3)
    a = parser.parse_args()

    torch.set_num_threads(a.threads)
    torch.manual_seed(0)
    model = Model(a)
    decays = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    groups = [{"params": decays, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    # the fastest of the implementations that PyTorch offers on CPUs
    optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.99), fused=True)

    seconds = []
    for _ in range(a.warmup + a.steps):
        tokens = torch.randint(a.vocabulary, (a.batch, a.context + 1))
        begin = time.perf_counter()
        logits = model(tokens[:, :-1])
        loss = F.cross_entropy(logits.view(-1, a.vocabulary), tokens[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        loss.item()
        seconds.append(time.perf_counter() - begin)
    print(
        json.dumps(
            {
                "peer": "PyTorch " + torch.__version__,
                "threads": torch.get_num_threads(),
                "parameters": sum(p.numel() for p in model.parameters()),
                "seconds_per_step": statistics.median(seconds[a.warmup :]),
            }
        )
    )


if __name__ == "__main__":
    main()
