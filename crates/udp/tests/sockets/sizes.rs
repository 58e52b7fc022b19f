//! Datagrams that the path does not carry, and the ECN field.

use std::net::SocketAddr;
use std::process::Command;

use haulier_core::{Batch, Ecn, FourTuple, Instant, Machine};
use haulier_udp::{Clock, Runner, Socket, max_datagram_bytes};

use crate::support::{MAX, loopback, mail, until};

/// Sends datagrams with an ECN field, and notes that of what arrives.
#[derive(Default)]
struct Marks {
    to: Option<SocketAddr>,
    left: usize,
    arrived: Vec<Ecn>,
}

impl Machine for Marks {
    fn handle_datagram(&mut self, _: Instant, _: FourTuple, _: &mut [u8]) {
        panic!("the runner knows the field");
    }

    fn handle_marked_datagram(&mut self, _: Instant, _: FourTuple, ecn: Ecn, _: &mut [u8]) {
        self.arrived.push(ecn);
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit(&mut self, _: Instant, batch: &mut Batch) {
        let Some(to) = self.to else { return };
        while self.left > 0 {
            // Alone, and in runs of five.
            let ecn = [Ecn::Ect0, Ecn::NotEct, Ecn::Ce][self.left / 5 % 3];
            let composed = batch.compose(|datagram| {
                datagram.vec().extend_from_slice(&[7; 1200]);
                datagram.set_ecn(ecn);
                Some(FourTuple::new(to))
            });
            if composed.is_none() {
                return;
            }
            self.left -= 1;
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        (self.left > 0).then_some(Instant::ZERO)
    }
}

fn marks_arrive(at: &str, max_segments: usize, is_connected: bool) {
    let at = Socket::bind(at.parse().unwrap()).unwrap();
    let to = at.local_addr();
    let mut from =
        if is_connected { Socket::connect(to) } else { Socket::bind(to.ip_any()) }.unwrap();
    haulier_udp::Carrier::limit_segments(&mut from, max_segments);
    let mut sender =
        Runner::new(Marks { to: Some(to), left: 14, ..Marks::default() }, from, Clock::start());
    let mut receiver = Runner::new(Marks::default(), at, Clock::start());
    let began = std::time::Instant::now();
    while receiver.machine.arrived.len() < 14 {
        assert!(began.elapsed() < MAX);
        sender.round().unwrap();
        receiver.turn(std::time::Duration::from_millis(20)).unwrap();
    }
    let expected: Vec<_> =
        (1..=14).rev().map(|left| [Ecn::Ect0, Ecn::NotEct, Ecn::Ce][left / 5 % 3]).collect();
    assert_eq!(receiver.machine.arrived, expected, "{to} {max_segments} {is_connected}");
}

/// The same address with a port of the system's choice.
trait AnyPort {
    fn ip_any(&self) -> SocketAddr;
}

impl AnyPort for SocketAddr {
    fn ip_any(&self) -> SocketAddr {
        Self::new(self.ip(), 0)
    }
}

/// Not from datagrams that the system has joined: `quinn-udp` 0.6.3 has room for 96 bytes of control
/// messages, and the field comes last, behind the time, the size and the address. The machine then
/// counts too few, and
/// its peer stops marking.
#[cfg(target_os = "linux")]
#[test]
fn the_ecn_field_goes_out_and_comes_in() {
    for at in ["127.0.0.1:0", "[::1]:0"] {
        for is_connected in [true, false] {
            marks_arrive(at, 1, is_connected);
        }
    }
}

/// A datagram that is too long for the interface is lost, whatever is sent with it, and nothing else.
fn only_the_long_ones_are_lost() {
    assert!(Socket::bind(loopback()).unwrap().forbids_fragmentation());
    assert_eq!(max_datagram_bytes(), 9000);
    let at = Socket::bind(loopback()).unwrap();
    let to = FourTuple::new(at.local_addr());
    for from in [Socket::bind(loopback()).unwrap(), Socket::connect(at.local_addr()).unwrap()] {
        let mut sender = mail(from);
        for bytes in [1200, 8972, 1472, 1473, 1200] {
            sender.machine.to_send.push_back((to, vec![1; bytes]));
        }
        // A run of what is too long.
        (0..5).for_each(|_| sender.machine.to_send.push_back((to, vec![1; 1480])));
        sender.machine.to_send.push_back((to, vec![1; 1472]));
        until(&mut sender, |sender| sender.machine.to_send.is_empty());
        sender.round().unwrap();
        println!("{:?}", sender.stats());
        assert_eq!((sender.stats().sent, sender.stats().blocked), (4, 0));
        assert!(sender.stats().passed_over >= 3);
    }
    let mut receiver = mail(at);
    until(&mut receiver, |receiver| receiver.machine.received.len() >= 8);
    let sizes: Vec<_> = receiver.machine.received.iter().map(|(.., bytes)| bytes.len()).collect();
    assert_eq!(sizes, [1200, 1472, 1200, 1472].repeat(2));
}

/// In a network of its own, whose loopback carries 1500 bytes.
#[test]
fn what_is_too_long_is_lost_and_ends_nothing() {
    const INSIDE: &str = "HAULIER_TEST_INSIDE_SMALL_NETWORK";
    if std::env::var_os(INSIDE).is_some() {
        return only_the_long_ones_are_lost();
    }
    let this = std::env::current_exe().unwrap();
    let script = "ip link set lo mtu 1500 up || exit 77; \
         exec \"$0\" --exact sizes::what_is_too_long_is_lost_and_ends_nothing --nocapture";
    let mut unshare = Command::new("unshare");
    let run = unshare.args(["-n", "sh", "-c", script]).arg(this).env(INSIDE, "1").output();
    match run {
        Ok(output) if output.status.success() => {}
        // `unshare` itself fails with 1, before the script has said a word.
        Ok(output) if output.status.code() == Some(77) || output.stdout.is_empty() => {
            println!("skipped, it takes root: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(output) => panic!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        ),
        Err(error) => println!("skipped, there is no unshare: {error}"),
    }
}
