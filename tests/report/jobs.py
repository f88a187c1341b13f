"""Training jobs on disk, made without training: models as they begin, histories from a generator."""

import csv
from pathlib import Path

import torch

import unspool as us
from unspool.models.pretrained import read_card, save_pretrained, write_card
from unspool.train import Stop, TrainConfig, Trial

HEAD = ["epoch", "train_loss", "valid_loss", "valid_score", "test_score"]


def history(epochs, seed):
    """Random walks that look like training."""
    random = torch.Generator().manual_seed(seed)
    noise = torch.rand(epochs, 4, generator=random, dtype=torch.float64)
    fall = torch.linspace(1.8, 0.4, epochs, dtype=torch.float64)
    return [
        [k + 1, float(fall[k] + n[0] / 5), float(fall[k] + n[1] / 5), float(0.6 + n[2] / 5), float(0.6 + n[3] / 5)]
        for k, n in enumerate(noise)
    ]


def write_history(place, rows):
    with (place / "history.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([HEAD, *rows])


def facts(rows, seed, ending="all_epochs", **data):
    best = min(rows, key=lambda row: row[2])
    made = {"name": "Toy", "hash": "a" * 32, "split": "b" * 32, "classes": ["cat", "dog"], "notes": ["made up"], **data}
    selected = dict(zip(HEAD, best, strict=True))
    return {
        "data": made,
        "task": {"kind": "classes", "score": "accuracy"},
        "metrics": {**selected, "seed": seed, "epochs": len(rows), "ending": ending, "seconds": 1.25},
        "hardware": {"processor": "abacus", "cores": 2, "threads": 1, "device": "cpu"},
    }


def trial(kind, seed, settings):
    """What a card says about training."""
    config = TrainConfig(lr=0.01, weight_decay={"first": 5e-4}, stop=Stop.NEVER, epochs=20)
    return Trial(kind, settings, config, seed, preset="paper").to_plain()


def make_job(folder, seeds=3, epochs=20, kind=us.models.GPRGNN, classes=2, **settings):
    """Write seeds of ``epochs`` each (a number, or one for each seed); returns the folder and the histories."""
    lengths = [epochs] * seeds if isinstance(epochs, int) else list(epochs)
    kept = []
    for seed, length in enumerate(lengths):
        torch.manual_seed(seed)
        model = kind(6, classes, **settings)
        with torch.no_grad():
            for parameter in model.propagation.parameters():
                parameter.add_(0.05 * torch.randn(parameter.shape))
        rows = history(length, seed)
        place = Path(folder) / f"seed{seed}"
        save_pretrained(model, place, **facts(rows, seed), trial=trial(kind, seed, settings))
        write_history(place, rows)
        kept.append(rows)
    return Path(folder), kept


def edit(place, change):
    """Change a card on disk, checksum and all."""
    card = read_card(place)
    change(card)
    write_card(place, card)
