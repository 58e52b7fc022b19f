//! Reading `/vectors`, for the tests of both wires.

use serde_json::Value;

/// One file of `/vectors`.
pub fn load(name: &str) -> Value {
    let path = format!("{}/../../vectors/{name}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The rows under `key`, which must be as many as the file's description says.
pub fn rows<'v>(file: &'v Value, key: &str, expected: usize) -> &'v [Value] {
    let rows = file[key].as_array().unwrap();
    assert_eq!(rows.len(), expected, "{key}");
    rows
}

pub fn int(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("{value} is no integer"))
}

pub fn size(value: &Value) -> usize {
    usize::try_from(int(value)).unwrap()
}

pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text"))
}

/// Bytes from hex digits.
pub fn unhex(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A number written as `"0x..."`, so that no JSON reader rounds it.
pub fn hex_number(value: &Value) -> u64 {
    u64::from_str_radix(text(value).trim_start_matches("0x"), 16).unwrap()
}
