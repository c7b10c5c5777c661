"""Runs a decoder: python -P -m data_plane.decoders DESCRIPTOR MEMORY_BYTES."""

from data_plane.decoders import pictures, videos
from data_plane.decoders.child import serve
from mediaplane.protocol.values import MediaType

if __name__ == "__main__":
    serve({MediaType.IMAGE: pictures.make, MediaType.VIDEO: videos.make})
