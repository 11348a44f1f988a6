"""Download files over HTTP, and unpack archives and compressed files."""

from __future__ import annotations

import gzip
import http.client
import io
import tarfile
import urllib.request
import zlib
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

Progress = Callable[[str, int, int | None], None]
"""Called with a file's name, the bytes received so far, and the total if the server states it."""

TIMEOUT_SECONDS = 5.0  # to connect, and between two chunks: a machine without network must not wait long
CHUNK_BYTES = 1 << 17
MAX_BYTES = 1 << 26
"""Upper limit for the size of a file; the largest of MNIST has 47 MB."""


class BadFile(ValueError):
    """A file cannot be downloaded, or its content is wrong."""


def download(url: str, progress: Progress) -> bytes:
    """Return the content of a URL."""
    name = url.rpartition("/")[2]
    request = urllib.request.Request(url, headers={"User-Agent": "maxcosine"})
    content = bytearray()
    try:
        # Unlike `urlopen`, a new opener reads the present proxy settings.
        with urllib.request.build_opener().open(request, timeout=TIMEOUT_SECONDS) as response:
            length = response.headers.get("Content-Length", "")
            total = int(length) if length.isdecimal() else None
            progress(name, 0, total)
            while chunk := response.read(CHUNK_BYTES):
                content += chunk
                progress(name, len(content), total)
                if len(content) > MAX_BYTES:
                    raise BadFile(f"{name} has more than {MAX_BYTES:,} bytes: it is another file")
    except (OSError, http.client.HTTPException) as error:  # a URLError is an OSError
        raise BadFile(f"{name}: {error} after {len(content):,} bytes") from None
    return bytes(content)


def decompress(content: bytes, name: str) -> bytes:
    """Decompress gzip data, up to MAX_BYTES; return other data unchanged."""
    # The suffix of a name says nothing: browsers decompress files and keep their .gz.
    if not content.startswith(b"\x1f\x8b"):
        return content
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
            return file.read(MAX_BYTES)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise BadFile(f"{name}: the gzip data are damaged ({error}); download the file again") from None


def files_in_archive(archive: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the name, without folders and .gz, and the content of each file in a tar or Debian archive."""
    try:
        with tarfile.open(fileobj=io.BytesIO(_tar_in_deb(archive))) as tar:
            for member in tar:
                file = tar.extractfile(member) if member.isfile() else None
                if file is not None:
                    yield PurePosixPath(member.name).name.removesuffix(".gz"), file.read(MAX_BYTES)
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise BadFile(f"the archive is damaged ({error})") from None


def _tar_in_deb(archive: bytes) -> bytes:
    """Return the data of a Debian package, an ar archive; return other archives unchanged."""
    start = len(b"!<arch>\n")
    if not archive.startswith(b"!<arch>\n"):
        return archive
    while not archive.startswith(b"data.tar", start):
        header = archive[start : start + 60]
        if len(header) < 60:
            raise BadFile("the Debian package contains no data")
        size = int(header[48:58])
        start += 60 + size + size % 2
    return archive[start + 60 :]
