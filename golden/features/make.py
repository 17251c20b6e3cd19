"""Scattering coefficients as kymatio computes them, histograms of oriented gradients as scikit-image does, group normalisation as a formula, and
principal components as NumPy's eigenvectors of the covariance.

    pip install kymatio==0.3.0 scikit-image==0.26.0 scipy==1.14.1 && python golden/features/make.py

Writes features.json beside this file, one case on a line. Pixels are multiples of 1/64 in [0, 1], and so exact in single precision; pictures lie with
channels first. Everything is computed in double precision but kymatio's filters, which it keeps in single precision.
"""

import json
from pathlib import Path

import kymatio
import numpy as np
import skimage
from kymatio.numpy import Scattering2D
from skimage.feature import hog

rng = np.random.default_rng(5)


def exact(picture):
    return np.round(np.clip(picture, 0, 1) * 64) / 64


def noise(channels, rows, columns):
    return exact(rng.random((channels, rows, columns)))


def drawing(channels, rows, columns):
    """A bent stroke, thicker in some channels, on black."""
    y, x = np.mgrid[0:rows, 0:columns]
    y, x = (y + 0.5) / rows, (x + 0.5) / columns
    far = np.abs(y - 0.5 - 0.3 * np.sin(6 * x))
    return exact(np.stack([1.2 - (8 - 2 * channel) * far for channel in range(channels)]))


def scatter(picture, scales, angles, order):
    transform = Scattering2D(scales, picture.shape[1:], L=angles, max_order=order)
    return np.concatenate([transform(channel) for channel in picture])


def normalize(features, groups):
    blocks = features.reshape(groups, -1)
    centred = blocks - blocks.mean(axis=1, keepdims=True)
    return (centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)).reshape(features.shape)


def written(numbers):
    return [float(f"{number:.9g}") for number in np.asarray(numbers).ravel()]


CASES = []


def scattering_case(picture, scales=2, angles=8, order=2, groups=0):
    features = scatter(picture, scales, angles, order)
    if groups:
        features = normalize(features, groups)
    recipe = {"kind": "scattering", "scales": scales, "angles": angles, "order": order, "groups": groups}
    CASES.append((recipe, picture, list(features.shape), features))


def hog_case(picture, orientations=9, cell=4, block=2):
    options = {"orientations": orientations, "pixels_per_cell": (cell, cell), "cells_per_block": (block, block)}
    if len(picture) == 1:
        features = hog(picture[0], block_norm="L2-Hys", **options)
    else:
        features = hog(picture, block_norm="L2-Hys", channel_axis=0, **options)
    recipe = {"kind": "hog", "orientations": orientations, "cell": cell, "block": block}
    CASES.append((recipe, picture, list(features.shape), features))


scattering_case(drawing(1, 28, 28))
scattering_case(noise(1, 8, 8))
scattering_case(noise(1, 13, 10))
scattering_case(noise(3, 8, 12))
scattering_case(drawing(1, 12, 12), groups=27)
scattering_case(noise(2, 8, 8), groups=9)
scattering_case(noise(1, 9, 8), scales=1, angles=4)
scattering_case(noise(1, 4, 5), angles=3)
scattering_case(drawing(1, 16, 20), scales=3, angles=4)
scattering_case(noise(1, 12, 12), scales=3, angles=6, order=1)
hog_case(drawing(1, 28, 28))
hog_case(noise(1, 16, 16))
hog_case(noise(1, 25, 27), orientations=6, cell=8, block=3)
hog_case(noise(3, 12, 14), orientations=5, cell=3, block=2)
hog_case(drawing(3, 16, 16), cell=5, block=1)
hog_case(np.zeros((1, 8, 8)))

rows = exact(rng.random((40, 3)) @ rng.random((3, 6)) / 2 + 0.05 * rng.standard_normal((40, 6)))
mean = rows.mean(axis=0)
values, vectors = np.linalg.eigh((rows - mean).T @ (rows - mean) / len(rows))
values, vectors = values[::-1], vectors[:, ::-1]

with open(Path(__file__).parent / "features.json", "w") as file:
    file.write(f'{{"kymatio":"{kymatio.__version__}","scikit_image":"{skimage.__version__}","numpy":"{np.__version__}","cases":[\n')
    lines = [
        json.dumps(
            {"features": recipe, "shape": list(picture.shape), "picture": written(picture), "output_shape": shape, "output": written(output)},
            separators=(",", ":"),
        )
        for recipe, picture, shape, output in CASES
    ]
    file.write(",\n".join(lines))
    pca = {"rows": written(rows), "width": 6, "mean": written(mean), "variances": written(values), "components": written(vectors.T)}
    file.write('\n],"pca":' + json.dumps(pca, separators=(",", ":")) + "}\n")
