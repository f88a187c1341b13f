"""The one exception type of its own that the package needs."""


class IncompatibleError(ValueError):
    """A well-formed request that mathematics does not allow, said in one sentence with the way out.

    Wrong shapes, dtypes and numbers raise ``ValueError`` or ``TypeError`` as everywhere; a ``IncompatibleError`` means that
    each part is fine and the combination is not: gradient descent on a term without a gradient, an exact
    minimiser of an objective that has none.

    Example:
        >>> import unspool as us
        >>> us.unroll(us.NonNegative() + us.Smoothness(1.0), us.GradientDescent(step=0.5), depth=3)
        Traceback (most recent call last):
            ...
        unspool.errors.IncompatibleError: GradientDescent needs a gradient, but NonNegative has none; use ProximalGradient()
    """
