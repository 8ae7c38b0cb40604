"""Compositional k-means as the paper's authors run it, in PyTorch: 100 restarts × 100 steps of Adam, each with a new
assignment of all examples; the loss is the root of the sum of squared distances between normalised vectors. Prints
seconds and the lowest sum. Arguments: the examples (Parquet), the weights of g (safetensors), k, threads."""

import json
import sys
import time

import numpy
import pyarrow.parquet
import torch
from torch.nn.functional import normalize

RESTARTS, STEPS, LR = 100, 100, 0.2


def read_weights(path):
    data = open(path, "rb").read()
    size = int.from_bytes(data[:8], "little")
    tensors = {}
    for name, tensor in json.loads(data[8 : 8 + size]).items():
        if name != "__metadata__":
            start, end = (8 + size + at for at in tensor["data_offsets"])
            tensors[name] = numpy.frombuffer(data[start:end], "<f4").reshape(tensor["shape"])
    return tensors


def main(examples, weights, k, threads):
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    column = pyarrow.parquet.read_table(examples)["embedding"].combine_chunks()
    x = torch.tensor(column.flatten().to_numpy().reshape(len(column), -1))
    g = {name: torch.tensor(value) for name, value in read_weights(weights).items()}
    left, right = torch.triu_indices(k, k, 1)

    def centres(m):
        a, b = m[left], m[right]
        linear = (a + b) @ g["linear1.weight"].T + 2 * g["linear1.bias"]
        pairs = linear + (a * b) @ g["linear2.weight"].T + g["linear2.bias"]
        return normalize(torch.cat([m, pairs]))

    started = time.perf_counter()
    points = normalize(x)
    lowest = float("inf")
    for _ in range(RESTARTS):
        m = x[torch.randperm(len(x))[:k]].clone().requires_grad_()
        adam = torch.optim.Adam([m], lr=LR)
        for _ in range(STEPS):
            adam.zero_grad()
            squared = 2 - 2 * points @ centres(m).T
            loss = squared.min(1).values.sum().sqrt()
            loss.backward()
            adam.step()
        with torch.no_grad():
            lowest = min(lowest, (2 - 2 * points @ centres(m).T).min(1).values.double().sum().item())
    print(json.dumps([time.perf_counter() - started, lowest]))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
