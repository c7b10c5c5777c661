"""Does: claims work under a lease, touches the file system and writes back results."""
