//! Which router, and which addresses others can come to.

use std::net::Ipv4Addr;

/// Why nobody outside comes to this address.
pub(super) fn why_not_public(ip: Ipv4Addr) -> Option<String> {
    let [a, b, ..] = ip.octets();
    if a == 100 && (64..128).contains(&b) {
        return Some(format!(
            "its address {ip} is one of the provider's own NAT (100.64.0.0/10), through which nobody comes \
             from outside: ask the provider for a public address, use IPv6, or serve from elsewhere"
        ));
    }
    if ip.is_private() {
        return Some(format!(
            "its address {ip} is private: there is another router in front of it, which has to map, too"
        ));
    }
    let is_none = a == 0
        || a >= 224
        || ip.is_loopback()
        || ip.is_link_local()
        || ip.octets().starts_with(&[192, 0, 0]);
    is_none.then(|| format!("it has no public address ({ip}): is it connected?"))
}

/// The router of the default route.
#[cfg(target_os = "linux")]
pub(super) fn default_gateway() -> Option<Ipv4Addr> {
    gateway_in(&std::fs::read_to_string("/proc/net/route").ok()?)
}

/// Not known: UPnP finds the router by itself, and --gateway says it.
#[cfg(not(target_os = "linux"))]
pub(super) const fn default_gateway() -> Option<Ipv4Addr> {
    None
}

/// The gateway of the default route with the least metric in the kernel's table of routes.
#[cfg(target_os = "linux")]
fn gateway_in(routes: &str) -> Option<Ipv4Addr> {
    const UP_BY_GATEWAY: u16 = 3;
    let default = routes.lines().skip(1).filter_map(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let [_, destination, gateway, flags, _, _, metric, mask, ..] = columns[..] else {
            return None;
        };
        let is_default = destination == "00000000" && mask == "00000000";
        let flags = u16::from_str_radix(flags, 16).ok()?;
        let gateway = u32::from_str_radix(gateway, 16).ok()?;
        let is_used = is_default && flags & UP_BY_GATEWAY == UP_BY_GATEWAY;
        // The kernel prints the number as it is in memory.
        is_used.then(|| (metric.parse().unwrap_or(u32::MAX), Ipv4Addr::from(gateway.to_ne_bytes())))
    });
    default.min_by_key(|(metric, _)| *metric).map(|(_, gateway)| gateway)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_behind_another_nat_is_said_to_be_one() {
        let why = |text: &str| why_not_public(text.parse().unwrap());
        for ip in ["100.64.0.1", "100.127.255.254"] {
            assert!(why(ip).unwrap().contains("the provider's own NAT (100.64.0.0/10)"), "{ip}");
        }
        for ip in ["10.0.0.1", "172.16.9.9", "192.168.1.1"] {
            assert!(why(ip).unwrap().contains("another router in front"), "{ip}");
        }
        for ip in
            ["0.0.0.0", "127.0.0.1", "169.254.1.1", "192.0.0.1", "224.0.0.1", "255.255.255.255"]
        {
            assert!(why(ip).unwrap().contains("no public address"), "{ip}");
        }
        for ip in ["100.63.255.255", "100.128.0.1", "198.51.100.7", "8.8.8.8", "172.32.0.1"] {
            assert_eq!(why(ip), None, "{ip}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_router_is_that_of_the_best_default_route() {
        let table = "\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
wlan0\t00000000\t0101A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0
eth0\t00000000\t010000C0\t0003\t0\t0\t100\t00000000\t0\t0\t0
eth0\t0000FEA9\t00000000\t0001\t0\t0\t10\t0000FFFF\t0\t0\t0
tun0\t00000000\t00000000\t0001\t0\t0\t50\t00000000\t0\t0\t0";
        let expected = Ipv4Addr::from(0x0100_00C0_u32.to_ne_bytes());
        assert_eq!(gateway_in(table), Some(expected));
        assert_eq!(gateway_in("nonsense\nmore of it"), None);
        assert_eq!(gateway_in(""), None);
    }
}
