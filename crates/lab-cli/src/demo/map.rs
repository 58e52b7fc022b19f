//! The map of slices: a character for each, so that one sees the burst, the holes and their repair.

use haulier::proto::connection::{BlockMap, SliceState as Known};
use haulier_article::chunk::{ChunkSender, SliceState};

/// Slices in a row: 256 make a block of four.
const ROW: usize = 64;

/// The chunk in flight as rows of characters, under a line that says which it is.
pub(super) fn draw(sender: &ChunkSender, sent: usize, chunks: usize) -> String {
    let at = (sent + 1).min(chunks);
    let head = format!("chunk {at} of {chunks}   █ acked  ▒ sent  ▓ sent again  · waiting");
    rows(head, sender.slice_states().map(symbol).collect())
}

/// The first open chunk of haulier/1 as rows of characters. Its sender knows which slices are missing.
pub(super) fn draw_sending(map: &BlockMap) -> String {
    let Some(chunk) = map.open.first() else { return String::new() };
    let (at, chunks) = (chunk.index + 1, map.chunks);
    let head = format!("chunk {at} of {chunks}   █ arrived  ▒ on its way  × missing  · to come");
    rows(head, chunk.states().map(known_symbol).collect())
}

fn rows(head: String, symbols: Vec<char>) -> String {
    let rows = symbols.chunks(ROW).map(String::from_iter);
    [head].into_iter().chain(rows).collect::<Vec<_>>().join("\n")
}

const fn known_symbol(state: Known) -> char {
    match state {
        Known::Arrived => '█',
        Known::InFlight => '▒',
        Known::Missing => '×',
        _ => '·',
    }
}

const fn symbol(state: SliceState) -> char {
    match state {
        SliceState::Unsent => '·',
        SliceState::InFlight { sends: 1 } => '▒',
        SliceState::InFlight { .. } => '▓',
        SliceState::Acked => '█',
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use haulier_article::Instant;
    use haulier_article::chunk::ChunkSenderConfig;

    #[test]
    fn a_burst_fills_the_map() {
        let mut sender = ChunkSender::new(ChunkSenderConfig::default());
        sender.send_chunk(vec![0; 100 * 1024]).unwrap();
        while sender.poll_slice(Instant::ZERO).is_some() {}
        let map = draw(&sender, 0, 1);
        let rows: Vec<&str> = map.lines().collect();
        assert_eq!(rows[1], "▒".repeat(64));
        assert_eq!(rows[2], "▒".repeat(36));
    }
}
