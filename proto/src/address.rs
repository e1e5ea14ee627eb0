//! Which addresses belong to the public internet, and which names to this machine.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address belongs to the public internet, by IANA's registries of special-purpose addresses: everything that they do not
/// call globally reachable is not public, nor is multicast, nor what is set aside for later. An IPv4 address inside of an IPv6 one
/// (mapped, or behind NAT64) counts as itself; tunnels of old (6to4, Teredo) are not public, whatever they hold.
#[must_use]
pub fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

/// <https://www.iana.org/assignments/iana-ipv4-special-registry>, with the length of each prefix.
const SPECIAL_V4: [(Ipv4Addr, u32); 16] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    // not in the registry: a public address at which a large cloud's own services answer its machines
    (Ipv4Addr::new(168, 63, 129, 16), 32),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let same = |to: Ipv4Addr, bits: u32| (ip.to_bits() ^ to.to_bits()) >> (32 - bits) == 0;
    !SPECIAL_V4.iter().any(|(to, bits)| same(*to, *bits))
}

/// Global unicast: of the rest of the address space nothing is public, forms of IPv4 aside.
const GLOBAL_UNICAST: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);
/// NAT64 (RFC 6052): an IPv4 address in the last 32 bits.
const NAT64: (Ipv6Addr, u32) = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);
/// <https://www.iana.org/assignments/iana-ipv6-special-registry>, what of it lies in global unicast: protocol assignments with
/// Teredo, documentation, 6to4, documentation.
const SPECIAL_V6: [(Ipv6Addr, u32); 4] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

fn is_public_v6(ip: Ipv6Addr) -> bool {
    let is_in = |(to, bits): (Ipv6Addr, u32)| (ip.to_bits() ^ to.to_bits()) >> (128 - bits) == 0;
    if let Some(mapped) = ip.to_ipv4_mapped() {
        return is_public_v4(mapped);
    }
    if is_in(NAT64) {
        return is_public_v4(Ipv4Addr::from_bits(ip.to_bits() as u32));
    }
    is_in(GLOBAL_UNICAST) && !SPECIAL_V6.into_iter().any(is_in)
}

/// Whether `host[:port]` names this machine: `localhost`, a name below it, or an address of loopback. User names make it nobody's.
#[must_use]
pub fn names_this_machine(authority: &str) -> bool {
    let name = host_of(authority).trim_end_matches('.').to_ascii_lowercase();
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(&name);
    name == "localhost"
        || name.ends_with(".localhost") && !name.contains('@')
        || address.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
}

/// Whether a page is one of this machine, by what `Origin` says of it: `scheme://host[:port]`. `null` hides where it comes from.
#[must_use]
pub fn is_page_of_this_machine(origin: &str) -> bool {
    origin.split_once("://").is_some_and(|(_, authority)| names_this_machine(authority))
}

/// The host of `host[:port]`.
#[must_use]
pub fn host_of(authority: &str) -> &str {
    let is_port = |port: &str| port.chars().all(|c| c.is_ascii_digit());
    match authority.rsplit_once(':') {
        Some((host, port)) if is_port(port) && (host.ends_with(']') || !host.contains(':')) => host,
        _ => authority,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_registries_of_special_addresses() {
        for (range, addresses) in [
            ("0.0.0.0/8", ["0.0.0.0", "0.1.2.3", "0.255.255.255"]),
            ("10.0.0.0/8", ["10.0.0.0", "10.0.0.1", "10.255.255.255"]),
            ("100.64.0.0/10", ["100.64.0.0", "100.64.0.1", "100.127.255.255"]),
            ("127.0.0.0/8", ["127.0.0.0", "127.0.0.1", "127.255.255.255"]),
            ("169.254.0.0/16", ["169.254.0.0", "169.254.169.254", "169.254.255.255"]),
            ("172.16.0.0/12", ["172.16.0.0", "172.20.0.1", "172.31.255.255"]),
            ("192.0.0.0/24", ["192.0.0.0", "192.0.0.8", "192.0.0.255"]),
            ("192.0.2.0/24", ["192.0.2.0", "192.0.2.1", "192.0.2.255"]),
            ("192.88.99.0/24", ["192.88.99.0", "192.88.99.1", "192.88.99.255"]),
            ("192.168.0.0/16", ["192.168.0.0", "192.168.1.1", "192.168.255.255"]),
            ("198.18.0.0/15", ["198.18.0.0", "198.19.0.1", "198.19.255.255"]),
            ("198.51.100.0/24", ["198.51.100.0", "198.51.100.1", "198.51.100.255"]),
            ("203.0.113.0/24", ["203.0.113.0", "203.0.113.1", "203.0.113.255"]),
            ("clouds' own", ["168.63.129.16", "100.100.100.200", "169.254.169.123"]),
            ("224.0.0.0/4", ["224.0.0.0", "232.1.1.1", "239.255.255.255"]),
            ("240.0.0.0/4", ["240.0.0.0", "250.1.2.3", "255.255.255.255"]),
            ("::/128, ::1/128, IPv4-compatible", ["::", "::1", "::10.0.0.1"]),
            ("::ffff:0:0/96", ["::ffff:10.0.0.1", "::ffff:127.0.0.1", "::ffff:169.254.169.254"]),
            ("64:ff9b::/96", ["64:ff9b::10.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe"]),
            ("64:ff9b:1::/48", ["64:ff9b:1::", "64:ff9b:1::8.8.8.8", "64:ff9b:1:ffff::1"]),
            ("100::/64, 100:0:0:1::/64", ["100::", "100::1", "100:0:0:1::1"]),
            ("2001::/23", ["2001::1", "2001:2::1", "2001:1ff:ffff::"]),
            ("Teredo of 10.0.0.1, ORCHIDv2", ["2001:0:a00:1::", "2001:20::1", "2001:30::1"]),
            ("2001:db8::/32", ["2001:db8::", "2001:db8::1", "2001:db8:ffff::1"]),
            ("2002::/16", ["2002:a00:1::", "2002:808:808::1", "2002:ffff::"]),
            ("3fff::/20", ["3fff::", "3fff::1", "3fff:fff:ffff::1"]),
            ("5f00::/16", ["5f00::", "5f00::1", "5f00:ffff::1"]),
            ("fc00::/7", ["fc00::1", "fd00::1", "fdff:ffff::1"]),
            ("fe80::/10", ["fe80::1", "fe80::a9fe:a9fe", "febf::1"]),
            ("fec0::/10", ["fec0::1", "fed0::1", "feff::1"]),
            ("ff00::/8", ["ff00::", "ff02::1", "ff0e::1"]),
            ("not given out", ["4000::1", "8000::1", "1::1"]),
        ] {
            for text in addresses {
                assert!(!is_public(text.parse().expect("an address")), "{text} of {range}");
            }
        }
        for text in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.167.255.255",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
            "2001:200::1",
            "2001:4860:4860::8888",
            "2003::1",
            "2606:4700:4700::1111",
            "2a00:1450::1",
            "3ffe:ffff::1",
        ] {
            assert!(is_public(text.parse().expect("an address")), "{text}");
        }
    }

    #[test]
    fn names_of_this_machine_are_told_from_others() {
        for ours in [
            "localhost",
            "LOCALHOST:8620",
            "localhost.",
            "x.localhost:1",
            "127.0.0.1:8620",
            "127.9.9.9",
            "[::1]:8620",
            "[::1]",
        ] {
            assert!(names_this_machine(ours), "{ours}");
        }
        for theirs in [
            "",
            "evil.example",
            "evil.example:8620",
            "localhost.evil.example",
            "127.0.0.1.evil.example:8620",
            "notlocalhost",
            "10.0.0.1:8620",
            "0.0.0.0:8620",
            "[::]:8620",
            "user@localhost",
            "user@x.localhost",
        ] {
            assert!(!names_this_machine(theirs), "{theirs}");
        }
    }

    #[test]
    fn pages_of_this_machine_are_told_from_others() {
        for ours in ["http://localhost", "https://127.0.0.1:8620", "http://[::1]:8620"] {
            assert!(is_page_of_this_machine(ours), "{ours}");
        }
        for theirs in ["null", "localhost", "https://evil.example", "https://localhost.evil.example"] {
            assert!(!is_page_of_this_machine(theirs), "{theirs}");
        }
    }
}
