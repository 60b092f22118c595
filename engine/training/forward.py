"""The fast forward pass: one order of operations, whoever computes them.

``ops`` is a `torch_model.TorchPass` or a `fused.FusedPass`; each has a decoder that computes the
mixers with a memory instead of over a whole sequence. The reference is `reference.logits`.
"""

from __future__ import annotations


def forward(ops, tokens):
    """Logits after each of the tokens."""
    x, y = ops.embed(tokens), None
    for i in range(ops.config.n_layers):
        x, h = ops.add_norm(x, y, f"{i}.norm1")
        if ops.config.is_attention(i):
            mixed = ops.attention(i, ops.product(h, f"{i}.qkv"))
        else:
            mixed = ops.delta_rule(i, ops.product(ops.convolution(i, h), f"{i}.qkv"))
        y = ops.product(mixed, f"{i}.out")
        x, h = ops.add_norm(x, y, f"{i}.norm2")
        y = ops.product(ops.swiglu(i, ops.product(h, f"{i}.gate_up")), f"{i}.down")
    x, h = ops.add_norm(x, y, "final_norm")
    return ops.product(h, "head")
