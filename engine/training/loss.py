"""Losses with their gradients with respect to the logits, in f32."""

from __future__ import annotations

import torch


def cross_entropy(
    logits: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor | None = None
) -> tuple[float, torch.Tensor, torch.Tensor]:
    """Weighted mean in nats, its gradient, and the loss of every token."""
    z = logits.float()
    y = targets.reshape(-1)
    log_p = torch.log_softmax(z, 1)
    each = -log_p.gather(1, y[:, None])[:, 0]
    grad = log_p.exp()
    grad[torch.arange(len(y), device=y.device), y] -= 1
    w = torch.ones_like(each) if weights is None else weights.reshape(-1)
    share = w / w.sum()
    return (each * share).sum().item(), grad * share[:, None], each


def distillation(
    logits: torch.Tensor, teacher: torch.Tensor, weights: torch.Tensor, sharpen: float
) -> tuple[float, torch.Tensor]:
    """Weighted KL to softmax(sharpen * teacher), and its gradient."""
    goal = torch.log_softmax(teacher.float() * sharpen, 1)
    log_q = torch.log_softmax(logits.float(), 1)
    share = (weights.reshape(-1) / weights.sum())[:, None]
    loss = (goal.exp() * (goal - log_q) * share).sum().item()
    return loss, (log_q.exp() - goal.exp()) * share
