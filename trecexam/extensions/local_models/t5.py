"""T5's encoder, and its decoder over a tree of answers, from the weights of a transformers model.

The same computation as `T5ForConditionalGeneration.forward` (the tests compare them), laid out for
scoring a few short answers per prompt:

- queries, keys and values are one matrix product, and so are the two halves of the gated unit;
- all answers go through the decoder as one sequence of a dozen nodes, each seeing its own ancestors;
- the decoder's cross-attention never makes keys and values of the prompt. For the few nodes there are,
  (q W_k) h and W_v (p h) cost less than q (W_k h) and p (W_v h), which project every token of the prompt
  in every layer: about a sixth of the encoder's work.

Source of the model: Raffel et al., Exploring the Limits of Transfer Learning with a Unified Text-to-Text
Transformer, JMLR 21(140), 2020, section 2.1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from trecexam.extensions.local_models.choices import ChoiceTree
from trecexam.graders.activations import evenly_parted
from trecexam.graders.packed_linear import Linear, linear

if TYPE_CHECKING:
    from torch import Tensor

#: Classes of transformers whose weights have these names and this meaning.
SUPPORTED = ("T5ForConditionalGeneration", "MT5ForConditionalGeneration")
#: Weights of the last step up to which it is computed in float32: T5's up to XL, not mT5's eightfold words.
MOST_EXACT = 2**26


@dataclass(frozen=True)
class _Attention:
    norm: Tensor
    qkv: Linear
    out: Linear


@dataclass(frozen=True)
class _CrossAttention:
    """`key` and `value` are cut by heads: shape (heads, d_kv, d_model)."""

    norm: Tensor
    query: Linear
    key: Tensor
    value: Tensor
    out: Linear


@dataclass(frozen=True)
class _FeedForward:
    norm: Tensor
    inner: Linear
    out: Linear


class T5Scorer:
    """Scores answers with a T5 model.

    Args:
        model: a transformers model of one of the classes in `SUPPORTED`; its weights are shared where
            they can be and copied where they are put together.
    """

    def __init__(self, model: Any) -> None:
        config = model.config
        self.heads, self.d_kv = config.num_heads, config.d_kv
        self.epsilon = config.layer_norm_epsilon
        self.gated = config.is_gated_act
        self.activation = _activation(config.dense_act_fn)
        self.embedding = model.shared.weight
        # In bfloat16 logits around 20 are an eighth apart: answers would be decided by their order.
        head = model.lm_head.weight
        head = head.float() if head.numel() <= MOST_EXACT else head
        self.head_dtype, self.head = head.dtype, linear(head)
        # Only the first T5 scales; MT5's configuration has no such setting, and says "tied" all the same.
        tied = config.model_type == "t5" and config.tie_word_embeddings
        scaled = getattr(config, "scale_decoder_outputs", tied)
        self.scale = config.d_model**-0.5 if scaled else 1.0
        self.start = config.decoder_start_token_id
        self.bias = model.encoder.block[0].layer[0].SelfAttention.compute_bias
        self.decoder_bias = model.decoder.block[0].layer[0].SelfAttention.compute_bias
        self.encoder_layers = [
            (_attention(block.layer[0]), _feed_forward(block.layer[1])) for block in model.encoder.block
        ]
        self.encoder_norm = model.encoder.final_layer_norm.weight
        self.decoder_layers = [
            (
                _attention(block.layer[0]),
                _cross_attention(block.layer[1], self.heads, self.d_kv),
                _feed_forward(block.layer[2]),
            )
            for block in model.decoder.block
        ]
        self.decoder_norm = model.decoder.final_layer_norm.weight

    def encode(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """The prompts' last hidden states.

        Args:
            tokens: shape (prompts, length).
            mask: True where there is a token; same shape.

        Returns:
            Shape (prompts, length, d_model).
        """
        hidden = functional.embedding(tokens, self.embedding)
        length = tokens.shape[1]
        bias = self.bias(length, length).to(hidden.dtype)
        # Also where nothing is padded: what is computed must not depend on the other prompts.
        bias = bias.masked_fill(~mask[:, None, None, :], torch.finfo(hidden.dtype).min).contiguous()
        for attention, feed_forward in self.encoder_layers:
            hidden = self._self_attention(hidden, attention, bias)
            hidden = self._feed_forward(hidden, feed_forward)
        return self._norm(hidden, self.encoder_norm)

    def log_probabilities(self, hidden: Tensor, mask: Tensor, tree: ChoiceTree, end: int) -> Tensor:
        """log P(answer, end | prompt) of every answer of the tree.

        Args:
            hidden: what `encode` returned, with its `mask`.
            end: the token that ends an answer.

        Returns:
            float32 of shape (prompts, answers).
        """
        prompts = hidden.shape[0]
        device = hidden.device
        nodes = torch.tensor([self.start, *tree.tokens], device=device)
        state = functional.embedding(nodes, self.embedding).expand(prompts, -1, -1)
        bias = self._tree_bias(tree, hidden)
        blocked = ~mask[:, None, :]
        for attention, cross, feed_forward in self.decoder_layers:
            state = self._self_attention(state, attention, bias)
            state = self._cross_attention(state, cross, hidden, blocked)
            state = self._feed_forward(state, feed_forward)
        state = self._norm(state, self.decoder_norm) * self.scale
        logits = self.head(state.to(self.head_dtype)).float()
        total = torch.logsumexp(logits, dim=-1)
        scores = []
        for path, leaf in zip(tree.paths, tree.leaves, strict=True):
            steps = torch.tensor([(node + 1, token) for node, token in (*path, (leaf, end))], device=device)
            scores.append((logits[:, steps[:, 0], steps[:, 1]] - total[:, steps[:, 0]]).sum(dim=1))
        return torch.stack(scores, dim=1)

    @torch.inference_mode()
    def difference(self, model: Any, end: int) -> float:
        """The difference in nats from the model's own forward pass on one short answer.

        Versions of transformers have differed in what a configuration means; a wrong guess here would give
        grades that look like any others.
        """
        device = self.embedding.device
        tokens = torch.arange(3, 11, device=device)[None] % self.embedding.shape[0]
        mask = torch.ones_like(tokens, dtype=torch.bool)

        def theirs(*output: int) -> Tensor:
            decoder_tokens = torch.tensor([[self.start, *output]], device=device)
            logits = model(
                input_ids=tokens, attention_mask=mask.long(), decoder_input_ids=decoder_tokens
            ).logits
            next_token: Tensor = logits[0, -1].float().log_softmax(dim=-1)
            return next_token

        first = theirs()
        answer = int(first.argmax())
        expected = first[answer] + theirs(answer)[end]
        ours = self.log_probabilities(self.encode(tokens, mask), mask, ChoiceTree.of([[answer]]), end)
        return float((ours[0, 0] - expected).abs())

    def _tree_bias(self, tree: ChoiceTree, like: Tensor) -> Tensor:
        longest = max(tree.depths) + 1
        # The last row of an ordinary decoder's bias has it for each distance, the longest first.
        by_distance = self.decoder_bias(longest, longest)[0, :, -1, :].flip(-1)
        distances = torch.tensor(tree.distances(), device=like.device)
        sees = torch.zeros_like(distances, dtype=torch.bool)
        sees[:, 0] = True
        sees[1:, 1:] = torch.tensor(tree.sees(), device=like.device)
        bias: Tensor = by_distance[:, distances.clamp(min=0)].to(like.dtype)
        return bias.masked_fill(~sees, torch.finfo(like.dtype).min)[None].contiguous()

    def _norm(self, hidden: Tensor, weight: Tensor) -> Tensor:
        normed: Tensor = torch.rms_norm(hidden, list(weight.shape), weight, self.epsilon)
        return normed

    def _self_attention(self, hidden: Tensor, layer: _Attention, bias: Tensor) -> Tensor:
        prompts, length, _ = hidden.shape
        qkv = layer.qkv(self._norm(hidden, layer.norm))
        query, key, value = qkv.view(prompts, length, 3, self.heads, self.d_kv).permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(query, key, value, attn_mask=bias, scale=1.0)
        return hidden + layer.out(attended.transpose(1, 2).reshape(prompts, length, -1))

    def _cross_attention(
        self, state: Tensor, layer: _CrossAttention, hidden: Tensor, blocked: Tensor
    ) -> Tensor:
        prompts, nodes, width = state.shape
        query = layer.query(self._norm(state, layer.norm))
        query = query.view(prompts, nodes, self.heads, self.d_kv)
        projected_query = torch.einsum("bnhk,hkd->bhnd", query, layer.key).reshape(prompts, -1, width)
        scores = torch.bmm(projected_query, hidden.transpose(1, 2)).float()
        scores = scores.masked_fill(blocked, torch.finfo(scores.dtype).min)
        weights = functional.softmax(scores, dim=-1).to(hidden.dtype)
        attended = torch.bmm(weights, hidden).view(prompts, self.heads, nodes, width)
        value = torch.einsum("bhnd,hkd->bnhk", attended, layer.value).reshape(prompts, nodes, -1)
        return state + layer.out(value)

    def _feed_forward(self, hidden: Tensor, layer: _FeedForward) -> Tensor:
        inner = layer.inner(self._norm(hidden, layer.norm))
        if self.gated:
            gate, value = inner.chunk(2, dim=-1)
            inner = self.activation(gate) * value
        else:
            inner = self.activation(inner)
        return hidden + layer.out(inner)


def _attention(layer: Any) -> _Attention:
    attention = layer.SelfAttention
    qkv = torch.cat([attention.q.weight, attention.k.weight, attention.v.weight])
    return _Attention(layer.layer_norm.weight, linear(qkv), linear(attention.o.weight))


def _cross_attention(layer: Any, heads: int, d_kv: int) -> _CrossAttention:
    attention = layer.EncDecAttention
    return _CrossAttention(
        layer.layer_norm.weight,
        linear(attention.q.weight),
        attention.k.weight.view(heads, d_kv, -1),
        attention.v.weight.view(heads, d_kv, -1),
        linear(attention.o.weight),
    )


def _feed_forward(layer: Any) -> _FeedForward:
    dense = layer.DenseReluDense
    inner = torch.cat([dense.wi_0.weight, dense.wi_1.weight]) if hasattr(dense, "wi_0") else dense.wi.weight
    return _FeedForward(layer.layer_norm.weight, linear(inner), linear(dense.wo.weight))


def _activation(name: str) -> Callable[[Tensor], Tensor]:
    if name == "gelu_new":
        return evenly_parted(lambda x: functional.gelu(x, approximate="tanh"))
    from transformers.activations import ACT2FN

    return evenly_parted(ACT2FN[name])
