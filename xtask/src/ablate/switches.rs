//! What an ablation switches off or scales, read once from the environment. This file stands in a copy of
//! `crates/control` only: `cargo xtask ablate` puts it there.

use core::time::Duration;
use std::io::Write as _;
use std::string::String;
use std::sync::OnceLock;
use std::vec::Vec;

use crate::units::{Bytes, Rate, Span};

/// Whether a mechanism is switched off.
pub fn off(name: &str) -> bool {
    static OFF: OnceLock<Vec<String>> = OnceLock::new();
    OFF.get_or_init(|| words("HAULIER_OFF")).iter().any(|off| off == name)
}

fn words(name: &str) -> Vec<String> {
    let value = std::env::var(name).unwrap_or_default();
    value.split(',').map(String::from).collect()
}

/// By what a constant is multiplied. That it is used at all is noted.
fn factor(name: &str) -> f64 {
    if let Some(path) = std::env::var_os("HAULIER_USED") {
        let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
        let mut file = file.expect("the file for names of constants");
        writeln!(file, "{name}").expect("written");
    }
    let scales = words("HAULIER_SCALE");
    let mut of_name = scales.iter().filter_map(|scale| scale.split_once('='));
    of_name.find(|(scaled, _)| *scaled == name).map_or(1.0, |(_, by)| by.parse().expect("a number"))
}

/// A constant, scaled. Each of the numbers of a pair is one of its own.
pub fn scaled<T: Scale>(name: &str, value: T) -> T {
    value.scaled(name)
}

pub trait Scale {
    fn scaled(self, name: &str) -> Self;
}

impl Scale for f64 {
    fn scaled(self, name: &str) -> Self {
        self * factor(name)
    }
}

impl Scale for Duration {
    fn scaled(self, name: &str) -> Self {
        self.mul_f64(factor(name))
    }
}

macro_rules! units {
    ($($unit:ident)*) => {
        $(impl Scale for $unit {
            fn scaled(self, name: &str) -> Self {
                Self(self.0.scaled(name))
            }
        })*
    };
}

units!(Bytes Rate Span);

/// Rounded, and not to zero.
macro_rules! whole {
    ($($whole:ident)*) => {
        $(impl Scale for $whole {
            fn scaled(self, name: &str) -> Self {
                let scaled = libm::round(self as f64 * factor(name)) as Self;
                if self > 0 { scaled.max(1) } else { scaled }
            }
        })*
    };
}

whole!(u8 u16 u32 u64 usize);

impl<A: Scale, B: Scale> Scale for (A, B) {
    fn scaled(self, name: &str) -> Self {
        let of = |place: &str| String::from(name) + place;
        (self.0.scaled(&of(".0")), self.1.scaled(&of(".1")))
    }
}

impl<A: Scale, B: Scale, C: Scale> Scale for (A, B, C) {
    fn scaled(self, name: &str) -> Self {
        let of = |place: &str| String::from(name) + place;
        (self.0.scaled(&of(".0")), self.1.scaled(&of(".1")), self.2.scaled(&of(".2")))
    }
}
