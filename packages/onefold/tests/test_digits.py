"""The example that is the main job: it learns, and its bits survive a bad network and kills."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import onefold
from onefold.aggregate import Aggregate
from onefold.faults import Faults
from onefold.launch import Job, Report, run_job
from onefold.launch.report import Progress
from onefold.ledger import Joined
from onefold.update import Tensor

SCRIPT = Path(__file__).parents[3] / "examples" / "digits.py"
WORKERS = 2
STEPS = 16


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("digits", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["digits"] = module
    spec.loader.exec_module(module)
    return module


digits = load()


class InProcess:
    """A client of an aggregator in this process."""

    def __init__(self, aggregator: onefold.Aggregator, worker: str) -> None:
        self.aggregator = aggregator
        self.joined: Joined = aggregator.join(worker, f"life of {worker} {id(self)}")

    def pull(self, step: int) -> Aggregate:
        return self.aggregator.pull(step, timeout_seconds=60)

    def reduce(self, step: int, update: Mapping[str, Tensor], weight: int = 1) -> Aggregate:
        joined = self.joined
        self.aggregator.push(
            step,
            joined.worker,
            update,
            weight=weight,
            attempt=0,
            incarnation=joined.incarnation,
        )
        return self.pull(step)


def train(aggregator: onefold.Aggregator, steps: int, workers: int = WORKERS) -> set[str]:
    """Train with one thread for each worker; the digests that they end with."""
    models: dict[str, object] = {}
    training, _ = digits.Digits.load()

    def work(name: str) -> None:
        client = InProcess(aggregator, name)
        models[name] = digits.train(client, training, seed=0, steps=steps)

    threads = [threading.Thread(target=work, args=(str(index),)) for index in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return {model.digest() for model in models.values()}  # type: ignore[attr-defined]


class TestModel:
    def test_shares_are_the_batch_each_example_once(self) -> None:
        shares = [digits.share(1, 5, index, 3, 1437) for index in range(3)]
        assert sorted(np.concatenate(shares)) == sorted(digits.share(1, 5, 0, 1, 1437))
        assert len(set(np.concatenate(shares))) == digits.BATCH

    def test_batches_differ_by_step_and_seed(self) -> None:
        batches = {
            tuple(digits.share(seed, step, 0, 1, 1437)) for seed in range(3) for step in range(3)
        }
        assert len(batches) == 9

    def test_the_gradient_is_that_of_the_loss(self) -> None:
        training, _ = digits.Digits.load()
        some = training.take(np.arange(50))
        weights = {name: w.astype(np.float64) for name, w in digits.initial_weights(0).items()}

        def loss() -> float:
            _, logits = digits.forward(weights, some.images)
            log_sums = np.log(np.exp(logits).sum(axis=1))
            return float((log_sums - logits[np.arange(50), some.labels]).sum())

        gradient = digits.gradient_sum(weights, some)
        for name, weight in weights.items():
            index = np.unravel_index(np.abs(gradient[name]).argmax(), weight.shape)
            before = weight[index]
            weight[index] = before + 1e-5
            above = loss()
            weight[index] = before - 1e-5
            slope = (above - loss()) / 2e-5
            weight[index] = before
            assert gradient[name][index] == pytest.approx(slope, rel=1e-4)

    def test_a_skipped_step_changes_nothing(self) -> None:
        model = digits.Model(0)
        before = model.digest()
        model.apply(Aggregate(0, "skipped", {}, (), (), ""))
        assert model.digest() == before

    @pytest.mark.parametrize("seed", range(3))
    def test_it_learns(self, seed: int) -> None:
        training, test = digits.Digits.load()
        with onefold.Aggregator(policy=onefold.Policy(roster=1)) as aggregator:
            client = InProcess(aggregator, "0")
            model = digits.train(client, training, seed=seed, steps=160)
        assert model.accuracy(test) > 0.95


class TestRecovery:
    def test_a_restarted_worker_has_the_weights_again(self) -> None:
        """It keeps no state: the aggregates of the steps that are over give the same bits."""
        policy = onefold.Policy(roster=["0", "1"])
        with onefold.Aggregator(policy=policy) as aggregator:
            undisturbed = train(aggregator, 8)
        with onefold.Aggregator(policy=policy) as aggregator:
            train(aggregator, 3)
            assert train(aggregator, 8) == undisturbed
            # Nothing is left to do for one that comes back after the end.
            assert train(aggregator, 8) == undisturbed
        assert len(undisturbed) == 1


class Nobody:
    def progress(self, progress: Progress) -> None: ...
    def line(self, name: str, text: str, stream: str) -> None: ...
    def event(self, text: str) -> None: ...


def run_digits(**options: object) -> Report:
    command = (sys.executable, str(SCRIPT), "--steps", str(STEPS))
    job = Job(command=command, workers=WORKERS, steps=STEPS, **options)  # type: ignore[arg-type]
    return run_job(job, Nobody())


def outcomes(report: Report) -> set[tuple[object, object]]:
    assert report.errors == ()
    found = set()
    for worker in report.workers.values():
        assert isinstance(worker.result, dict)
        found.add((worker.result["accuracy"], worker.result["digest"]))
    return found


class TestEndToEnd:
    def test_five_bad_networks_change_no_bit(self) -> None:
        undisturbed = outcomes(run_digits())
        assert len(undisturbed) == 1
        for seed in range(5):
            report = run_digits(
                faults=Faults(0.2, 0.1, 0.1, 0.2, 0.1, delay_seconds_max=0.1, seed=seed),
                worker_kills=seed % 2,
                server_kills=(seed + 1) % 2,
                seed=seed,
            )
            assert outcomes(report) == undisturbed, f"seed {seed}"
            assert report.traffic is not None
            assert min(report.traffic.lost, report.traffic.repeated) > 0


class TestCommandLine:
    def test_without_a_server_it_says_what_to_do(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("ONEFOLD_ADDRESS", raising=False)
        result = subprocess.run(
            [sys.executable, str(SCRIPT)], check=False, capture_output=True, text=True
        )
        assert result.returncode == 2
        assert "onefold run --workers 4 -- python examples/digits.py" in result.stderr

    def test_help_teaches(self) -> None:
        result = subprocess.run(
            [sys.executable, str(SCRIPT), "--help"], check=True, capture_output=True, text=True
        )
        assert "onefold serve DIRECTORY --workers 2" in result.stdout
        assert "--steps" in result.stdout
