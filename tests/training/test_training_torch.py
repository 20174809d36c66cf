"""Drawing samples and learning from preferences, with a random model of two layers.

PyTorch is not among the project's dependencies: where it is missing these tests are skipped.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
gguf = pytest.importorskip("gguf")
pytest.importorskip("tokenizers")

sys.path.insert(0, str(Path(__file__).parents[2] / "training" / "delta"))

import numpy as np  # noqa: E402
import preferences  # noqa: E402
import samples as drawing  # noqa: E402
from qwen import Qwen, adapter_size  # noqa: E402
from train import write_adapter  # noqa: E402

WIDTH, HEADS, KV_HEADS, LAYERS, INNER = 32, 4, 2, 2, 48


def _byte_tokens() -> list[str]:
    """The characters that stand for bytes in a byte-level vocabulary."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    return [chr(byte) for byte in plain] + [chr(256 + number) for number, _ in enumerate(others)]


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("weights") / "tiny.gguf"
    writer = gguf.GGUFWriter(path, "qwen2")
    writer.add_block_count(LAYERS)
    writer.add_embedding_length(WIDTH)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-6)
    tokens = [*_byte_tokens(), "<|endoftext|>", "<|im_start|>", "<|im_end|>", "``", "```"]
    writer.add_token_list(tokens)
    writer.add_token_merges(["` `", "`` `"])
    random = np.random.default_rng(3)

    def add(name: str, *shape: int) -> None:
        values = random.normal(0, 0.3, shape) if len(shape) > 1 or "bias" in name else 1 + random.normal(0, 0.1, shape)
        writer.add_tensor(name, values.astype(np.float32))

    add("token_embd.weight", len(tokens), WIDTH)
    add("output_norm.weight", WIDTH)
    narrow = WIDTH // HEADS * KV_HEADS
    for number in range(LAYERS):
        at = f"blk.{number}"
        add(f"{at}.attn_norm.weight", WIDTH)
        add(f"{at}.ffn_norm.weight", WIDTH)
        for name, rows in (("attn_q", WIDTH), ("attn_k", narrow), ("attn_v", narrow)):
            add(f"{at}.{name}.weight", rows, WIDTH)
            add(f"{at}.{name}.bias", rows)
        add(f"{at}.attn_output.weight", WIDTH, WIDTH)
        add(f"{at}.ffn_gate.weight", INNER, WIDTH)
        add(f"{at}.ffn_up.weight", INNER, WIDTH)
        add(f"{at}.ffn_down.weight", WIDTH, INNER)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _model(weights: Path, rank: int = 3, alpha: float = 6.0) -> Qwen:
    torch.manual_seed(1)
    return Qwen(weights, rank=rank, alpha=alpha, dropout=0.0, device="cpu")


@pytest.fixture(scope="module")
def adapter(weights: Path) -> Path:
    model = _model(weights)
    with torch.no_grad():
        for learned in model.adapters().values():
            learned.normal_(0, 0.2)
    path = weights.with_name("adapter.gguf")
    write_adapter(model, path, 6.0)
    return path


def _plain_logits(model: Qwen, tokens: list[int]) -> torch.Tensor:
    """The logits after the last token, without any cache."""
    row = torch.tensor([tokens])
    causal = torch.ones(len(tokens), len(tokens)).bool().tril()
    wanted = torch.zeros_like(row).bool()
    wanted[0, -1] = True
    with torch.no_grad():
        return model(row, torch.arange(len(tokens))[None], torch.where(causal, 0.0, -1e4)[None, None], wanted)[0]


def test_an_adapter_file_is_read_back_as_it_was_written(weights: Path, adapter: Path) -> None:
    assert adapter_size(adapter) == (3, 6.0)
    model = _model(weights)
    model.load_adapter(adapter)
    again = adapter.with_name("again.gguf")
    write_adapter(model, again, 6.0)
    first, second = (gguf.GGUFReader(path).tensors for path in (adapter, again))
    assert all((one.data == two.data).all() for one, two in zip(first, second, strict=True))


def test_greedy_samples_with_shared_caches_are_those_without_any(weights: Path, adapter: Path) -> None:
    model = _model(weights)
    model.load_adapter(adapter)
    chat = drawing.Chat(weights)
    how = drawing.Drawing(samples=3, max_tokens=12)
    sampler = drawing.Sampler(model, chat, how, "cpu")
    # Nothing ends, so that every row goes to the limit.
    sampler._ends[:] = False
    sampler._end_tokens = frozenset(range(1000))
    told = ["Hi", "A much longer request, with more words in it"]
    found = sampler.draw(sampler.read_system("You plan."), told)
    for request, samples in zip(told, found, strict=True):
        tokens = [*chat.system("You plan."), *chat.asked(request)]
        expected = list[int]()
        for _ in range(12):
            expected.append(int(_plain_logits(model, tokens + expected).argmax()))
        assert samples[0] == expected
        assert len(samples) == 3


def test_rows_that_end_leave_the_others_as_they_are(weights: Path) -> None:
    model, chat = _model(weights), drawing.Chat(weights)
    told = [f"request {number}" * (number + 1) for number in range(5)]

    def draw(ends: range) -> list[list[int] | None]:
        sampler = drawing.Sampler(model, chat, drawing.Drawing(samples=1, max_tokens=40), "cpu")
        sampler._ends[:] = False
        sampler._ends[list(ends)] = True
        sampler._end_tokens = frozenset(ends)
        return [samples[0] for samples in sampler.draw(sampler.read_system("You plan."), told)]

    endless = drawing.Sampler(model, chat, drawing.Drawing(samples=1, max_tokens=40), "cpu")
    endless._ends[:] = False
    endless._end_tokens = frozenset(range(1000))
    whole = [samples[0] or [] for samples in endless.draw(endless.read_system("You plan."), told)]
    ends = range(40, 55)
    for tokens, all_tokens in zip(draw(ends), whole, strict=True):
        stop = next((number for number, token in enumerate(all_tokens) if token in ends), None)
        assert tokens == (None if stop is None else all_tokens[: stop + 1])


def test_a_run_that_was_cut_off_goes_on(
    weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    requests = [{"id": f"r{number}", "system": f"S{number % 2}", "told": "do it " * number} for number in range(6)]
    asked, out = tmp_path / "requests.jsonl", tmp_path / "samples.jsonl"
    asked.write_text("".join(json.dumps(each) + "\n" for each in requests))
    out.write_text('{"id": "r0", "plans": []}\n{"id": "r1", "pl')
    arguments = ["samples.py", str(weights), str(asked), str(out), "--samples", "2", "--max-tokens", "5"]
    monkeypatch.setattr(sys, "argv", arguments)
    drawing.main()
    assert sorted(json.loads(line)["id"] for line in out.read_text().splitlines()) == [f"r{n}" for n in range(6)]
    assert "5 requests" in capsys.readouterr().out


def test_a_plan_is_the_text_before_the_closing_fence(weights: Path) -> None:
    chat = drawing.Chat(weights)
    tokens = chat._ids('x = read_text("a.txt")\nanswer(x)\n```')
    assert tokens[-1] in chat.ends
    assert chat.plan(tokens) == 'x = read_text("a.txt")\nanswer(x)\n'


PAIRS = [
    {
        "system": "You plan.",
        "told": f"request {number}",
        "chosen": f"```python\nanswer({number})\n```",
        "rejected": f"```python\nanswer(len(x{number}))\n```",
    }
    for number in range(5)
]


def test_packed_pairs_have_the_probabilities_of_single_ones(weights: Path, adapter: Path) -> None:
    model = _model(weights)
    model.load_adapter(adapter)
    data = preferences.Preferences(PAIRS, weights, "cpu", longest=400)
    assert sum(item.count for item in data.items) == len(PAIRS)
    assert len(data.items) < len(PAIRS)
    packed = torch.cat([preferences.plan_log_probabilities(model, data, item)[0] for item in data.items])
    chat = drawing.Chat(weights)
    for number, pair in enumerate(PAIRS):
        for branch, key in enumerate(("chosen", "rejected")):
            tokens = [*chat.system(pair["system"]), *chat.asked(pair["told"])]
            total = 0.0
            for token in [*chat._ids(pair[key].removeprefix("```python\n")), chat._end]:
                total += float(_plain_logits(model, tokens).log_softmax(-1)[token])
                tokens.append(token)
            assert packed[number, branch].item() == pytest.approx(total, abs=1e-3)


def test_learning_prefers_the_chosen_plans(
    weights: Path, adapter: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs, out = tmp_path / "pairs.jsonl", tmp_path / "preferred.gguf"
    pairs.write_text("".join(json.dumps(pair) + "\n" for pair in PAIRS))
    options = ["--start", str(adapter), "--rate", "1e-2", "--steps", "8", "--held", "0", "--longest", "300"]
    monkeypatch.setattr(sys, "argv", ["preferences.py", str(weights), str(pairs), str(out), *options])
    preferences.main()
    data = preferences.Preferences(PAIRS, weights, "cpu", longest=10_000)

    def margin(path: Path) -> float:
        model = _model(weights)
        model.load_adapter(path)
        with torch.no_grad():
            found, _ = preferences.plan_log_probabilities(model, data, data.items[0])
        return float((found[:, 0] - found[:, 1]).mean())

    assert adapter_size(out) == (3, 6.0)
    assert margin(out) > margin(adapter) + 1


def test_a_pair_that_nothing_was_learned_of_costs_the_logarithm_of_two() -> None:
    same = torch.tensor([[-3.0, -5.0]])
    loss = preferences.preference_loss(same, same, torch.tensor([[2, 4]]), beta=0.1, kept=0.0)
    assert float(loss) == pytest.approx(0.6931, abs=1e-4)
