"""Attention in bfloat16 on a CPU, beside torch's own in float64."""

from __future__ import annotations

import threading

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from transformers import BertConfig, BertModel, GPT2Config, GPT2Model  # noqa: E402

from trecexam.graders import cpu_attention  # noqa: E402
from trecexam.graders.cpu_attention import NAME, attention, use_cpu_attention  # noqa: E402

# A processor for which torch has no fast products keeps torch's attention.
fast = pytest.mark.skipif(
    torch.backends.cpu.get_cpu_capability() == "DEFAULT", reason="this processor's attention stays as it is"
)


def tensors(*shape: int) -> list[torch.Tensor]:
    made = torch.Generator().manual_seed(1)
    # Heads are views of one product, as in a model.
    return [torch.randn(*shape, generator=made).bfloat16().transpose(1, 2) for _ in range(3)]


@pytest.mark.parametrize("heads", [1, 3], ids=["one mask for all heads", "a mask for each head"])
def test_it_is_the_softmax_of_masked_products(heads: int) -> None:
    query, key, value = tensors(2, 5, 3, 4)
    mask = torch.zeros(2, heads, 5, 5, dtype=torch.bfloat16)
    mask[1, :, :, 3:] = torch.finfo(torch.bfloat16).min
    mask[:, heads - 1, 2, 1] = torch.finfo(torch.bfloat16).min
    made, _ = attention(torch.nn.Module(), query, key, value, mask, scaling=0.3)
    products = 0.3 * query.double() @ key.double().transpose(2, 3) + mask.double()
    expected = (products.softmax(-1) @ value.double()).transpose(1, 2)
    assert made.shape == (2, 5, 3, 4)
    assert torch.allclose(made.double(), expected, atol=0.03)
    # Exactly nothing comes from what is masked.
    other = value.clone()
    other[1, :, 3:] = 100.0
    assert torch.equal(made, attention(torch.nn.Module(), query, key, other, mask, scaling=0.3)[0])


@pytest.mark.parametrize("at_once", [1, 25, 60, 75, 150])
def test_in_whatever_parts_it_is_computed_the_sums_are_the_same(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    query, key, value = tensors(3, 5, 3, 4)
    mask = torch.randn(1, 3, 5, 5, generator=torch.Generator().manual_seed(2)).bfloat16()
    whole, _ = attention(torch.nn.Module(), query, key, value, mask)
    monkeypatch.setattr(cpu_attention, "AT_ONCE", at_once)
    monkeypatch.setattr(cpu_attention, "_local", threading.local())
    with torch.inference_mode():
        attention(torch.nn.Module(), query, key, value, mask)
    assert torch.equal(attention(torch.nn.Module(), query, key, value, mask)[0], whole)


def test_without_a_mask_or_with_fewer_keys_it_is_torchs() -> None:
    query, key, value = tensors(2, 5, 3, 4)
    module = torch.nn.Module()
    module.is_causal = False
    made, _ = attention(module, query, key, value, None)
    expected = torch.nn.functional.scaled_dot_product_attention(query, key, value).transpose(1, 2)
    assert torch.equal(made, expected)
    module.num_key_value_groups = 3
    shared, _ = attention(module, query, key[:, :1], value[:, :1], None)
    assert shared.shape == made.shape


def bert(dtype: torch.dtype) -> BertModel:
    torch.manual_seed(3)
    config = BertConfig(
        vocab_size=50, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=48
    )
    return BertModel(config).eval().to(dtype)


@fast
def test_a_model_in_bfloat16_reads_by_it_and_is_near_float32() -> None:
    tokens = torch.arange(24).reshape(2, 12)
    mask = torch.ones(2, 12, dtype=torch.long)
    mask[0, 7:] = 0
    with torch.inference_mode():
        exact = bert(torch.float32)(tokens, attention_mask=mask).last_hidden_state
        model = bert(torch.bfloat16)
        before = model(tokens, attention_mask=mask).last_hidden_state.float()
        use_cpu_attention(torch.nn.ModuleList([model]))
        made = model(tokens, attention_mask=mask).last_hidden_state.float()
    assert model.config._attn_implementation == NAME
    kept = mask.bool()
    assert (made - exact)[kept].abs().mean() < 1.2 * (before - exact)[kept].abs().mean()


def test_a_model_in_float32_and_a_causal_one_read_as_before() -> None:
    exact = bert(torch.float32)
    use_cpu_attention(exact)
    assert exact.config._attn_implementation == "sdpa"
    torch.manual_seed(3)
    causal = GPT2Model(GPT2Config(vocab_size=50, n_embd=24, n_layer=2, n_head=3)).eval().bfloat16()
    tokens = torch.arange(24).reshape(2, 12)
    mask = torch.ones(2, 12, dtype=torch.long)
    mask[0, 7:] = 0
    with torch.inference_mode():
        before = causal(tokens, attention_mask=mask).last_hidden_state
        use_cpu_attention(causal)
        after = causal(tokens, attention_mask=mask).last_hidden_state
    assert torch.allclose(before[mask.bool()].float(), after[mask.bool()].float(), atol=0.1)
