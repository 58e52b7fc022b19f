//! The map of slices: a character for each, so that one sees the burst, the holes and their repair.

use haulier_article::chunk::{ChunkSender, SliceState};

/// Slices in a row: 256 make a block of four.
const ROW: usize = 64;

/// The chunk in flight as rows of characters, under a line that says which it is.
pub(super) fn draw(sender: &ChunkSender, sent: usize, chunks: usize) -> String {
    let at = (sent + 1).min(chunks);
    let mut map = format!("chunk {at} of {chunks}   █ acked  ▒ sent  ▓ sent again  · waiting\n");
    let states: Vec<SliceState> = sender.slice_states().collect();
    for row in states.chunks(ROW) {
        map.extend(row.iter().map(|&state| symbol(state)));
        map.push('\n');
    }
    map.pop();
    map
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
