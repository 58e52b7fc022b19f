//! Figures of what was measured, as SVG: the same numbers make the same bytes.

mod grid;
mod joiners;
mod joins;
mod links;
mod plot;
mod scene;

pub use grid::grid;
pub use joiners::joiners;
pub use joins::Joins;
pub use links::{Panel, links};
pub use scene::scene;
