"""The wire contract, generated from proto/mediaplane/v1 by tools/generate_proto.py."""
