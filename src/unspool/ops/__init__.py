"""Tensor functions: the sparse product, the polynomial primitive, proximal operators, activations, dropout."""
