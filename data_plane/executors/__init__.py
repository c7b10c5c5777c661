"""One file per kind of work; none of them knows SQL or gRPC."""
