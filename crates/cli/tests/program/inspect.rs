//! `inspect`: the golden datagrams of `/vectors`, named or refused for the right reason. Those of chunks
//! and what all datagrams share are here, those of the packet layer in `packets`.

mod capture;
mod haulier1;
mod packets;

use serde_json::{Value, json};

use crate::support::haulier;

/// The rows of a file of `/vectors` that hold the whole datagram, with its hex.
fn rows(name: &str) -> Vec<(String, Value)> {
    let path = format!("{}/../../vectors/{name}", env!("CARGO_MANIFEST_DIR"));
    let file: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let rows = file["cases"].as_array().unwrap().iter();
    rows.filter_map(|row| Some((row["hex"].as_str()?.to_owned(), row.clone()))).collect()
}

/// What is said of these datagrams, all in one run.
fn inspect(rows: &[(String, Value)], options: &[&str]) -> Vec<Value> {
    let datagrams: Vec<&str> = rows.iter().map(|(hex, _)| &**hex).collect();
    let run = haulier(&[&["inspect", "--json"], options, &datagrams].concat());
    assert_eq!(run.code, Some(0), "{}", run.what);
    let said = run.events();
    assert_eq!(said.len(), rows.len());
    said
}

#[test]
fn golden_slices() {
    let rows = rows("slices.json");
    assert_eq!(rows.len(), 44);
    for (said, (_, row)) in inspect(&rows, &[]).iter().zip(&rows) {
        let expected = json!({
            "ok": true,
            "layer": "chunks",
            "packet": "slice",
            "chunk": row["chunk_id"],
            "slice": row["slice_id"],
            "slices": row["num_slices"],
            "bytes": row["slice_bytes"],
        });
        assert_eq!(*said, expected);
    }
}

#[test]
fn golden_acks() {
    let rows = rows("acks.json");
    assert_eq!(rows.len(), 120);
    for (said, (_, row)) in inspect(&rows, &[]).iter().zip(&rows) {
        let flags = row["acked"].as_str().unwrap().bytes().enumerate();
        let acked: Vec<usize> = flags.filter(|flag| flag.1 == b'1').map(|flag| flag.0).collect();
        let expected = json!({
            "ok": true,
            "layer": "chunks",
            "packet": "ack",
            "chunk": row["chunk_id"],
            "slices": row["num_slices"],
            "acked": acked,
        });
        assert_eq!(*said, expected);
    }
}

#[test]
fn malformed_datagrams() {
    let mut rows = rows("malformed.json");
    rows.retain(|(_, row)| row["layer"] == "chunk");
    assert_eq!(rows.len(), 64);
    for (said, (_, row)) in inspect(&rows, &[]).iter().zip(&rows) {
        let drop = said["drop"].as_str().unwrap_or_default();
        assert_eq!(*said, refused(drop, "chunks"), "{}", row["name"]);
        assert!(!drop.is_empty() && (row["reason"] == "any" || row["reason"] == drop), "{row}");
    }
}

/// The object of a refusal by this layer, unless the datagram did not get as far as a layer.
fn refused(drop: &str, layer: &str) -> Value {
    match drop {
        "bad_crc" => bad_crc(&["0x11223344", "0x55667788"]),
        "too_long" | "too_short" => json!({ "ok": false, "layer": null, "drop": drop }),
        _ => json!({ "ok": false, "layer": layer, "drop": drop }),
    }
}

fn bad_crc(tried: &[&str]) -> Value {
    json!({ "ok": false, "layer": null, "drop": "bad_crc", "tried": tried })
}

#[test]
fn an_empty_argument_is_an_empty_datagram() {
    let run = haulier(&["inspect", "--json", ""]);
    assert_eq!(run.text(), "{\"drop\":\"too_short\",\"layer\":null,\"ok\":false}\n");
    assert_eq!(run.code, Some(0));
}

#[test]
fn with_another_protocol_id_every_checksum_is_wrong() {
    for name in ["slices.json", "acks.json"] {
        for said in inspect(&rows(name), &["--protocol-id", "0x11223345"]) {
            assert_eq!(said, bad_crc(&["0x11223345"]));
        }
    }
    // The same id, in decimal.
    assert!(inspect(&rows("acks.json"), &["--protocol-id", "287454020"])[0]["ok"] == true);
}

#[test]
fn hex_may_be_written_as_dumps_are() {
    let plain = haulier(&["inspect", "--json", "75be2b4800020a0a0c006861756c696572e2ac0899"]);
    assert_eq!(plain.events()[0]["bytes"], 7);
    let dump = "75 be 2b 48  00 02 0a 0a 0c 00  68 61 75 6c 69 65 72  e2 ac 08 99";
    let colons = "75:BE:2B:48:00:02:0A:0A:0C:00:68:61:75:6C:69:65:72:E2:AC:08:99";
    for hex in [dump, colons] {
        assert_eq!(haulier(&["inspect", "--json", hex]).text(), plain.text());
    }
}

#[test]
fn what_is_not_hex_is_refused() {
    for hex in ["0", "xy", "0xzz", "é", "12-34", "1 2 3"] {
        let message = haulier(&["inspect", "--json", "00", hex]).error(2);
        assert!(message.contains("write hex digits"), "{message}");
        let text = haulier(&["inspect", hex]);
        assert_eq!((text.code, text.stdout.len()), (Some(2), 0), "{}", text.what);
        assert_eq!(text.stderr, format!("haulier: {message}\n"));
    }
}

/// The examples of STANDARD §4.3, and one that is cut.
#[test]
fn as_text_every_field_is_named() {
    let slice = "75be2b4800020a0a0c006861756c696572e2ac0899";
    let ack = "cc07468b01020a4ae2ac0899";
    let run = haulier(&["inspect", "--wire", "article", slice, ack, &slice[..20], ""]);
    assert_eq!(run.code, Some(0), "{}", run.what);
    let expected = "\
slice packet, 21 bytes
  crc      0x482bbe75, right for protocol id 0x11223344
  chunk    256
  slice    5 of 6
  data     7 bytes: 6861756c696572
ack packet, 12 bytes
  crc      0x8b4607cc, right for protocol id 0x11223344
  chunk    256
  acked    3 of 6: 101001
dropped, 10 bytes: bad_crc (corrupted, of another protocol, or its protocol id is neither 0x11223344 \
nor 0x55667788)
dropped, 0 bytes: too_short (0 bytes hold no checksum and no packet)
";
    assert_eq!(run.text(), expected);
}

/// A thousand bytes of data are not printed to a terminal.
#[test]
fn as_text_long_data_is_shortened() {
    let rows = rows("slices.json");
    let full = rows.iter().find(|(_, row)| row["slice_bytes"] == 1024).unwrap();
    let run = haulier(&["inspect", &full.0]);
    assert!(run.text().contains("data     1024 bytes: "), "{}", run.what);
    assert!(run.text().ends_with("...\n") && run.text().len() < 300, "{}", run.what);
}
