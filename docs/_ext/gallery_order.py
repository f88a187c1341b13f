"""The order of the gallery: from the idea to special cases."""

ORDER = [
    "quickstart", "denoise_signal", "sensor_jumps", "sensor_line", "missing_sensors", "outliers", "correlated_noise", "attacked_edges", "heterophily", "fairness", "label_propagation",
    "depth", "read_back", "spectrum", "explain_prediction", "own_term", "own_algorithm", "own_model", "hypergradient", "study_grid", "study_optuna", "huge_graph",
    "recommend", "pyg_script", "sklearn_pipeline", "networkx_workflow", "clustering",
]  # fmt: skip


class Reading:
    """Sorts files of examples; sphinx-gallery makes one for the folder and calls it with file names."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, file: str) -> tuple[int, str]:
        """Those that are not listed come last, by name."""
        name = file.removesuffix(".py")
        return (ORDER.index(name) if name in ORDER else len(ORDER), name)
