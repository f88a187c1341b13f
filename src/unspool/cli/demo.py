"""``unspool demo``: a noisy signal on a sensor network, denoised layer by layer."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

import torch
from rich.table import Table
from torch import Tensor

import unspool as us
from unspool.cli.paths import check_folder
from unspool.cli.terminal import Terminal
from unspool.files import write_whole


@dataclass(frozen=True, eq=False)
class Scene:
    """A graph, where its nodes lie, a clean signal and how strong the noise is."""

    graph: us.Graph
    positions: Tensor
    clean: Tensor
    noise: float

    def noisy(self, seed: int) -> Tensor:
        """The clean signal with fresh noise."""
        generator = torch.Generator().manual_seed(seed)
        return self.clean + self.noise * torch.randn(self.clean.shape, generator=generator)

    def error(self, h: Tensor) -> float:
        """Root mean square distance from the clean signal."""
        return float((h - self.clean).square().mean().sqrt())


def run(nodes: int, depth: int, noise: float, alpha: float, seed: int, out: Path) -> None:
    """Unroll, print, train, draw."""
    console = Terminal(highlight=True)
    check_writable(out)
    scene = make_scene(nodes, noise, seed)
    x = scene.noisy(seed + 1)
    objective = us.Fidelity(alpha) + us.Smoothness(1 - alpha)
    net = us.unroll(objective, us.GradientDescent(step=0.5), depth=depth)
    trace = net.trace(x, scene.graph)
    exact = us.minimise(objective, x, scene.graph)
    console.print(f"{scene.graph}\nminimise  {objective}   with {depth} steps of gradient descent, η = 1/2\n")
    console.print(layer_table(scene, trace, exact, x))
    learnt = train(scene, depth, alpha, seed)
    h = learnt(x, scene.graph).detach()
    console.print(
        f"the same network with its own α in each layer, trained on 40 other noise draws: error {scene.error(h):.4f}\n"
    )
    console.print(f"{learnt.read_back(scene.graph)}", style="dim", soft_wrap=True)
    if not can_draw():
        console.print("no picture: drawing needs matplotlib (pip install 'unspool[plot]')", markup=False)
        return
    draw(scene, x, trace, exact, h, objective, out)
    console.print(f"picture: {out}", soft_wrap=True)


def make_scene(nodes: int, noise: float, seed: int) -> Scene:
    """A smooth wave with one sharp step, on sensors in the unit square."""
    graph, positions = us.graph.sensor(nodes, seed=seed)
    px, py = positions[:, 0], positions[:, 1]
    clean = torch.sin(5 * px) * torch.cos(4 * py) + (px + py > 1.1).to(px.dtype)
    return Scene(graph, positions, clean[:, None], noise)


def layer_table(scene: Scene, trace: us.Trace, exact: Tensor, x: Tensor) -> Table:
    """Objective and error per layer, with noisy input and exact solution around them."""
    table = Table()
    for head in ("layer", "objective", "gradient", "distance to exact", "error to the clean signal"):
        table.add_column(head, justify="right")
    table.add_row("noisy input", f"{trace.before[0]:.3f}", "", "", f"{scene.error(x):.4f}")
    for k, h in enumerate(trace.iterates[1:]):
        far = trace.distance[k]
        table.add_row(
            str(k + 1),
            f"{trace.after[k]:.3f}",
            f"{trace.gradient[k]:.2e}",
            "" if far is None else f"{far:.2e}",
            f"{scene.error(h):.4f}",
        )
    least = trace.minimum[-1]
    table.add_row("exact", "" if least is None else f"{least:.3f}", "0", "0", f"{scene.error(exact):.4f}", style="bold")
    return table


def train(scene: Scene, depth: int, alpha: float, seed: int) -> us.Unrolled:
    """Fit one α per layer so that other noisy draws come out clean: the bilevel problem in its smallest form."""
    coefficient = us.Learnable(alpha, per_layer=True, within=(0, 1), name="α")
    net = us.unroll(
        us.Fidelity(coefficient) + us.Smoothness(1 - coefficient), us.GradientDescent(step=0.5), depth=depth
    )
    draws = torch.stack([scene.noisy(seed + 100 + i) for i in range(40)])
    optimiser = torch.optim.Adam(net.parameters(), lr=0.1)
    for _ in range(60):
        optimiser.zero_grad()
        loss = (net(draws, scene.graph) - scene.clean).square().mean()
        loss.backward()
        optimiser.step()
    return net


def check_writable(out: Path) -> None:
    """Find out before the work whether the picture can be written."""
    if out.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise ValueError(f"--out {out}: pictures are written as .png, .svg or .pdf; choose one of these endings")
    check_folder(out.parent)


def can_draw() -> bool:
    """Whether there is something to draw with."""
    return importlib.util.find_spec("matplotlib") is not None


def check_drawing() -> None:
    """Find out before the work whether there is something to draw with."""
    if not can_draw():
        raise ValueError("drawing needs matplotlib: pip install 'unspool[plot]'")


def draw(
    scene: Scene, x: Tensor, trace: us.Trace, exact: Tensor, learnt: Tensor, objective: us.Objective, out: Path
) -> None:
    """Four maps and two curves in one PNG, written whole or not at all."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    depth = len(trace) - 1
    figure, axes = plt.subplots(2, 3, figsize=(13, 8), layout="constrained")
    low, high = float(scene.clean.min()) - 0.3, float(scene.clean.max()) + 0.3
    last = trace.iterates[-1]
    maps = (
        ("clean", scene.clean), ("noisy input X", x), (f"{depth} unrolled layers", last), ("exact minimiser", exact), ("trained, one α per layer", learnt),
    )  # fmt: skip
    for axis, (title, signal) in zip(axes.flat, maps, strict=False):
        axis.scatter(*scene.positions.T, c=signal[:, 0], cmap="viridis", s=14, vmin=low, vmax=high)
        error = "" if title == "clean" else f"  (error {scene.error(signal):.3f})"
        axis.set(title=title + error, xticks=[], yticks=[], aspect="equal")
    figure.colorbar(axes.flat[0].collections[0], ax=axes[:, 0], location="left", shrink=0.6, label="signal")
    curve = axes.flat[5]
    layers = range(depth + 1)
    curve.plot(layers, [scene.error(h) for h in trace], "o-", color="tab:blue", label="error, fixed α")
    curve.axhline(scene.error(exact), color="tab:blue", linestyle=":", label="error of the exact minimiser")
    curve.axhline(scene.error(learnt), color="tab:green", linestyle="--", label="error, trained")
    curve.set(xlabel="layer", ylabel="error to the clean signal", title=str(objective), ylim=(0, None))
    twin = curve.twinx()
    twin.plot(
        layers, [trace.before[0], *trace.after], "s-", color="tab:orange", markersize=4, label="objective (right)"
    )
    twin.set(ylabel="objective", ylim=(0, None))
    handles = curve.get_legend_handles_labels()[0] + twin.get_legend_handles_labels()[0]
    curve.legend(handles, [h.get_label() for h in handles], fontsize=8)
    write_whole(out, lambda file: figure.savefig(file, format=out.suffix.removeprefix("."), dpi=110))
    plt.close(figure)
