"""Makes thumbnail, proxy and frames of an asset from one read of its source."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from data_plane.cache import AssetFile, asset_path
from data_plane.decoders.messages import Done, Failed, FrameMeasure, Order, Output, Product
from data_plane.decoders.outputs import publish, scratch_outputs
from data_plane.executor import Context, Fail, Retry, ToHash
from data_plane.file_states import explain, state_of
from data_plane.jail import Jail
from data_plane.roots import AnotherRoot, Root, open_root
from mediaplane.protocol.values import HashAlgorithm, MediaType, ThumbnailFormat
from mediaplane.protocol.versions import version_of

THUMBNAIL_PX = 320
PROXY_PX = 1024
_TILE_PX = 160

_OF_IMAGE = {
    AssetFile.THUMBNAIL: Output(Product.PICTURE, THUMBNAIL_PX, ThumbnailFormat.WEBP),
    AssetFile.PROXY: Output(Product.PICTURE, PROXY_PX),
}
_OF_VIDEO = _OF_IMAGE | {
    AssetFile.FRAMES: Output(Product.FRAMES, PROXY_PX),
    AssetFile.SPRITE: Output(Product.SPRITE, _TILE_PX),
    AssetFile.SPRITE_INDEX: Output(Product.SPRITE_INDEX, _TILE_PX),
}
PRODUCTS = {MediaType.IMAGE: _OF_IMAGE, MediaType.VIDEO: _OF_VIDEO}


@dataclass(frozen=True)
class Original:
    """A picture or video, in the state in which it was scanned."""

    file_id: int
    library: str
    root: Root
    rel_path: bytes
    media_type: MediaType
    size_bytes: int
    mtime_ns: int

    @property
    def version(self) -> str:
        """The name of that state."""
        return version_of(self.size_bytes, self.mtime_ns)

    @property
    def extension(self) -> str:
        """The end of its name, in lower case and without the dot."""
        _stem, dot, extension = self.rel_path.rpartition(b".")
        return os.fsdecode(extension).lower() if dot and len(extension) <= 8 else ""


@dataclass(frozen=True)
class ExtractTask:
    """Make everything of an asset."""

    asset_id: int
    original: Original
    # Set when the file wants a hash as well.
    hash_algorithm: HashAlgorithm | None = None
    sampling_limit: int = 100
    measure: FrameMeasure = FrameMeasure.MSE


@dataclass(frozen=True)
class Extraction:
    """What was made of an asset."""

    task: ExtractTask
    done: Done

    @property
    def hashed(self) -> ToHash | None:
        """The file whose hash was found on the way."""
        original, algorithm = self.task.original, self.task.hash_algorithm
        if algorithm is None:
            return None
        return ToHash(
            original.file_id,
            original.root.path,
            original.rel_path,
            original.size_bytes,
            original.mtime_ns,
            algorithm,
        )


def extract(task: ExtractTask, ctx: Context) -> Extraction:
    """Read the source once, and put all that is made of it into the cache."""
    original = task.original
    products = PRODUCTS[original.media_type]
    order = Order(
        original.media_type,
        list(products.values()),
        ctx.limits,
        original.extension,
        task.hash_algorithm,
        task.sampling_limit,
        task.measure,
    )
    ctx.spend(original.size_bytes)
    with open_original(original, ctx) as source, scratch_outputs(ctx, len(products)) as files:
        done = decode(order, source, [file.fileno() for file in files], ctx)
        check_unchanged(original, source)
        ctx.control.check()
        for name, file in zip(products, files, strict=True):
            publish(file, ctx, asset_path(task.asset_id, name, original.version))
    return Extraction(task, done)


def discard(asset_id: int, version: str, ctx: Context) -> None:
    """Remove from the cache what shows one state of an asset."""
    for name in AssetFile:
        path = os.path.join(os.fsdecode(ctx.state), asset_path(asset_id, name, version))
        with suppress(OSError):  # what is left is swept with the asset
            os.unlink(path)


def decode(order: Order, source: int, outputs: list[int], ctx: Context) -> Done:
    """Have an order done, or say why it cannot be."""
    reply = ctx.decode(order, source, outputs)
    if isinstance(reply, Failed):
        raise Fail(reply.code, reply.message)
    return reply


@contextmanager
def open_original(original: Original, ctx: Context) -> Iterator[int]:
    """Yield a descriptor of a file that still is as it was scanned."""
    with open_mounted(original.root, ctx.open_jail) as jail:
        try:
            source = jail.open_file(original.rel_path)
        except OSError as error:
            code, message = explain(error)
            # A network that hiccups is not the file's fault.
            raise (Retry if code == "io_error" else Fail)(code, message) from None
        try:
            check_unchanged(original, source)
            yield source
        finally:
            os.close(source)


def open_mounted(root: Root, open_jail: Callable[[bytes], Jail]) -> Jail:
    """Open the folder of a library, or say that it has to wait for its disk."""
    try:
        return open_root(root, open_jail)
    except AnotherRoot:
        message = (
            "The library's folder is another one than at its last scan. Is its disk mounted? If"
            " so, scan the library again."
        )
        raise Retry("root_changed", message) from None
    except OSError as error:
        message = f"The library's folder cannot be opened ({error.strerror}). Is its disk mounted?"
        raise Retry("root_unavailable", message) from None


def check_unchanged(original: Original, source: int) -> None:
    """Refuse a file that is not, or no longer, as it was scanned."""
    if state_of(os.fstat(source)) != (original.size_bytes, original.mtime_ns):
        raise Fail("changed", "It has changed since the scan; scan the library again.")
