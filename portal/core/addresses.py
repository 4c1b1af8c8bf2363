"""Which addresses Slipway may call when a user names them. Pure; standard library only."""

from collections.abc import Collection, Sequence
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# Metadata services: EC2 (link-local and fd00:ec2::254), Google (fd20:ce::254), Alibaba, Oracle,
# Azure's wire server, Scaleway (fd00:42::42).
METADATA: frozenset[Address] = frozenset(
    ip_address(text)
    for text in (
        "169.254.169.254", "169.254.170.2", "100.100.100.200", "192.0.0.192", "168.63.129.16",
        "fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fd00:42::42",
    )
)  # fmt: skip
NEVER: tuple[Network, ...] = tuple(
    ip_network(text)
    for text in ("0.0.0.0/8", "169.254.0.0/16", "192.0.0.0/24", "224.0.0.0/3", "::/128",
                 "fe80::/10", "fec0::/10", "ff00::/8", "64:ff9b:1::/48", "100::/64")
)  # fmt: skip
LAST_32_BITS = tuple(ip_network(text) for text in ("::ffff:0:0/96", "::/96", "64:ff9b::/96"))
SIX_TO_FOUR = ip_network("2002::/16")
TEREDO = ip_network("2001::/32")
ISATAP = (0x00005EFE, 0x02005EFE)


def refusal(
    address: Address, *, allow_private: bool, allowed_networks: Collection[Network] = ()
) -> str | None:
    """Return why the address may not be called, or `None` if it may.

    Link-local, metadata, multicast and unspecified addresses never may, in no notation; loopback,
    private and other non-public ones only when allowed.
    """
    for inner in (address, *embedded(address)):
        if inner in METADATA:
            return "it is a cloud's metadata service"
        if any(inner in network for network in NEVER if network.version == inner.version):
            return "it is a link-local, multicast or reserved address"
    judged: Sequence[Address] = embedded(address) or [address]
    for inner in judged:
        if is_public(inner) or allow_private:
            continue
        if not any(inner in network for network in allowed_networks):
            return "it is a private or loopback address"
    return None


def is_public(address: Address) -> bool:
    """Tell whether the address is meant to be reached from anywhere."""
    return address.is_global and not (address.is_multicast or address.is_reserved)


def embedded(address: Address) -> Sequence[IPv4Address]:
    """Return the IPv4 addresses inside an IPv6 one: mapped, NAT64, 6to4, Teredo, ISATAP."""
    if isinstance(address, IPv4Address):
        return []
    number = int(address)
    if number < 2:  # :: and ::1 are themselves
        return []
    if any(address in network for network in LAST_32_BITS):
        return [IPv4Address(number & 0xFFFFFFFF)]
    if address in SIX_TO_FOUR:
        return [IPv4Address(number >> 80 & 0xFFFFFFFF)]
    if address in TEREDO:
        server, client = number >> 64 & 0xFFFFFFFF, ~number & 0xFFFFFFFF
        return [IPv4Address(server), IPv4Address(client)]
    if number >> 32 & 0xFFFFFFFF in ISATAP:
        return [IPv4Address(number & 0xFFFFFFFF)]
    return []
