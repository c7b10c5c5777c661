"""Which addresses only this machine can reach."""

import ipaddress


def is_unix(address: str) -> bool:
    """Tell whether an address is a socket of this machine's file system."""
    return address.startswith(("unix:", "unix-abstract:"))


def is_local(address: str) -> bool:
    """Tell whether only this machine reaches an address: a unix socket, or a loopback port."""
    return is_unix(address) or _is_loopback(address)


def _is_loopback(address: str) -> bool:
    host, _, port = address.rpartition(":")
    if not port.isdecimal():
        return False
    try:
        return ipaddress.ip_address(host.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return host == "localhost"
