"""Layers and their derivatives as PyTorch computes them, in double precision.

    pip install torch==2.15.0 && python golden/layers/make.py

Writes layers.json beside this file, one case on a line. Numbers that go in are multiples of 1/64, and so exact in single precision. Everything is written
in Quell's order: images with channels last, convolutions as [groups, rows, columns, channels, outputs], attention as [channels, 3 channels].
PyTorch's order is made by permutations inside the graph, so that derivatives come back in Quell's.
"""

import json
from pathlib import Path

import torch
import torch.nn.functional as F

torch.manual_seed(4)
torch.set_default_dtype(torch.float64)


def draw(*shape, spread=1.0):
    return torch.round(torch.randn(*shape) * 64 * spread) / 64


def channels_first(x):
    """[examples, rows, columns, channels] or [examples, length, channels] to PyTorch's order."""
    return x.movedim(-1, 1)


def channels_last(x):
    return x.movedim(1, -1)


def convolve(x, weight, bias, stride=1, padding=0):
    groups, *kernel, channels, outputs = weight.shape
    if x.dim() == 3:
        # A sequence: the window has one row.
        w = weight[:, 0].permute(0, 3, 2, 1).reshape(groups * outputs, channels, kernel[1])
        return channels_last(F.conv1d(channels_first(x), w, bias, stride=stride, padding=padding, groups=groups))
    w = weight.permute(0, 4, 3, 1, 2).reshape(groups * outputs, channels, *kernel)
    return channels_last(F.conv2d(channels_first(x), w, bias, stride=stride, padding=padding, groups=groups))


def standardize(weight):
    """Mean zero and length one for each output, over the window and the channels."""
    centred = weight - weight.mean(dim=(1, 2, 3), keepdim=True)
    return centred / torch.sqrt((centred**2).sum(dim=(1, 2, 3), keepdim=True) + 1e-4)


def attend(x, w_in, b_in, w_out, b_out, heads, causal):
    length, channels = x.shape[1:]
    mask = torch.triu(torch.ones(length, length, dtype=torch.bool), 1) if causal else None
    module = torch.nn.MultiheadAttention(channels, heads, batch_first=True)
    weights = {"in_proj_weight": w_in.T, "in_proj_bias": b_in, "out_proj.weight": w_out.T, "out_proj.bias": b_out}
    options = {"attn_mask": mask, "need_weights": False}
    return torch.func.functional_call(module, weights, (x, x, x), options)[0]


CASES = []


def case(name, recipes, x, weights, f):
    """One example at a time, so that each has its own derivative by the weights."""
    examples = []
    for i in range(len(x)):
        xi = x[i : i + 1].clone()
        words = name.startswith("embedding")
        xi.requires_grad_(not words)
        ws = [w.clone().requires_grad_() for w in weights]
        y = f(xi, *ws)
        g = draw(*y.shape)
        (y * g).sum().backward()
        flat = lambda t: [float(f"{v:.8e}") for v in t.reshape(-1).tolist()]
        examples.append(
            {
                "input": xi.detach().reshape(-1).tolist(),
                "output": flat(y.detach()),
                "output_gradient": g.reshape(-1).tolist(),
                "input_gradient": [0.0] * xi.numel() if words else flat(xi.grad),
                "weight_gradient": [v for w in ws for v in flat(w.grad)],
            }
        )
    flat_weights = [v for w in weights for v in w.reshape(-1).tolist()]
    CASES.append({"name": name, "recipes": recipes, "shape": list(x.shape[1:]), "weights": flat_weights, "examples": examples})


case("linear", [{"kind": "linear", "outputs": 5}], draw(3, 7), [draw(5, 7), draw(5)], F.linear)
case(
    "pointwise over a sequence",
    [{"kind": "pointwise", "outputs": 5}],
    draw(2, 6, 4),
    [draw(1, 1, 1, 4, 5), draw(5)],
    lambda x, w, b: F.linear(x, w.reshape(4, 5).T, b),
)
case(
    "convolution with stride and padding",
    [{"kind": "convolution", "outputs": 4, "kernel": [3, 2], "stride": [2, 3], "padding": [1, 0]}],
    draw(2, 7, 5, 3),
    [draw(1, 3, 2, 3, 4), draw(4)],
    lambda x, w, b: convolve(x, w, b, stride=(2, 3), padding=(1, 0)),
)
case(
    "convolution in groups",
    [{"kind": "convolution", "outputs": 6, "kernel": 3, "padding": [2, 1], "groups": 3}],
    draw(2, 5, 4, 6),
    [draw(3, 3, 3, 2, 2), draw(6)],
    lambda x, w, b: convolve(x, w, b, padding=(2, 1)),
)
case(
    "convolution over a sequence",
    [{"kind": "convolution", "outputs": 6, "kernel": 4, "stride": 3, "padding": 2, "groups": 2}],
    draw(2, 9, 4),
    [draw(2, 1, 4, 2, 3), draw(6)],
    lambda x, w, b: convolve(x, w, b, stride=3, padding=2),
)
case(
    "standardised convolution",
    [{"kind": "convolution", "outputs": 4, "kernel": 3, "stride": 2, "padding": 1, "groups": 2, "standardized": True}],
    draw(2, 5, 6, 4),
    [draw(2, 3, 3, 2, 2), draw(4)],
    lambda x, w, b: convolve(x, standardize(w), b, stride=2, padding=1),
)
for kind, two, one in [("max_pool", F.max_pool2d, F.max_pool1d), ("mean_pool", F.avg_pool2d, F.avg_pool1d)]:
    case(
        f"{kind} that overlaps",
        [{"kind": kind, "kernel": [3, 2], "stride": [2, 1]}],
        draw(2, 7, 5, 3, spread=4.0),
        [],
        lambda x, pool=two: channels_last(pool(channels_first(x), (3, 2), stride=(2, 1))),
    )
    case(
        f"{kind} with gaps over a sequence",
        [{"kind": kind, "kernel": 2, "stride": 3}],
        draw(2, 9, 4, spread=4.0),
        [],
        lambda x, pool=one: channels_last(pool(channels_first(x), 2, stride=3)),
    )
case("global mean", [{"kind": "global_mean"}], draw(2, 3, 4, 5), [], lambda x: x.mean(dim=(1, 2)))
case(
    "group norm",
    [{"kind": "group_norm", "groups": 3}],
    draw(2, 4, 3, 6),
    [draw(6), draw(6)],
    lambda x, w, b: channels_last(F.group_norm(channels_first(x), 3, w, b)),
)
case(
    "layer norm of each place",
    [{"kind": "layer_norm"}],
    draw(2, 4, 5),
    [draw(5), draw(5)],
    lambda x, w, b: F.layer_norm(x, (5,), w, b),
)
case(
    "layer norm of everything",
    [{"kind": "layer_norm", "over": "all"}],
    draw(2, 3, 2, 5),
    [draw(3, 2, 5), draw(3, 2, 5)],
    lambda x, w, b: F.layer_norm(x, (3, 2, 5), w, b),
)
case(
    "embedding with a word twice",
    [{"kind": "embedding", "words": 5, "width": 3}],
    torch.tensor([[4.0, 0.0, 4.0, 1.0], [2.0, 2.0, 2.0, 2.0]]),
    [draw(5, 3)],
    lambda x, w: F.embedding(x.long(), w),
)
case("positions", [{"kind": "positions"}], draw(2, 3, 4), [draw(3, 4)], lambda x, w: x + w)
for causal in [False, True]:
    case(
        "self-attention" + ", causal" * causal,
        [{"kind": "self_attention", "heads": 3, "causal": causal}],
        draw(2, 5, 6),
        [draw(6, 18), draw(18), draw(6, 6), draw(6)],
        lambda x, *w, causal=causal: attend(x, *w, heads=3, causal=causal),
    )
for kind, function in [
    ("relu", F.relu),
    ("tanh", torch.tanh),
    ("selu", F.selu),
    ("gelu", lambda x: F.gelu(x, approximate="tanh")),
    ("silu", F.silu),
    ("sigmoid", torch.sigmoid),
]:
    case(kind, [{"kind": kind}], draw(2, 15, spread=3.0), [], function)


def encode(x, n1, m1, w_in, b_in, w_out, b_out, n2, m2, up, up_bias, down, down_bias):
    """A layer of a transformer's encoder, as PyTorch has it."""
    module = torch.nn.TransformerEncoderLayer(
        4, 2, 7, dropout=0.0, activation=lambda x: F.gelu(x, approximate="tanh"), batch_first=True, norm_first=True
    )
    weights = {
        "norm1.weight": n1, "norm1.bias": m1, "norm2.weight": n2, "norm2.bias": m2,
        "self_attn.in_proj_weight": w_in.T, "self_attn.in_proj_bias": b_in,
        "self_attn.out_proj.weight": w_out.T, "self_attn.out_proj.bias": b_out,
        "linear1.weight": up.reshape(4, 7).T, "linear1.bias": up_bias,
        "linear2.weight": down.reshape(7, 4).T, "linear2.bias": down_bias,
    }  # fmt: skip
    return torch.func.functional_call(module, weights, (x,))


norm = {"kind": "layer_norm"}
case(
    "a layer of a transformer",
    [
        {"kind": "residual", "layers": [norm, {"kind": "self_attention", "heads": 2}]},
        {
            "kind": "residual",
            "layers": [norm, {"kind": "pointwise", "outputs": 7}, {"kind": "gelu"}, {"kind": "pointwise", "outputs": 4}],
        },
    ],
    draw(2, 5, 4),
    [draw(4), draw(4), draw(4, 12), draw(12), draw(4, 4), draw(4), draw(4), draw(4),
     draw(1, 1, 1, 4, 7), draw(7), draw(1, 1, 1, 7, 4), draw(4)],
    encode,
)  # fmt: skip


def block(x, n, m, w1, b1, w2, b2, p, q):
    y = F.relu(channels_last(F.group_norm(channels_first(x), 2, n, m)))
    y = convolve(torch.tanh(convolve(y, standardize(w1), b1, stride=2, padding=1)), w2, b2, padding=1)
    return y + convolve(x, p, q, stride=2)


case(
    "a residual block with a projection",
    [
        {
            "kind": "residual",
            "layers": [
                {"kind": "group_norm", "groups": 2},
                {"kind": "relu"},
                {"kind": "convolution", "outputs": 3, "kernel": 3, "stride": 2, "padding": 1, "standardized": True},
                {"kind": "tanh"},
                {"kind": "convolution", "outputs": 3, "kernel": 3, "padding": 1},
            ],
            "projection": [{"kind": "convolution", "outputs": 3, "kernel": 1, "stride": 2}],
        }
    ],
    draw(2, 5, 4, 4),
    [draw(4), draw(4), draw(1, 3, 3, 4, 3), draw(3), draw(1, 3, 3, 3, 3), draw(3), draw(1, 1, 1, 4, 3), draw(3)],
    block,
)

lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in CASES)
Path(__file__).with_name("layers.json").write_text(f'{{"torch":"{torch.__version__.split("+")[0]}","cases":[\n{lines}\n]}}\n')
