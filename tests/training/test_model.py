"""Forward and backward passes: decoding, gradients, optimiser."""

import pytest
import torch

from backend import make_model
from config import HEAD_DIM, ROPE_THETA, ModelConfig
from forward import forward
from fused import FusedModel, KernelsUnavailable
from helpers import parameter_count, small_model, small_pair
from loss import cross_entropy, distillation
from optim import Optimiser, orthogonalise
from params import Parameters, rope_tables
from torch_model import TorchDecoder, TorchModel, TorchPass

BATCH, TIME = 2, 192


def fused(parameters: Parameters) -> FusedModel:
    try:
        return FusedModel(parameters)
    except KernelsUnavailable as error:
        pytest.skip(str(error))


def batch(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    text = torch.randint(0, 128, (BATCH, TIME + 1), generator=generator)
    return text[:, :-1].contiguous(), text[:, 1:].contiguous()


def float64_gradients(p: Parameters, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, dict]:
    weights = {n: w.double().requires_grad_() for n, w in p.views.items()}
    tables = rope_tables(p.config.max_seq, ROPE_THETA, HEAD_DIM)
    logits = forward(TorchPass(p.config, weights, tables), x)
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten())
    loss.backward()
    return logits.detach(), {n: w.grad for n, w in weights.items()}


def test_parameter_counts_of_both_shapes():
    default = ModelConfig()
    assert parameter_count(default) == 21_352_044
    assert parameter_count(default.draft(), own_only=True) == 7_084_452
    scaled = ModelConfig(d_model=1024, n_layers=16, d_ff=3072)
    assert parameter_count(scaled) == 218_436_992
    assert parameter_count(scaled.draft(), own_only=True) == 54_543_456


def test_parallel_form_equals_the_decoder():
    p = small_model()
    x, _ = batch()
    decoder = TorchDecoder(p, BATCH, TIME)
    steps = torch.stack([decoder.step(x[:, t]) for t in range(TIME)], 1)
    logits, _ = TorchModel(p).forward(x, keep=False)
    assert (steps.flatten(0, 1) - logits.cpu()).abs().max() < 1e-4


def test_decoder_goes_back_to_a_snapshot():
    p = small_model()
    x, _ = batch()
    decoder = TorchDecoder(p, BATCH, 64)
    decoder.feed(x[:, :20])
    here = decoder.snapshot()
    first = decoder.feed(x[:, 20:30])
    decoder.restore(here)
    decoder.feed(x[:, 40:45])
    decoder.restore(here)
    assert torch.equal(decoder.feed(x[:, 20:30]), first)


def test_fused_gradients_against_float64():
    p = small_model()
    x, y = batch()
    reference, wanted = float64_gradients(p, x, y)
    model = fused(p)
    logits, saved = model.forward(x)
    _, d_logits, _ = cross_entropy(logits, y)
    model.backward(saved, d_logits)
    error = (logits.double() - reference.flatten(0, 1)).norm() / reference.norm()
    assert error < 0.01
    for name, grad in wanted.items():
        got = model.g[name].double()
        cosine = (got * grad).sum() / (got.norm() * grad.norm())
        # A gate's gradient is a sum over all tokens that nearly cancels; bf16 noise shows in it.
        noisy = name.endswith("gates")
        assert cosine > (0.99 if noisy else 0.9995), name
        assert (got - grad).norm() / grad.norm() < (0.2 if noisy else 0.05), name


def test_torch_model_has_the_gradients_of_float64():
    p = small_model()
    x, y = batch()
    _, wanted = float64_gradients(p, x, y)
    model = TorchModel(p)
    logits, saved = model.forward(x)
    _, d_logits, _ = cross_entropy(logits, y.to(logits.device))
    model.backward(saved, d_logits)
    for name, grad in wanted.items():
        assert (model.g[name].double() - grad).norm() / grad.norm() < 1e-3, name


def test_quantised_draft_agrees_between_backends():
    _, draft = small_pair()
    x, _ = batch()
    plain, fast = TorchModel(draft), fused(draft)
    teacher = torch.randn(BATCH * TIME, 128, generator=torch.Generator().manual_seed(3))
    weights = torch.ones(BATCH, TIME)
    for model in (plain, fast):
        logits, saved = model.forward(x)
        _, d_logits = distillation(logits.cpu(), teacher, weights, 1.3)
        model.backward(saved, d_logits, shared=False)
    for name in draft.shapes:
        if name in ("embed", "head", "final_norm"):
            assert not plain.g[name].any() and not fast.g[name].any()
            continue
        error = (plain.g[name] - fast.g[name]).norm() / plain.g[name].norm()
        assert error < 0.1, name


def test_losses_are_the_gradient_of_their_value():
    generator = torch.Generator().manual_seed(1)
    logits = torch.randn(6, 5, generator=generator).requires_grad_()
    targets = torch.tensor([0, 1, 2, 3, 4, 0])
    weights = torch.tensor([1.0, 2.0, 0.0, 1.0, 4.0, 0.5])
    each = torch.nn.functional.cross_entropy(logits, targets, reduction="none")
    wanted = torch.autograd.grad((each * weights).sum() / weights.sum(), logits)[0]
    value, grad, _ = cross_entropy(logits.detach(), targets, weights)
    assert torch.allclose(grad, wanted, atol=1e-6)
    teacher = torch.randn(6, 5, generator=generator)
    goal = torch.softmax(1.3 * teacher, 1)
    kl = (goal * (goal.log() - torch.log_softmax(logits, 1))).sum(1)
    wanted = torch.autograd.grad((kl * weights).sum() / weights.sum(), logits)[0]
    value, grad = distillation(logits.detach(), teacher, weights, 1.3)
    assert abs(value - ((kl * weights).sum() / weights.sum()).item()) < 1e-5
    assert torch.allclose(grad, wanted, atol=1e-6)


def test_muon_update_is_close_to_orthogonal():
    update = torch.randn(64, 96, generator=torch.Generator().manual_seed(2))
    singular = torch.linalg.svdvals(orthogonalise(update))
    assert 0.5 < singular.min() and singular.max() < 1.5


def test_fused_optimiser_follows_the_plain_one():
    p, q = small_model(), small_model()
    grad = torch.randn(p.size, generator=torch.Generator().manual_seed(4)) * 1e-3
    model = fused(p)
    start = p.flat.clone()
    for parameters, kernels in ((p, model.lib), (q, None)):
        Optimiser(parameters, grad.clone(), 0.02, 3e-3, 0.01, kernels=kernels).step(1.0)
    moved = (p.flat - q.flat).norm() / (q.flat - start).norm()
    assert moved < 0.1


def test_a_model_learns_to_repeat():
    p = small_model()
    model = make_model(p)
    optimiser = Optimiser(p, model.grad, 0.02, 3e-3, 0.0, kernels=getattr(model, "lib", None))
    text = (torch.arange(65).remainder(7) + 97).repeat(2, 1)
    losses = []
    for _ in range(30):
        logits, saved = model.forward(text[:, :-1].contiguous())
        loss, d_logits, _ = cross_entropy(logits, text[:, 1:].to(logits.device))
        model.backward(saved, d_logits)
        optimiser.step(1.0)
        model.refresh()
        losses.append(loss)
    assert losses[-1] < 0.1 < losses[0]
