//! The runs as the lab writes them: a JSON array of flat objects, one for each join.
//!
//! This is a reader of that form and no more, since the build tool uses the standard library only. What
//! it does not know is an error with its place, never a row that is silently left out of a figure.

use std::collections::BTreeMap;

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
    let mut input = Input { text, at: 0 };
    let mut rows = Vec::new();
    input.expect('[')?;
    if input.accept(']') {
        return Ok(rows);
    }
    loop {
        let object = input.object()?;
        rows.push(row(&object).map_err(|what| format!("row {}: {what}", rows.len() + 1))?);
        if input.accept(']') {
            return Ok(rows);
        }
        input.expect(',')?;
    }
}

fn row(object: &BTreeMap<String, Value>) -> Result<Row, String> {
    let text = |key: &str| match object.get(key) {
        Some(Value::Text(text)) => Ok(text.clone()),
        _ => Err(format!("no text `{key}`")),
    };
    let number = |key: &str| match object.get(key) {
        Some(Value::Number(number)) => Ok(*number),
        _ => Err(format!("no number `{key}`")),
    };
    let total_ms = match object.get("ok") {
        Some(Value::Bool(true)) => number("total_ms")?,
        // It may hold a time all the same: that of giving up.
        Some(Value::Bool(false)) => f64::INFINITY,
        _ => return Err("no truth value `ok`".to_owned()),
    };
    let bytes = number("bytes")? as u64;
    Ok(Row { peer: text("peer")?, profile: text("profile")?, bytes, total_ms })
}

/// The values that occur in a row.
enum Value {
    Text(String),
    Number(f64),
    Bool(bool),
    Null,
}

struct Input<'a> {
    text: &'a str,
    at: usize,
}

impl Input<'_> {
    fn rest(&mut self) -> &str {
        let rest = self.text[self.at..].trim_start();
        self.at = self.text.len() - rest.len();
        rest
    }

    fn accept(&mut self, token: char) -> bool {
        let is_next = self.rest().starts_with(token);
        self.at += if is_next { token.len_utf8() } else { 0 };
        is_next
    }

    fn expect(&mut self, token: char) -> Result<(), String> {
        if self.accept(token) { Ok(()) } else { Err(self.error(&format!("`{token}`"))) }
    }

    fn error(&self, wanted: &str) -> String {
        format!("line {}: expected {wanted}", self.text[..self.at].matches('\n').count() + 1)
    }

    fn object(&mut self) -> Result<BTreeMap<String, Value>, String> {
        let mut object = BTreeMap::new();
        self.expect('{')?;
        if self.accept('}') {
            return Ok(object);
        }
        loop {
            let key = self.string()?;
            self.expect(':')?;
            object.insert(key, self.value()?);
            if self.accept('}') {
                return Ok(object);
            }
            self.expect(',')?;
        }
    }

    fn value(&mut self) -> Result<Value, String> {
        if self.rest().starts_with('"') {
            return self.string().map(Value::Text);
        }
        let is_end = |c: char| c == ',' || c == '}' || c.is_whitespace();
        let word = self.rest().split(is_end).next().unwrap_or_default().to_owned();
        let value = match word.as_str() {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            "null" => Value::Null,
            // Rust would also read "inf" and "nan", which are no JSON and no time.
            number => match number.parse::<f64>() {
                Ok(number) if number.is_finite() => Value::Number(number),
                _ => return Err(self.error("a text, a number or a truth value")),
            },
        };
        self.at += word.len();
        Ok(value)
    }

    /// A string. An escape is kept as the letter behind its backslash: names have none, and the texts of
    /// errors, which have, are not shown.
    fn string(&mut self) -> Result<String, String> {
        self.expect('"')?;
        let mut string = String::new();
        let mut characters = self.text[self.at..].char_indices();
        while let Some((offset, character)) = characters.next() {
            match character {
                '"' => {
                    self.at += offset + 1;
                    return Ok(string);
                }
                '\\' => string.extend(characters.next().map(|(_, escaped)| escaped)),
                other => string.push(other),
            }
        }
        Err(self.error("the end of a text"))
    }
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
    fn what_is_missing_or_unknown_is_an_error_with_its_place() {
        let row = r#"{"peer": "a", "profile": "wifi", "bytes": 1, "ok": true}"#;
        assert_eq!(read(&format!("[{row}]")).unwrap_err(), "row 1: no number `total_ms`");
        let nested = "[\n{\"peer\": [1]}]";
        assert!(read(nested).unwrap_err().starts_with("line 2: expected"));
        assert!(read("[{\"peer\": \"a").is_err() && read("[{\"bytes\": NaN}]").is_err());
    }
}
