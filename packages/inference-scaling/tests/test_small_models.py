"""The small language models: counts, text, learning, checkpoints."""

import numpy as np
import pytest

from paperworks.inference_scaling import small_models
from paperworks.inference_scaling.small_models import ModelRun
from paperworks.shared.files import Checkpoints

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def text():
    whole = small_models.standard_library_text()
    return small_models.Text(whole.train, whole.validation[:20_000], whole.digest)


def test_parameter_count_is_what_is_trained():
    for run in (ModelRun(16, 2, 1), ModelRun(96, 3, 1)):
        tensors = small_models._initial(torch, run, 0, "cpu").values()
        assert sum(tensor.numel() for tensor in tensors) == run.params


def test_text_is_split_by_file(text):
    assert text.train.max() < small_models.VOCABULARY
    assert len(text.train) > 5_000_000
    assert text.validation[:2000].tobytes() not in text.train.tobytes()
    assert small_models.standard_library_text().digest == text.digest


def test_text_does_not_repeat_before_it_ran_out(text):
    windows = (len(text.train) - 1) // small_models.CONTEXT
    train = np.arange(windows * small_models.CONTEXT + 1)
    random = np.random.default_rng(0)
    taken = [
        batch[:, 0]
        for batch, _ in zip(
            small_models.batches(train, 64, random), range(windows // 64), strict=False
        )
    ]
    starts = np.concatenate(taken)
    assert len(np.unique(starts)) == len(starts)


def test_future_characters_are_not_seen(text):
    run = ModelRun(16, 2, 1)
    parameters = small_models._initial(torch, run, 0, "cpu")
    bias = small_models._alibi(torch, run.width, "cpu")
    batch = torch.from_numpy(next(small_models.batches(text.train, 4, np.random.default_rng(0))))
    loss = small_models._loss(torch, parameters, run, bias, batch)
    # Untrained models know nothing: the loss is about that of a uniform guess.
    assert abs(float(loss.detach()) - np.log(small_models.VOCABULARY)) < 0.3
    # What is attended to has a finite bias: the past, and nothing after it.
    assert torch.equal(torch.isfinite(bias[0, 0]), torch.ones_like(bias[0, 0]).tril().bool())


def test_training_learns_and_is_repeatable(text):
    run = ModelRun(16, 2, 30_000)
    first, second = (small_models.train(run, text, seed=3) for _ in range(2))
    assert first == second
    assert first < 0.85 * np.log(small_models.VOCABULARY)


def test_finished_models_are_not_trained_again(text, tmp_path, monkeypatch):
    runs = [ModelRun(16, 2, 4_000), ModelRun(16, 2, 8_000)]
    checkpoints = Checkpoints(tmp_path, {"text": text.digest})
    first = small_models.train_all(runs[:1], text, checkpoints)
    trained = []
    train = small_models.train
    monkeypatch.setattr(
        small_models, "train", lambda run, *a, **k: trained.append(run) or train(run, *a, **k)
    )
    both = small_models.train_all(runs, text, checkpoints)
    assert trained == runs[1:]
    assert both[0] == first[0]


def test_design():
    runs = small_models.design([(16, 2), (160, 3)], [1_000_000, 1_000_000])
    assert [run.ratio for run in runs] == [10, 30, 100, 1]
    assert min(run.tokens for run in runs) >= small_models.MIN_TOKENS


def test_too_little_text(tmp_path):
    (tmp_path / "one.py").write_text("x = 1\n")
    with pytest.raises(ValueError, match="expected at least 20 Python files, found 1"):
        small_models.standard_library_text(folder=tmp_path)
