//! The game's data: the level, once to each player, and all walkers' places, sixty times a second.

use std::sync::LazyLock;

use bevy::asset::{AssetLoader, LoadContext, io::Reader};
use bevy::prelude::*;

/// Tiles of a side of the level.
pub(crate) const SIDE: usize = 512;

/// Cells of a side, of which it is made.
const CELLS: usize = SIDE / 4;

/// The number of walkers.
pub(crate) const WALKERS: u8 = 24;

/// A cave: a tile is a wall or not.
#[derive(Asset, TypePath, PartialEq)]
pub(crate) struct Level {
    tiles: Vec<u8>,
}

impl Level {
    /// The cave of this game, to compare with.
    pub(crate) fn cave() -> &'static Self {
        static CAVE: LazyLock<Level> = LazyLock::new(Level::make);
        &CAVE
    }

    /// Makes the cave, identical in each run: noise, smoothed until there are walls and halls, and each cell
    /// four tiles wide.
    fn make() -> Self {
        let noise = |at: usize| {
            let mixed = (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            ((mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40) % 100
        };
        let mut cells: Vec<u8> = (0..CELLS * CELLS).map(|at| u8::from(noise(at) < 45)).collect();
        for _ in 0..5 {
            let before = cells.clone();
            for (at, cell) in cells.iter_mut().enumerate() {
                let (x, y) = ((at % CELLS) as isize, (at / CELLS) as isize);
                let around = (-1..=1).flat_map(|dy| (-1..=1).map(move |dx| (x + dx, y + dy)));
                *cell =
                    u8::from(around.filter(|&(x, y)| is_rock(&before, CELLS, x, y)).count() >= 5);
            }
        }
        let tile = |at: usize| cells[at / SIDE / 4 * CELLS + at % SIDE / 4];
        Self { tiles: (0..SIDE * SIDE).map(tile).collect() }
    }

    pub(crate) fn is_wall(&self, x: usize, y: usize) -> bool {
        is_rock(&self.tiles, SIDE, x as isize, y as isize)
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        self.tiles.clone()
    }
}

/// Outside there is rock, too.
fn is_rock(map: &[u8], side: usize, x: isize, y: isize) -> bool {
    let inside = |at: isize| (0..side as isize).contains(&at);
    !inside(x) || !inside(y) || map[y as usize * side + x as usize] == 1
}

/// Reads a level, and refuses any other bytes.
#[derive(TypePath)]
pub(crate) struct LevelLoader;

impl AssetLoader for LevelLoader {
    type Asset = Level;
    type Settings = ();
    type Error = std::io::Error;

    async fn load(
        &self,
        reader: &mut dyn Reader,
        _settings: &(),
        _context: &mut LoadContext<'_>,
    ) -> Result<Level, std::io::Error> {
        let mut tiles = Vec::new();
        reader.read_to_end(&mut tiles).await?;
        if tiles.len() != SIDE * SIDE || tiles.iter().any(|tile| *tile > 1) {
            return Err(std::io::Error::other("this is no level"));
        }
        Ok(Level { tiles })
    }
}

/// Where everyone is in a frame.
#[derive(Clone, PartialEq)]
pub(crate) struct Snapshot {
    pub(crate) frame: u32,
    pub(crate) places: Vec<[u16; 2]>,
}

impl Snapshot {
    /// Each walker goes round a circle of its own, so the right places of any frame are known.
    pub(crate) fn of(frame: u32) -> Self {
        let place = |walker: u8| {
            let turn = f32::from(walker) * 1.7 + frame as f32 / (40.0 + f32::from(walker));
            let (middle, radius) = (SIDE as f32 / 2.0, 30.0 + 9.0 * f32::from(walker));
            [turn.cos(), turn.sin()].map(|along| (middle + radius * along) as u16)
        };
        Self { frame, places: (0..WALKERS).map(place).collect() }
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let places = self.places.iter().flatten().flat_map(|at| at.to_le_bytes());
        self.frame.to_le_bytes().into_iter().chain(places).collect()
    }

    /// `None` for what is no snapshot.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (frame, places) = bytes.split_first_chunk()?;
        let place = |at: &[u8; 4]| [[at[0], at[1]], [at[2], at[3]]].map(u16::from_le_bytes);
        let (places, rest) = places.as_chunks();
        let places = places.iter().map(place).collect();
        rest.is_empty().then_some(Self { frame: u32::from_le_bytes(*frame), places })
    }
}
