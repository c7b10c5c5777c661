"""Makes thumbnails and proxies of pictures of every format."""

from data_plane.decoders.encoding import write_picture as write_picture
