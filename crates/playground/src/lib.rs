//! The playground's engine for a page: scenes in, takes out (`docs/VIEWS.md`, "The playground").
//!
//! Built for `wasm32-unknown-unknown` by `cargo xtask playground`; what the page does with it is in `page/`.
//! The invariant: nothing is decided here. A run is that of [`haulier_lab::scenes`].

use std::time::Duration;

use haulier_lab::scenes::{LESSONS, Scene, Take, tables as measured};
use serde_json::json;
use wasm_bindgen::prelude::wasm_bindgen;

/// Numbers in a row of [`Play::rows`].
const COLUMNS: usize = 9;

/// A scene that was played.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Play {
    scene: Scene,
    takes: Vec<Take>,
}

#[wasm_bindgen]
impl Play {
    /// Plays the scene of this query.
    ///
    /// # Errors
    /// A sentence that names what is wrong in it.
    #[wasm_bindgen(constructor)]
    pub fn new(query: &str) -> Result<Self, String> {
        let scene = Scene::parse(query).map_err(|error| error.to_string())?;
        let takes = scene.play();
        Ok(Self { scene, takes })
    }

    /// The scene with all its values, as a query.
    pub fn scene(&self) -> String {
        self.scene.to_string()
    }

    /// The physical limit of a join, in ms.
    pub fn limit(&self) -> f64 {
        in_ms(self.scene.limit())
    }

    /// How many lanes there are.
    pub fn lanes(&self) -> usize {
        self.takes.len()
    }

    /// Who sends in a lane.
    pub fn sender(&self, lane: usize) -> String {
        self.takes[lane].sender.name().into()
    }

    /// When the client had the block, in ms; not a number if it never had.
    pub fn whole(&self, lane: usize) -> f64 {
        self.takes[lane].whole.map_or(f64::NAN, in_ms)
    }

    /// When the sender knew that, in ms; not a number if it never did.
    pub fn over(&self, lane: usize) -> f64 {
        self.takes[lane].over.map_or(f64::NAN, in_ms)
    }

    /// The hash of everything that happened, in hex.
    pub fn hash(&self, lane: usize) -> String {
        format!("{:016x}", self.takes[lane].hash)
    }

    /// The source slices of each chunk.
    pub fn slices(&self, lane: usize) -> Vec<u32> {
        self.takes[lane].slices.clone()
    }

    /// The datagrams of a lane, in the order of sending, nine numbers each: when it was sent and when it
    /// ended, in ms; what became of it and what it is, as their numbers; 1 for down; chunk; index; bytes; and
    /// how long it waited in the queue, in ms.
    pub fn rows(&self, lane: usize) -> Vec<f64> {
        let rows = &self.takes[lane].rows;
        let mut numbers = Vec::with_capacity(rows.len() * COLUMNS);
        for row in rows {
            numbers.extend([in_ms(row.sent), in_ms(row.ends)]);
            numbers
                .extend([row.outcome as u8, row.kind as u8, u8::from(row.is_down)].map(f64::from));
            numbers.extend([row.chunk, row.index, row.bytes].map(f64::from));
            numbers.push(in_ms(row.waited));
        }
        numbers
    }
}

/// The lessons, as JSON.
#[wasm_bindgen]
pub fn lessons() -> String {
    let lessons = LESSONS.iter().map(|lesson| {
        json!({
            "name": lesson.name,
            "title": lesson.title,
            "story": lesson.story,
            "scene": lesson.scene,
            "switched": lesson.switched.map(|(scene, _)| scene),
            "switch": lesson.switched.map(|(_, says)| says),
        })
    });
    serde_json::Value::Array(lessons.collect()).to_string()
}

/// The tables of the articles, measured here, as JSON.
#[wasm_bindgen]
pub fn tables() -> String {
    let tables = measured(1);
    let fragments = tables.fragments.iter().map(|(fragments, formula, lost)| {
        json!({ "fragments": fragments, "formula": formula, "measured": lost })
    });
    let budgets = tables.budgets.iter().map(|budget| {
        let took = budget.took.map(|took| took.as_secs_f64());
        json!({ "bps": budget.bps, "article_s": budget.article_s, "measured_s": took })
    });
    let (fragments, budgets): (Vec<_>, Vec<_>) = (fragments.collect(), budgets.collect());
    json!({ "fragments": fragments, "sends": tables.sends(), "budgets": budgets }).to_string()
}

fn in_ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_becomes_rows() {
        let play = Play::new("?senders=haulier,slow-start&seed=3").unwrap();
        assert_eq!((play.lanes(), play.sender(1)), (2, "slow-start".into()));
        let rows = play.rows(0);
        assert_eq!(rows.len() % COLUMNS, 0);
        assert!(rows.chunks(COLUMNS).all(|row| row[0] <= row[1] && row[7] > 28.0));
        assert!(play.whole(0) > play.limit() && play.over(0) >= play.whole(0));
        assert!(play.over(1).is_nan(), "the model of TCP has no end");
        assert!(play.slices(0)[0] > 100 && play.hash(0).len() == 16);
        assert_eq!(Play::new(&play.scene()).unwrap().hash(1), play.hash(1));
    }

    #[test]
    fn what_is_wrong_is_told() {
        assert!(Play::new("rate=fast").unwrap_err().contains("rate"));
    }

    #[test]
    fn lessons_and_tables_are_json() {
        let tables: serde_json::Value = serde_json::from_str(&tables()).unwrap();
        assert_eq!(tables["fragments"][4]["fragments"], 256);
        assert_eq!(tables["budgets"][2]["article_s"], 8);
        let lessons: serde_json::Value = serde_json::from_str(&lessons()).unwrap();
        assert_eq!(lessons[0]["name"], "slow-start");
    }
}
