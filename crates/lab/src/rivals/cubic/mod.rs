//! A TCP bulk transfer with CUBIC, as a pair of hosts: most competing downloads are like this.
//!
//! It follows RFC 9438 (window), RFC 6937 (proportional rate reduction) and HyStart's delay test as in Linux;
//! the rest of TCP is in `rivals/tcp`.

mod sender;
mod window;

pub use sender::CubicSender;
pub use window::CubicWindow;

#[cfg(test)]
mod tests;
