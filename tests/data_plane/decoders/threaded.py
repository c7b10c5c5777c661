"""A decoder process that cannot be confined, for it has a thread already."""

import threading

from data_plane.decoders.child import serve
from mediaplane.protocol.values import MediaType
from tests.data_plane.decoders.misbehaving import make

if __name__ == "__main__":
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    serve({MediaType.IMAGE: make})
