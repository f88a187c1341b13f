"""A model of one's own: an encoder, a denoising problem with a learnt balance, a decoder."""

import torch

import unspool as us


class Calm(us.models.Model):
    def __init__(self, in_features, out_features, *, hidden=16, depth=6):
        super().__init__(in_features, out_features, hidden=hidden, depth=depth)
        alpha = us.Learnable(0.3, within=(0, 1), name="α")
        objective = us.Fidelity(alpha) + us.Smoothness(1 - alpha) + us.Sparse(0.02)
        self.p_pre = us.nn.Perceptron([in_features, hidden], dropout=0.3, open_end=False)
        self.propagation = us.unroll(objective, us.Accelerated(), depth)
        self.p_pos = us.nn.Linear(hidden, out_features)


if __name__ == "__main__":
    torch.manual_seed(0)
    graph, place = us.graph.sensor(300)
    x, y = place[:, :1] + 0.7 * torch.randn(300, 8), (place[:, 0] > 0.5).long()
    for model in (us.models.MLP(8, 2, hidden=16), Calm(8, 2)):
        adam = torch.optim.Adam(model.parameters(), lr=0.03)
        for _ in range(50):
            adam.zero_grad()
            torch.nn.functional.cross_entropy(model(x, graph)[:40], y[:40]).backward()
            adam.step()
        right = (model.eval()(x, graph).argmax(1) == y)[40:].float().mean()
        print(f"{type(model).__name__:4} {float(right):.0%} right without labels; minimises {model.objective}")
