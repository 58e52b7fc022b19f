//! The bar on a terminal that is narrow, and becomes narrower and wider while it is drawn.

use super::*;

/// A terminal of some rows. Its lines are wrapped at its edge, and wrapped again when that moves.
#[derive(Clone, Debug)]
struct Terminal {
    columns: usize,
    /// Each with whether the next one goes on with it.
    rows: Vec<(Vec<char>, bool)>,
    at: (usize, usize),
}

impl Terminal {
    fn new(columns: usize) -> Self {
        Self { columns, rows: vec![(Vec::new(), false)], at: (0, 0) }
    }

    fn write(&mut self, c: char) {
        if self.at.1 == self.columns {
            self.rows[self.at.0].1 = true;
            self.down();
        }
        let row = &mut self.rows[self.at.0].0;
        row.resize(row.len().max(self.at.1 + 1), ' ');
        row[self.at.1] = c;
        self.at.1 += 1;
    }

    fn down(&mut self) {
        self.at = (self.at.0 + 1, 0);
        if self.rows.len() == self.at.0 {
            self.rows.push((Vec::new(), false));
        }
    }

    /// All lines, as a person reads them.
    fn lines(&self) -> Vec<String> {
        let rows = self.rows.iter().map(|(row, _)| String::from_iter(row).trim_end().to_owned());
        rows.filter(|row| !row.is_empty()).collect()
    }

    /// Makes it wider or narrower: as a terminal that wraps its lines again, or that cuts them off.
    fn resize(&mut self, columns: usize, wraps: bool) {
        self.columns = columns;
        if !wraps {
            self.rows.iter_mut().for_each(|(row, _)| row.truncate(columns));
            self.at.1 = self.at.1.min(columns);
            return;
        }
        let (mut rows, mut at) = (Vec::new(), (0, 0));
        let mut whole: Vec<char> = Vec::new();
        let mut cursor = None;
        for (index, (row, goes_on)) in self.rows.iter().enumerate() {
            if index == self.at.0 {
                cursor = Some(whole.len() + self.at.1);
            }
            whole.extend(row);
            if *goes_on {
                continue;
            }
            if let Some(cursor) = cursor.take() {
                at = (rows.len() + cursor.saturating_sub(1) / columns, cursor.min(columns));
                if cursor > columns {
                    at.1 = (cursor - 1) % columns + 1;
                }
            }
            let chunks: Vec<Vec<char>> = whole.chunks(columns).map(<[char]>::to_vec).collect();
            let last = chunks.len().saturating_sub(1);
            rows.extend(chunks.into_iter().enumerate().map(|(i, row)| (row, i < last)));
            if whole.is_empty() {
                rows.push((Vec::new(), false));
            }
            whole.clear();
        }
        (self.rows, self.at) = (rows, at);
    }
}

impl Screen for Terminal {
    fn columns(&self) -> usize {
        self.columns
    }

    fn put(&mut self, text: &str) {
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            match c {
                '\r' => self.at.1 = 0,
                '\n' => self.down(),
                '\x1b' => {
                    let sequence: String = chars.by_ref().skip(1).take(1).collect();
                    match &*sequence {
                        "K" => self.rows[self.at.0].0.truncate(self.at.1),
                        "J" => {
                            self.rows.truncate(self.at.0 + 1);
                            self.rows[self.at.0].0.truncate(self.at.1);
                            self.rows[self.at.0].1 = false;
                        }
                        digits => {
                            let more: String = chars.by_ref().take_while(|c| *c != 'A').collect();
                            let up: usize = format!("{digits}{more}").parse().unwrap();
                            self.at.0 -= up;
                        }
                    }
                }
                c => self.write(c),
            }
        }
    }
}

fn shown() -> Shown {
    Shown {
        share: Some(0.45),
        amount: "18.1 of 40.0 MiB".into(),
        rate: "3.1 MiB/s".into(),
        remaining: Some(Duration::from_secs(12)),
        more: "2.0 MiB were here".into(),
        above: String::new(),
    }
}

#[test]
fn what_matters_least_goes_first() {
    let all = |columns| line(&shown(), columns, 0);
    assert_eq!(
        all(90),
        "[==========>            ]   45 %  18.1 of 40.0 MiB  3.1 MiB/s  ETA 0:12  2.0 MiB were here"
    );
    assert_eq!(all(60), "[=====>      ]   45 %  18.1 of 40.0 MiB  3.1 MiB/s  ETA 0:12");
    assert_eq!(all(30), " 45 %  3.1 MiB/s  ETA 0:12");
    assert_eq!(all(16), " 45 %  ETA 0:12");
    assert_eq!(all(10), " 45 %");
    assert_eq!(all(3), " 45");
    for columns in 1..200 {
        assert!(all(columns).chars().count() <= columns);
    }
}

#[test]
fn an_estimate_has_its_label() {
    let eta = |seconds| eta(Duration::from_secs_f64(seconds));
    assert_eq!([eta(0.2), eta(12.0), eta(75.0)], ["ETA 0:01", "ETA 0:12", "ETA 1:15"]);
    assert_eq!(eta(3_723.0), "ETA 1:02:03");
}

/// Nothing of it stays behind, and nothing above it is lost, however the terminal is dragged.
#[test]
fn it_survives_a_resize() {
    for wraps in [true, false] {
        for above in ["", "one line\nand another"] {
            let mut terminal = Terminal::new(100);
            terminal.put("before\r\n");
            let mut bar = Bar::new(terminal);
            let widths = (8..=100).rev().chain(8..=120).chain((40..=120).rev().step_by(5));
            for columns in widths {
                let shown = Shown { above: above.to_owned(), ..shown() };
                bar.screen.resize(columns, wraps);
                bar.draw_now(&shown);
                let lines = bar.screen.lines();
                let text = lines.join("\n");
                assert_eq!(lines[0], "before", "{columns} columns:\n{text}");
                assert_eq!(text.matches("45").count(), 1, "{columns} columns:\n{text}");
                assert!(lines.iter().all(|line| line.len() < columns), "{columns}:\n{text}");
            }
            bar.clear();
            bar.screen.put("after");
            assert_eq!(bar.screen.lines(), ["before", "after"]);
        }
    }
}

/// So narrow that nothing fits: it is still one line.
/// Rows of a map stay below each other, and words whole.
#[test]
fn what_is_above_it_is_broken_evenly() {
    let row = "0123456789".repeat(6) + "0123";
    let parts = broken(&row, 33);
    assert_eq!(parts.iter().map(String::len).collect::<Vec<_>>(), [32, 32]);
    assert_eq!(parts.concat(), row);
    assert_eq!(
        broken("chunk 1 of 1   = acked  - waiting", 20),
        ["chunk 1 of 1   =", "acked  - waiting"]
    );
    assert_eq!(broken("", 20), [""]);
    assert_eq!(broken("ab c", 1), ["a", "b", "c"]);
}

#[test]
fn a_terminal_of_one_column_is_drawn_on() {
    for columns in 1..6 {
        let mut bar = Bar::new(Terminal::new(columns));
        bar.draw_now(&shown());
        bar.draw_now(&Shown { amount: "waiting".into(), ..Shown::default() });
        assert_eq!(bar.screen.rows.len(), 1, "{columns}");
        bar.clear();
        assert!(bar.screen.lines().is_empty());
    }
}

#[test]
fn without_an_end_it_turns() {
    let wait = Shown { amount: "no answer yet: 3 of 10 s".into(), ..Shown::default() };
    assert_eq!(line(&wait, 60, 0), "-  no answer yet: 3 of 10 s");
    assert_eq!(line(&wait, 60, 2), "\\  no answer yet: 3 of 10 s");
    assert_eq!(line(&wait, 12, 0), "-  no answer");
}
