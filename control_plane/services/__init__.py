"""The gRPC edge: decode, decide, encode."""
