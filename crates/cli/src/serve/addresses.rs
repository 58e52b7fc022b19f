//! The addresses for the ticket: where clients reach a server that listens at all of them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// Addresses for documentation: no host has them, and they are routed like any others.
const FAR_V4: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 9);
const FAR_V6: SocketAddr =
    SocketAddr::new(IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)), 9);

/// Where others reach a socket at `local`, the likeliest first. At `[::]` there is IPv4, too.
pub(super) fn reachable(local: SocketAddr) -> Vec<SocketAddr> {
    let (v4, v6) = (IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST));
    let (far, loopback): (&[SocketAddr], &[IpAddr]) = match local {
        _ if !local.ip().is_unspecified() => return vec![local],
        SocketAddr::V4(_) => (&[FAR_V4], &[v4]),
        SocketAddr::V6(_) => (&[FAR_V6, FAR_V4], &[v4, v6]),
    };
    let mut ips: Vec<IpAddr> = far.iter().filter_map(|far| routed(*far)).collect();
    // For clients on this machine, and for a machine without a network.
    for ip in loopback {
        if !ips.contains(ip) {
            ips.push(*ip);
        }
    }
    ips.into_iter().map(|ip| SocketAddr::new(ip, local.port())).collect()
}

/// The address that the system would send from. Connecting a UDP socket sends nothing.
fn routed(far: SocketAddr) -> Option<IpAddr> {
    let any = match far {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    let socket = UdpSocket::bind(any).ok()?;
    socket.connect(far).ok()?;
    let ip = socket.local_addr().ok()?.ip();
    (!ip.is_unspecified()).then_some(ip)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_never_names_an_address_that_is_none() {
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        assert_eq!(reachable(at("192.0.2.7:4016")), [at("192.0.2.7:4016")]);
        for local in ["0.0.0.0:4016", "[::]:4016"] {
            let found = reachable(at(local));
            assert!(found.iter().all(|a| a.port() == 4016 && !a.ip().is_unspecified()));
            assert!(found.iter().any(|address| address.ip().is_loopback()), "{found:?}");
            assert!(found.iter().any(SocketAddr::is_ipv4), "{found:?}");
        }
    }
}
