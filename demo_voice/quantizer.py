"""The residual quantizer, fitted in closed form: principal components and k-means, no gradients.

End-to-end training of a codec's encoder and quantizer takes GPU-days. Here the codec's latent
space *is* the space of ``features``, and each stage of DAC's own quantizer class is filled with
the best 256 points of what the stages before it have left over.
"""

from __future__ import annotations

import torch
from torch import Tensor
from tqdm import tqdm
from transformers import DacConfig
from transformers.models.dac.modeling_dac import DacResidualVectorQuantizer

from demo_voice.features import FEATURES
from demo_voice.recipe import SAMPLE_RATE, CodecRecipe

_ROUNDS = 15  # of k-means


def dac_config(recipe: CodecRecipe) -> DacConfig:
    """The codec's configuration; the latent space is padded to its power of two."""
    strides = len(recipe.ratios)
    width = -(-FEATURES // 2**strides)  # of the encoder, which decides the latent width
    return DacConfig(
        encoder_hidden_size=width,
        downsampling_ratios=list(recipe.ratios),
        decoder_hidden_size=recipe.width,
        n_codebooks=recipe.codebooks,
        codebook_size=recipe.codebook_size,
        codebook_dim=recipe.code_dim,
        sampling_rate=SAMPLE_RATE,
    )


def fit(features: Tensor, recipe: CodecRecipe, seed: int) -> DacResidualVectorQuantizer:
    """A quantizer for float32 ``[frames, FEATURES]``."""
    config = dac_config(recipe)
    quantizer = DacResidualVectorQuantizer(config).eval().requires_grad_(False)
    generator = torch.Generator().manual_seed(seed)
    residual = _padded(features, config.hidden_size)
    for stage in tqdm(quantizer.quantizers, desc="quantizer", unit="codebook"):
        mean = residual.mean(0)
        centred = residual - mean
        # The eigenvectors of the largest eigenvalues, which eigh puts last.
        axes = torch.linalg.eigh(centred.T @ centred).eigenvectors[:, 1 - recipe.code_dim :]
        points = centred @ axes
        centroids = _k_means(points, recipe.codebook_size, generator)
        # DAC looks codes up by their angle. With a constant that dwarfs every other coordinate,
        # the nearest angle is the nearest point.
        constant = 4 * float(points.norm(dim=1).max())
        stage.in_proj.weight[:-1, :, 0] = axes.T
        stage.in_proj.bias[:-1] = -(axes.T @ mean)
        stage.in_proj.weight[-1] = 0
        stage.in_proj.bias[-1] = constant
        stage.codebook.weight[:, :-1] = centroids
        stage.codebook.weight[:, -1] = constant
        stage.out_proj.weight[:, :-1, 0] = axes
        stage.out_proj.weight[:, -1] = 0
        stage.out_proj.bias[:] = mean
        residual = residual - stage(residual.T[None])[0][0].T
    return quantizer


def encode(quantizer: DacResidualVectorQuantizer, features: Tensor) -> Tensor:
    """Codes int64 ``[frames, codebooks]`` of float32 ``[frames, FEATURES]``."""
    width = quantizer.quantizers[0].in_proj.in_channels
    with torch.inference_mode():
        codes: Tensor = quantizer(_padded(features, width).T[None])[1]
    return codes[0].T.clone()


def _padded(features: Tensor, width: int) -> Tensor:
    return torch.nn.functional.pad(features, (0, width - features.shape[1]))


def _k_means(points: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """Centroids float32 ``[count, dim]`` of float32 ``[n, dim]``, by Lloyd's algorithm."""
    centroids = points[torch.randperm(len(points), generator=generator)[:count]].clone()
    for _ in range(_ROUNDS):
        # Squared distances less the points' own squares, which do not change which is nearest.
        squares = centroids.square().sum(1)
        nearest = torch.cat(
            [(squares - 2 * part @ centroids.T).argmin(1) for part in points.split(8192)]
        )
        sums = torch.zeros_like(centroids).index_add_(0, nearest, points)
        sizes = torch.bincount(nearest, minlength=count)
        used = sizes > 0
        centroids[used] = sums[used] / sizes[used, None]
        # A centroid that nothing is near to starts again at a point of the largest cluster.
        lost = (~used).nonzero().flatten()
        if len(lost):
            crowd = (nearest == sizes.argmax()).nonzero().flatten()
            pick = torch.randint(len(crowd), (len(lost),), generator=generator)
            centroids[lost] = points[crowd[pick]]
    return centroids
