//! The golden bytes of STANDARD-1, section 8, which a second program made from that page alone: each is
//! read, and written again; broken ones are refused.

use bytes::Bytes;
use haulier_files::messages::{Form, Message, Request};
use haulier_files::offer::{Content, Entry, Offer};
use haulier_files::{BlockTag, Mode, Ranges};
use serde_json::Value;

fn load(part: &str) -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/haulier1.json");
    let file: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let rows = file[part].as_array().unwrap().clone();
    assert!(!rows.is_empty(), "{part}");
    rows
}

fn bytes(value: &Value) -> Vec<u8> {
    let hex = value.as_str().unwrap().as_bytes();
    hex.chunks(2)
        .map(|it| u8::from_str_radix(std::str::from_utf8(it).unwrap(), 16).unwrap())
        .collect()
}

fn root(value: &Value) -> [u8; 32] {
    bytes(value).try_into().unwrap()
}

/// A number, or `0x` and 16 digits.
fn number(value: &Value) -> u64 {
    let wide = value.as_str().map(|text| u64::from_str_radix(text.strip_prefix("0x").unwrap(), 16));
    wide.map_or_else(|| value.as_u64().unwrap(), Result::unwrap)
}

fn small(value: &Value) -> u32 {
    number(value).try_into().unwrap()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

#[test]
fn requests() {
    for row in load("file_requests") {
        let (name, accepts_packed) = (text(&row["name"]), row["accepts_packed"].as_bool().unwrap());
        let request = match row["verb"].as_str() {
            Some("get") => Request::Get { name, accepts_packed },
            Some("open") => Request::Open { name, accepts_packed },
            _ => Request::Put,
        };
        assert_eq!(request.to_bytes(), bytes(&row["hex"]), "{row}");
        assert_eq!(Request::read(&bytes(&row["hex"])), Ok(request), "{row}");
    }
}

/// They are read in their order, which need not be the one that a giver makes.
#[test]
fn offers() {
    for row in load("offers") {
        let hex = bytes(&row["hex"]);
        let offer = Offer::read(&hex).unwrap_or_else(|error| panic!("{error}: {row}"));
        assert_eq!(offer.to_bytes(), hex, "{row}");
        let entries = row["entries"].as_array().unwrap();
        assert_eq!(offer.entries().len(), entries.len());
        for (read, entry) in offer.entries().iter().zip(entries) {
            assert_eq!(read, &entry_of(entry), "{row}");
        }
    }
}

fn entry_of(entry: &Value) -> Entry {
    let content = match number(&entry["kind"]) {
        0 => Content::Directory,
        1 => Content::Known { size: number(&entry["size"]), root: root(&entry["root"]) },
        2 => Content::Sized(number(&entry["size"])),
        _ => Content::Stream,
    };
    Entry {
        path: haulier_files::names::SafePath::new(entry["path"].as_str().unwrap()).unwrap(),
        content,
        mode: Mode::of_unix(u32::from_str_radix(entry["mode"].as_str().unwrap(), 8).unwrap()),
        modified_ns: entry["modified_ns"].as_str().unwrap().parse().unwrap(),
    }
}

#[test]
fn tags() {
    for row in load("file_tags") {
        let (file, want, offset) =
            (small(&row["file"]), small(&row["want"]), number(&row["offset"]));
        let tag = match row["kind"].as_str().unwrap() {
            "offer" => BlockTag::Offer,
            "whole" => BlockTag::Whole { file, want },
            "part" => BlockTag::Part { file, want, offset },
            "packed" => BlockTag::Packed { file, want, offset },
            "recipe" => BlockTag::Recipe { file, want },
            _ => BlockTag::Pieces { file, want },
        };
        let bits = number(&row["tag"]);
        assert_eq!((tag.to_u64(), BlockTag::from_u64(bits)), (bits, Some(tag)), "{row}");
    }
}

#[test]
fn messages() {
    for row in load("file_messages") {
        let hex = Bytes::from(bytes(&row["hex"]));
        let message = Message::read(&hex).unwrap_or_else(|error| panic!("{error}: {row}"));
        assert_eq!(message.to_bytes(), hex, "{row}");
        compare(&message, &row["message"]);
    }
}

fn compare(message: &Message, row: &Value) {
    let kind = row["kind"].as_str().unwrap();
    match message {
        Message::Offer(list) => assert_eq!((kind, &list[..]), ("offer", &bytes(&row["list"])[..])),
        Message::Go { accepts_packed } => {
            assert_eq!((kind, Some(*accepts_packed)), ("go", row["accepts_packed"].as_bool()));
        }
        Message::Want(want) => {
            let numbers = (small(&row["number"]), small(&row["file"]));
            assert_eq!((kind, want.number, want.file), ("want", numbers.0, numbers.1));
            let pair = |it: &Value| number(&it[0])..number(&it[1]);
            let ranges: Ranges = row["ranges"].as_array().unwrap().iter().map(pair).collect();
            let form = match row["form"].as_str().unwrap() {
                "any" => Form::Any(ranges),
                "whole" => Form::Whole,
                "recipe" => Form::Recipe,
                _ => Form::Pieces(ranges),
            };
            assert_eq!(want.form, form, "{row}");
        }
        Message::End { file, length, root: of } => {
            assert_eq!(
                (kind, *file, *length),
                ("end", small(&row["file"]), number(&row["length"]))
            );
            assert_eq!(*of, root(&row["root"]));
        }
        Message::Stored { file } => assert_eq!((kind, *file), ("stored", small(&row["file"]))),
        Message::Refused { file, fault } | Message::Failed { file, fault } => {
            let is_kind = matches!(message, Message::Refused { .. }) == (kind == "refused");
            assert!(is_kind && *file == small(&row["file"]), "{row}");
            assert_eq!(
                (fault.reason as u64, &fault.text),
                (number(&row["reason"]), &text(&row["text"]))
            );
        }
        _ => assert_eq!(kind, "done"),
    }
}

#[test]
fn broken_ones_are_refused() {
    for row in load("broken_files") {
        let hex = bytes(&row["hex"]);
        let is_read = match row["in"].as_str().unwrap() {
            "request" => Request::read(&hex).is_ok(),
            "offer" => Offer::read(&hex).is_ok(),
            _ => Message::read(&hex.into()).is_ok(),
        };
        assert!(!is_read, "{row}");
    }
}
