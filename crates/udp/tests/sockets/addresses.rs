//! A server at a wildcard address answers from the address that was asked: a client on a connected socket,
//! and every NAT and firewall in between, lets in nothing else.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::process::Command;

use haulier_udp::Socket;

use crate::support::{MAX, mail, until};

/// Asks a server at `bind` at each of these addresses, one datagram and a run of several; all come back.
fn answers_where_it_was_asked(bind: &str, addresses: &[&str]) {
    let Ok(socket) = Socket::bind(bind.parse().unwrap()) else {
        return println!("no {bind} here");
    };
    let port = socket.local_addr().port();
    let mut server = mail(socket);
    server.machine.echoes = true;
    for address in addresses {
        let address: IpAddr = address.parse().unwrap();
        let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let client = UdpSocket::bind(any).unwrap();
        client.connect(SocketAddr::new(address, port)).unwrap();
        client.set_read_timeout(Some(MAX)).unwrap();
        for count in [1, 5] {
            let before = server.stats().sent;
            for _ in 0..count {
                client.send(&[7; 1200]).unwrap();
            }
            until(&mut server, |server| server.stats().sent == before + count);
            for _ in 0..count {
                assert_eq!(client.recv(&mut [0; 1500]).unwrap(), 1200, "from {address}");
            }
        }
        let (_, path, _) = server.machine.received.last().unwrap();
        assert_eq!(path.local.map(|ip| ip.to_canonical()), Some(address));
    }
}

#[test]
fn a_server_at_0000_answers_from_the_address_that_was_asked() {
    answers_where_it_was_asked("0.0.0.0:0", &["127.0.0.1", "127.0.0.2"]);
}

#[test]
fn a_server_at_both_families_answers_from_the_address_that_was_asked() {
    answers_where_it_was_asked("[::]:0", &["127.0.0.1", "127.0.0.2"]);
}

/// In a network of its own, where the host has two addresses of each family.
#[test]
fn a_host_with_two_addresses_is_reachable_at_both() {
    const INSIDE: &str = "HAULIER_TEST_INSIDE_NETWORK";
    if std::env::var_os(INSIDE).is_some() {
        answers_where_it_was_asked("0.0.0.0:0", &["192.0.2.1", "192.0.2.2"]);
        return answers_where_it_was_asked(
            "[::]:0",
            &["192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2"],
        );
    }
    let this = std::env::current_exe().unwrap();
    let script = "ip link set lo up && ip addr add 192.0.2.1/24 dev lo && \
         ip addr add 192.0.2.2/24 dev lo && ip addr add 2001:db8::1/64 dev lo nodad && \
         ip addr add 2001:db8::2/64 dev lo nodad || exit 77; \
         exec \"$0\" --exact addresses::a_host_with_two_addresses_is_reachable_at_both --nocapture";
    let mut unshare = Command::new("unshare");
    let run = unshare.args(["-n", "sh", "-c", script]).arg(this).env(INSIDE, "1").output();
    match run {
        Ok(output) if output.status.success() => {}
        // `unshare` itself fails with 1, before the script has said a word.
        Ok(output) if output.status.code() == Some(77) || output.stdout.is_empty() => {
            println!("skipped, it takes root: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(output) => panic!("{}", String::from_utf8_lossy(&output.stdout)),
        Err(error) => println!("skipped, there is no unshare: {error}"),
    }
}
