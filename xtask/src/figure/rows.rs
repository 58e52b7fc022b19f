//! The runs as the lab writes them: a JSON array of objects, one for each join.
//!
//! What a row lacks is an error with its number, never a row that is silently left out of a figure.

use serde_json::Value;

/// One cold join.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    pub(super) peer: String,
    pub(super) profile: String,
    pub(super) bytes: u64,
    /// In milliseconds; infinite if the join failed.
    pub(super) total_ms: f64,
}

/// The rows of a file, in its order.
pub(super) fn read(text: &str) -> Result<Vec<Row>, String> {
    let rows: Vec<Value> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let numbered = (1..).zip(&rows);
    numbered
        .map(|(number, json)| row(json).map_err(|what| format!("row {number}: {what}")))
        .collect()
}

fn row(json: &Value) -> Result<Row, String> {
    let text = |key: &str| json[key].as_str().ok_or(format!("no text `{key}`"));
    let total_ms = match json["ok"].as_bool().ok_or("no truth value `ok`")? {
        true => json["total_ms"].as_f64().ok_or("no number `total_ms`")?,
        // It may hold a time all the same: that of giving up.
        false => f64::INFINITY,
    };
    Ok(Row {
        peer: text("peer")?.to_owned(),
        profile: text("profile")?.to_owned(),
        bytes: json["bytes"].as_u64().ok_or("no number `bytes`")?,
        total_ms,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_join_takes_for_ever_whatever_else_its_row_says() {
        let text = r#"[
            {"peer": "a", "profile": "wifi", "bytes": 262144, "seed": 1, "ok": true, "total_ms": 91.5},
            {"peer": "a", "profile": "wifi", "bytes": 262144, "seed": 2, "ok": false, "total_ms": 7,
             "error": "said \"}, no\"", "late_us": null}
        ]"#;
        let rows = read(text).unwrap();
        let times: Vec<f64> = rows.iter().map(|row| row.total_ms).collect();
        assert_eq!(times, [91.5, f64::INFINITY]);
        assert_eq!((rows[1].peer.as_str(), rows[1].bytes), ("a", 262_144));
    }

    #[test]
    fn what_is_missing_is_an_error_with_its_place() {
        let row = r#"{"peer": "a", "profile": "wifi", "bytes": 1, "ok": true}"#;
        assert_eq!(read(&format!("[{row}]")).unwrap_err(), "row 1: no number `total_ms`");
        assert!(read("[\n{\"peer\": \"a").unwrap_err().contains("line 2"));
    }
}
