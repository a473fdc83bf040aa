# SPDX-License-Identifier: MIT OR Apache-2.0
"""PyTorch as a contestant of gpu.py, on CUDA: one network at a time, or several that it compiles first.

usage: gpu_torch.py SECONDS [NAME:BATCH:PRECISION ...]
It compiles those (torch.compile) one after the other and begins none after so many seconds; then

  (first, unasked)                     ready NS 0
  have                                 have KEY ...        what was compiled
  load KEY                             loaded NS           makes the network, runs it and records its CUDA graph; or
                                                           takes what was compiled, and a graph of which was recorded
  ways                                 ways WAY ...        eager and graph, or compiled
  slice WAY SECONDS                    times NS NS ...     of the network loaded last
  memory                               memory BYTES        the allocator's peak over eager runs of it

Inputs and outputs stay on the device. 32-bit floats are computed without TF32; 16-bit convolutions with their channels
last; cuDNN tries its algorithms. Parameters are random.
"""
import os
import pathlib
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "zoo"))
from worker import slice_times      # noqa: E402

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
ROOM, PAST = 1024, 255


class Decode(nn.Module):
    """GPT-2, one token behind PAST others, whose keys and values lie in buffers of ROOM. What is seen of them is a
    fixed part, which suits a CUDA graph best and wants no mask."""
    def __init__(self, batch, width=768, heads=12, layers=12, vocabulary=50257):
        super().__init__()
        self.heads, self.layers = heads, layers
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(ROOM, width)
        self.parts = nn.ModuleList(nn.ModuleDict({
            "ln_1": nn.LayerNorm(width), "qkv": nn.Linear(width, 3 * width), "proj": nn.Linear(width, width),
            "ln_2": nn.LayerNorm(width), "fc": nn.Linear(width, 4 * width), "out": nn.Linear(4 * width, width)
        }) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        self.register_buffer("keys", torch.zeros(layers, batch, heads, ROOM, width // heads))
        self.register_buffer("values", torch.zeros(layers, batch, heads, ROOM, width // heads))

    def forward(self, ids, position):
        x = self.wte(ids) + self.wpe(position)
        b, t, width = x.shape
        for i, part in enumerate(self.parts):
            q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2)
                       for y in part["qkv"](part["ln_1"](x)).split(width, dim=2))
            self.keys[i].index_copy_(2, position, k)
            self.values[i].index_copy_(2, position, v)
            y = F.scaled_dot_product_attention(q, self.keys[i, :, :, :PAST + 1], self.values[i, :, :, :PAST + 1])
            x = x + part["proj"](y.transpose(1, 2).reshape(b, t, width))
            x = x + part["out"](F.gelu(part["fc"](part["ln_2"](x)), approximate="tanh"))
        return F.linear(self.ln_f(x), self.wte.weight)


def image(batch, size=224):
    return [torch.rand(batch, 3, size, size) * 2 - 1]


def ids(batch, most):
    return [torch.randint(0, most, (batch, 128))]


def resnet50(batch):
    import torchvision
    return torchvision.models.resnet50(), image(batch), {}


def mobilenet_v2(batch):
    import torchvision
    return torchvision.models.mobilenet_v2(), image(batch), {}


def vit_b_16(batch):
    import torchvision
    return torchvision.models.vit_b_16(), image(batch), {}


def bert_base(batch):
    import transformers as hf
    model = hf.BertModel(hf.BertConfig(attn_implementation="sdpa"))
    return model, ids(batch, 30000) + [torch.ones(batch, 128, dtype=torch.int64)], {}


def gpt2(batch):
    import transformers as hf
    model = hf.GPT2LMHeadModel(hf.GPT2Config(attn_implementation="sdpa"))
    return model, ids(batch, 50000), {"use_cache": False}


def gpt2_decode(batch):
    return Decode(batch), [torch.randint(0, 50000, (batch, 1)), torch.tensor([PAST])], {}


def llama_tiny(batch):
    import transformers as hf
    model = hf.LlamaForCausalLM(hf.LlamaConfig(
        num_hidden_layers=8, hidden_size=512, num_attention_heads=8, num_key_value_heads=4, intermediate_size=1376,
        vocab_size=32000, rms_norm_eps=1e-6, attn_implementation="sdpa"))
    return model, ids(batch, 30000), {"use_cache": False}


def unet(batch):
    import networks
    return networks.UNet(64), image(batch, 256), {}


def whisper_tiny_encoder(batch):
    import transformers as hf
    from transformers.models.whisper.modeling_whisper import WhisperEncoder
    config = hf.WhisperConfig(d_model=384, encoder_layers=4, encoder_attention_heads=6, encoder_ffn_dim=1536,
                              num_mel_bins=80, attn_implementation="sdpa")
    return WhisperEncoder(config), [torch.rand(batch, 80, 3000) * 2 - 1], {}


NETWORKS = {f.__name__: f for f in (resnet50, mobilenet_v2, vit_b_16, bert_base, gpt2, gpt2_decode, llama_tiny, unet,
                                    whisper_tiny_encoder)}
WINDOWED = ("resnet50", "mobilenet_v2", "unet")


def make(key):
    """The network and its inputs on the device: a function that runs it, made of `wrap(module)`."""
    name, batch, precision = key.split(":")
    dtype, form = DTYPES[precision], torch.contiguous_format
    if name in WINDOWED and precision != "f32":
        form = torch.channels_last
    with torch.device(DEVICE):
        module, inputs, words = NETWORKS[name](int(batch))
        module = module.eval().to(dtype=dtype, memory_format=form)
        inputs = [x.to(dtype=dtype, memory_format=form if x.dim() == 4 else torch.contiguous_format)
                  if x.is_floating_point() else x for x in inputs]
    return lambda wrap: (lambda run: lambda: run(*inputs, **words))(wrap(module))


def finished():
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def recorded(run):
    """Runs it until it is at rest, and records a CUDA graph: a function that replays it, and keeps what it reads."""
    if DEVICE != "cuda":
        run()
        return run
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = run()
    return lambda: (graph.replay(), kept, run)[0]


def compile_all(keys, seconds):
    began, ready = time.monotonic(), {}
    for key in keys:
        if time.monotonic() - began > seconds:
            print(key, "not begun", file=sys.stderr)
            continue
        try:
            torch._dynamo.reset()
            ready[key] = recorded(make(key)(torch.compile))
        except Exception as e:                          # this network has no such column then
            print(key, "not compiled:", str(e)[:300], file=sys.stderr)
    return ready


class Loaded:
    """One network: its ways to run it, by their names."""
    def __init__(self, key, compiled):
        self.ways, self.peak = {}, 0
        if key in compiled:
            self.ways["compiled"] = compiled[key]
        else:
            self.load(key)

    def load(self, key):
        eager = make(key)(lambda module: module)
        for n in range(3):
            if n == 2 and DEVICE == "cuda":             # cuDNN has made its choices
                torch.cuda.empty_cache()
                torch.cuda.reset_peak_memory_stats()
            eager()
        finished()
        if DEVICE == "cuda":
            self.peak = torch.cuda.max_memory_allocated()
        self.ways["eager"] = eager
        try:
            self.ways["graph"] = recorded(eager)
        except Exception as e:
            print(key, "no graph:", str(e)[:300], file=sys.stderr)

    def slice(self, way, seconds):
        run = self.ways[way]

        def whole():
            run()
            finished()
        return slice_times(whole, seconds)


def main():
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)                                       # what packages print is no answer
    began = time.perf_counter_ns()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    torch.set_grad_enabled(False)
    compiled, loaded = compile_all(sys.argv[2:], float(sys.argv[1])), None
    print("ready", time.perf_counter_ns() - began, 0, file=out, flush=True)
    for line in sys.stdin:
        words = line.split()
        if words[0] == "have":
            print("have", *compiled, file=out, flush=True)
        elif words[0] == "load":
            began, loaded = time.perf_counter_ns(), None
            if DEVICE == "cuda":
                torch.cuda.empty_cache()
            loaded = Loaded(words[1], compiled)
            print("loaded", time.perf_counter_ns() - began, file=out, flush=True)
        elif words[0] == "ways":
            print("ways", *loaded.ways, file=out, flush=True)
        elif words[0] == "memory":
            print("memory", loaded.peak, file=out, flush=True)
        elif words[0] == "slice":
            print("times", *loaded.slice(words[1], float(words[2])), file=out, flush=True)


if __name__ == "__main__":
    main()
