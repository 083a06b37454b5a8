"""T5's encoder, and its decoder over a tree of answers, from the weights of a transformers model.

The same computation as `T5ForConditionalGeneration.forward` (the tests compare them), laid out for
scoring a few short answers per prompt:

- all answers go through the decoder as one sequence of a dozen nodes, each seeing its own ancestors;
- the decoder's cross-attention never makes keys and values of the prompt. For the few nodes there are,
  (q W_k) h and W_v (p h) cost less than q (W_k h) and p (W_v h), which project every token of the prompt
  in every layer: about a sixth of the encoder's work.

Source of the model: Raffel et al., Exploring the Limits of Transfer Learning with a Unified Text-to-Text
Transformer, JMLR 21(140), 2020, section 2.1.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from transformers.activations import ACT2FN

from trecexam.extensions.local_models.choices import ChoiceTree

#: Classes of transformers whose weights have these names and this meaning.
SUPPORTED = ("T5ForConditionalGeneration", "MT5ForConditionalGeneration")
#: Maximum weights of the output layer for float32: T5 up to XL, but not mT5 with its large vocabulary.
MOST_EXACT = 2**26
#: Sizes of the small model for the comparison with transformers, and tokens of its longer prompt.
SMALL = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_heads": 4, "vocab_size": 512}
SMALL |= {"num_layers": 2, "num_decoder_layers": 2}
CHECKED_LENGTH = 144


class T5Scorer:
    """Scorer of answers with a T5 model.

    Args:
        model: a transformers model of one of the classes in `SUPPORTED`; its weights are shared.
    """

    def __init__(self, model: Any) -> None:
        config = model.config
        self.heads, self.d_kv = config.num_heads, config.d_kv
        self.epsilon = config.layer_norm_epsilon
        # The same function in one pass; transformers computes "gelu_new" in eight.
        fast = {"gelu_new": "gelu_pytorch_tanh"}
        self.activation = ACT2FN[fast.get(config.dense_act_fn, config.dense_act_fn)]
        self.embedding = model.shared.weight
        # In bfloat16, logits around 20 have steps of 1/8, which would cause ties.
        head = model.lm_head.weight.detach()
        self.head = head.float() if head.numel() <= MOST_EXACT else head
        # Only the first T5 scales; MT5's configuration has no such setting, and says "tied" all the same.
        tied = config.model_type == "t5" and config.tie_word_embeddings
        scaled = getattr(config, "scale_decoder_outputs", tied)
        self.scale = config.d_model**-0.5 if scaled else 1.0
        self.start = config.decoder_start_token_id
        self.encoder, self.decoder = model.encoder, model.decoder
        self.bias = model.encoder.block[0].layer[0].SelfAttention.compute_bias
        self.decoder_bias = model.decoder.block[0].layer[0].SelfAttention.compute_bias

    def encode(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Return the prompts' last hidden states, shape (prompts, length, d_model).

        Args:
            tokens: shape (prompts, length).
            mask: True where there is a token; same shape.
        """
        hidden = functional.embedding(tokens, self.embedding)
        length = tokens.shape[1]
        bias = self.bias(length, length).to(hidden.dtype)
        bias = bias.masked_fill(~mask[:, None, None, :], torch.finfo(hidden.dtype).min).contiguous()
        for block in self.encoder.block:
            hidden = self._self_attention(hidden, block.layer[0], bias)
            hidden = self._feed_forward(hidden, block.layer[1])
        return self._norm(hidden, self.encoder.final_layer_norm)

    def log_probabilities(self, tokens: Tensor, mask: Tensor, tree: ChoiceTree) -> Tensor:
        """Return log P(answer, end | prompt), float32 of shape (prompts, answers).

        Args:
            tokens: as for `encode`.
            mask: as for `encode`.
        """
        hidden = self.encode(tokens, mask)
        nodes = functional.pad(tree.tokens, (1, 0), value=self.start)
        state = functional.embedding(nodes, self.embedding).expand(len(hidden), -1, -1)
        bias = self._tree_bias(tree, hidden)
        blocked = ~mask[:, None, :]
        for block in self.decoder.block:
            state = self._self_attention(state, block.layer[0], bias)
            state = self._cross_attention(state, block.layer[1], hidden, blocked)
            state = self._feed_forward(state, block.layer[2])
        state = self._norm(state, self.decoder.final_layer_norm) * self.scale
        return tree.scores(functional.linear(state.to(self.head.dtype), self.head))

    def _tree_bias(self, tree: ChoiceTree, like: Tensor) -> Tensor:
        """Return the decoder's bias, shape (1, heads, nodes, nodes)."""
        # The last row of an ordinary decoder's bias has it for each distance, the longest first.
        longest = tree.longest + 1
        by_distance = self.decoder_bias(longest, longest)[0, :, -1, :].flip(-1)
        apart = tree.depths[:, None] - tree.depths
        bias: Tensor = by_distance[:, apart.clamp(min=0)].to(like.dtype)
        return bias.masked_fill(~tree.sees, torch.finfo(like.dtype).min)[None].contiguous()

    def _norm(self, hidden: Tensor, layer: Any) -> Tensor:
        normed: Tensor = torch.rms_norm(hidden, hidden.shape[-1:], layer.weight, self.epsilon)
        return normed

    def _self_attention(self, hidden: Tensor, layer: Any, bias: Tensor) -> Tensor:
        prompts, length, _ = hidden.shape
        normed, attention = self._norm(hidden, layer.layer_norm), layer.SelfAttention
        query, key, value = (
            project(normed).view(prompts, length, self.heads, self.d_kv).transpose(1, 2)
            for project in (attention.q, attention.k, attention.v)
        )
        attended = functional.scaled_dot_product_attention(query, key, value, attn_mask=bias, scale=1.0)
        output: Tensor = attention.o(attended.transpose(1, 2).reshape(prompts, length, -1))
        return hidden + output

    def _cross_attention(self, state: Tensor, layer: Any, hidden: Tensor, blocked: Tensor) -> Tensor:
        prompts, nodes, width = state.shape
        attention = layer.EncDecAttention
        key, value = (each.weight.view(self.heads, self.d_kv, -1) for each in (attention.k, attention.v))
        query = attention.q(self._norm(state, layer.layer_norm)).view(prompts, nodes, self.heads, self.d_kv)
        projected_query = torch.einsum("bnhk,hkd->bhnd", query, key).reshape(prompts, -1, width)
        scores = torch.bmm(projected_query, hidden.transpose(1, 2)).float()
        scores = scores.masked_fill(blocked, torch.finfo(scores.dtype).min)
        weights = functional.softmax(scores, dim=-1).to(hidden.dtype)
        attended = torch.bmm(weights, hidden).view(prompts, self.heads, nodes, width)
        mixed = torch.einsum("bhnd,hkd->bnhk", attended, value).reshape(prompts, nodes, -1)
        output: Tensor = attention.o(mixed)
        return state + output

    def _feed_forward(self, hidden: Tensor, layer: Any) -> Tensor:
        normed, dense = self._norm(hidden, layer.layer_norm), layer.DenseReluDense
        if hasattr(dense, "wi_0"):
            inner = self.activation(dense.wi_0(normed)) * dense.wi_1(normed)
        else:
            inner = self.activation(dense.wi(normed))
        output: Tensor = dense.wo(inner)
        return hidden + output


@torch.inference_mode()
def difference(model: Any) -> float:
    """Return the largest difference in nats from transformers' forward passes of a small model.

    Versions of transformers have differed in what a configuration means; a wrong guess here would give
    grades that look like any others. The small model has the configuration of `model` but for its sizes,
    random weights, and float32, in which no rounding hides an error.
    """
    config = type(model.config).from_dict({**model.config.to_dict(), **SMALL})
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        small = type(model)(config).float().eval()
    prompt = torch.arange(CHECKED_LENGTH)[None] * 7 % config.vocab_size
    mask = torch.ones(2, CHECKED_LENGTH, dtype=torch.bool)
    mask[1, CHECKED_LENGTH // 3 :] = False
    answers, end = [[5], [5, 6]], 1
    scores = T5Scorer(small).log_probabilities(prompt.expand(2, -1), mask, ChoiceTree(answers, [end], "cpu"))
    expected = torch.empty_like(scores)
    for row, column in ((0, 0), (0, 1), (1, 0), (1, 1)):
        output = torch.tensor([[config.decoder_start_token_id, *answers[column], end]])
        logits = small(input_ids=prompt[:, mask[row]], decoder_input_ids=output[:, :-1]).logits
        expected[row, column] = logits.log_softmax(-1).gather(2, output[:, 1:, None]).sum()
    return float((scores - expected).abs().max())
