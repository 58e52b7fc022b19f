//! The window of CUBIC (RFC 9438), in datagrams, for laws that share a queue with TCP.

use libm::cbrt;

/// The part of the window that a loss leaves, and the growth (RFC 9438, 4.1.2).
pub(super) const CUT: f64 = 0.7;
const GROWTH: f64 = 0.4;

/// The seconds from a cut until the window is again what it was, `full`.
pub(super) fn until_full(full: f64) -> f64 {
    cbrt((1.0 - CUT) * full / GROWTH)
}

/// The window this many seconds after it was cut from `full`, with a round trip in seconds: that of the cubic
/// function, or of Reno where that is larger.
pub(super) fn window(full: f64, since: f64, rtt: f64) -> f64 {
    let from_full = since - until_full(full);
    let reno = 3.0 * (1.0 - CUT) / (1.0 + CUT) * since / rtt;
    (GROWTH * from_full * from_full * from_full + full).max(CUT * full + reno)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_cut_comes_back_and_goes_beyond() {
        let full = 1_000.0;
        let at = |seconds| window(full, seconds, 1.0);
        assert!((at(0.0) - CUT * full).abs() < 1e-6);
        assert!((at(until_full(full)) - full).abs() < 1e-6);
        assert!(at(2.0 * until_full(full)) > 1.2 * full);
        assert!(window(10.0, 1.0, 0.01) > 50.0, "by Reno on a short path");
    }
}
