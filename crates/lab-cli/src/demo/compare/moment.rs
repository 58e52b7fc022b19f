//! A lane at a moment: what became of each slice until then, of a take that is played back.

use std::collections::BTreeMap;
use std::time::Duration;

use haulier_lab::scenes::{Kind, Outcome, Row, Take};

/// A source slice, or a segment of TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cell {
    /// It was lost, and nothing is on its way for it.
    Missing,
    /// It has not been sent.
    Waiting,
    OnTheWay,
    /// It is here, because it was sent again or put together from repair slices.
    Mended,
    Arrived,
}

/// What can be seen of a lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    /// All slices of the block, in its order.
    pub(super) cells: Vec<Cell>,
    /// Datagrams with slices that were sent, and those of them that were lost on the way or at the queue.
    pub(super) sent: usize,
    pub(super) lost: usize,
    /// Bytes on the wire down to the client, with headers.
    pub(super) wire_bytes: u64,
    /// Whether the client has the block.
    pub(super) is_whole: bool,
}

impl Moment {
    /// The take at this time from its beginning on.
    pub(super) fn of(take: &Take, at: Duration) -> Self {
        let mut chunks = Chunks::of(take);
        let (mut sent, mut lost, mut wire_bytes) = (0, 0, 0);
        for row in take.rows.iter().filter(|row| row.is_down && row.sent <= at) {
            wire_bytes += u64::from(row.bytes);
            if matches!(row.kind, Kind::Slice | Kind::Again | Kind::Repair) {
                sent += 1;
                lost += usize::from(is_lost(row) && row.ends <= at);
                chunks.note(row, at);
            }
        }
        let is_whole = take.whole.is_some_and(|whole| whole <= at);
        let mut cells = chunks.cells();
        if is_whole {
            // What was put together of repair slices is here, too.
            for cell in cells.iter_mut().filter(|cell| **cell < Cell::Mended) {
                *cell = Cell::Mended;
            }
        }
        Self { cells, sent, lost, wire_bytes, is_whole }
    }

    /// How much of the block is here, from 0 to 1.
    pub(super) fn share(&self) -> f64 {
        let here = self.cells.iter().filter(|cell| **cell >= Cell::Mended).count();
        here as f64 / self.cells.len().max(1) as f64
    }
}

const fn is_lost(row: &Row) -> bool {
    matches!(row.outcome, Outcome::Lost | Outcome::Dropped)
}

/// The chunks of a block, by their numbers.
struct Chunks(BTreeMap<u32, Chunk>);

/// A chunk: its slices, and the repair slices that are here.
struct Chunk {
    cells: Vec<Cell>,
    repairs: usize,
}

impl Chunks {
    fn of(take: &Take) -> Self {
        let sources = take.rows.iter().filter(|row| row.is_down && is_source(row));
        let numbers: BTreeMap<u32, ()> = sources.map(|row| (row.chunk, ())).collect();
        let new = |&slices: &u32| Chunk { cells: vec![Cell::Waiting; slices as usize], repairs: 0 };
        Self(numbers.into_keys().zip(take.slices.iter().map(new)).collect())
    }

    /// Takes in a datagram that was sent before.
    fn note(&mut self, row: &Row, at: Duration) {
        let Some(chunk) = self.0.get_mut(&row.chunk) else { return };
        let has_ended = row.ends <= at;
        if row.kind == Kind::Repair {
            chunk.repairs += usize::from(has_ended && row.outcome == Outcome::Arrived);
            return;
        }
        let Some(cell) = chunk.cells.get_mut(row.index as usize) else { return };
        let now = match row.outcome {
            Outcome::Arrived if has_ended && row.kind == Kind::Again => Cell::Mended,
            Outcome::Arrived if has_ended => Cell::Arrived,
            Outcome::Lost | Outcome::Dropped if has_ended => Cell::Missing,
            _ => Cell::OnTheWay,
        };
        // A slice that arrived stays so, and a slice with a copy on its way is not missing.
        if *cell < Cell::Mended && (now != Cell::Missing || *cell != Cell::OnTheWay) {
            *cell = now;
        }
    }

    /// All slices. A chunk with as many slices of both kinds as it has source slices is whole.
    fn cells(self) -> Vec<Cell> {
        let mut all = Vec::new();
        for mut chunk in self.0.into_values() {
            let here = chunk.cells.iter().filter(|cell| **cell >= Cell::Mended).count();
            if here + chunk.repairs >= chunk.cells.len() {
                for cell in chunk.cells.iter_mut().filter(|cell| **cell < Cell::Mended) {
                    *cell = Cell::Mended;
                }
            }
            all.append(&mut chunk.cells);
        }
        all
    }
}

const fn is_source(row: &Row) -> bool {
    matches!(row.kind, Kind::Slice | Kind::Again)
}
