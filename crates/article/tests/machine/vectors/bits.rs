//! `bits.json`: sequences of primitives and their bytes. Every case is written, measured and read back
//! through one function, as a packet would be.

use haulier_article::bits::{Error, Measure, Reader, Result, Stream, Writer, bits_required};
use serde_json::Value;

use super::{hex, hex_number, int, load, rows, size, text, unhex};

/// A primitive with its value.
#[derive(Clone, Debug, PartialEq)]
enum Op {
    Bits(u32, u32),
    Int(i32, i32, i32),
    Bool(bool),
    Align,
    Bytes(Vec<u8>),
    Float(u32),
    Double(u64),
    Uint64(u64),
    String(String, i32),
    Check(String),
}

impl Op {
    fn parse(op: &Value) -> Self {
        let value = &op["value"];
        match text(&op["op"]) {
            "bits" => Self::Bits(
                u32::try_from(int(value)).unwrap(),
                u32::try_from(int(&op["bits"])).unwrap(),
            ),
            "int" => {
                let number = |key: &str| i32::try_from(int(&op[key])).unwrap();
                Self::Int(number("value"), number("min"), number("max"))
            }
            "bool" => Self::Bool(value.as_bool().unwrap()),
            "align" => Self::Align,
            "bytes" => Self::Bytes(unhex(text(&op["hex"]))),
            "float" => Self::Float(u32::try_from(hex_number(&op["bits"])).unwrap()),
            "double" => Self::Double(hex_number(&op["bits"])),
            "uint64" => Self::Uint64(hex_number(value)),
            "string" => {
                Self::String(text(value).into(), i32::try_from(int(&op["buffer_size"])).unwrap())
            }
            "check" => Self::Check(text(&op["string"]).into()),
            other => panic!("unknown op {other}"),
        }
    }

    /// The value to read into: anything but the answer.
    fn blank(&self) -> Self {
        match self {
            Self::Bits(_, width) => Self::Bits(0, *width),
            Self::Int(_, min, max) => Self::Int(*min, *min, *max),
            Self::Bool(_) => Self::Bool(false),
            Self::Float(_) => Self::Float(0),
            Self::Double(_) => Self::Double(0),
            Self::Uint64(_) => Self::Uint64(0),
            Self::Bytes(bytes) => Self::Bytes(vec![0; bytes.len()]),
            Self::String(_, buffer_size) => Self::String(String::new(), *buffer_size),
            other => other.clone(),
        }
    }

    /// Writes, reads or measures, and gives back what now holds.
    fn serialize<'a, S: Stream<'a>>(&'a self, stream: &mut S) -> Result<Self> {
        Ok(match self {
            Self::Bits(value, width) => Self::Bits(stream.bits(*value, *width)?, *width),
            Self::Int(value, min, max) => Self::Int(stream.int(*value, *min, *max)?, *min, *max),
            Self::Bool(value) => Self::Bool(stream.bool(*value)?),
            Self::Align => {
                stream.align()?;
                Self::Align
            }
            Self::Bytes(bytes) => Self::Bytes(stream.bytes(bytes, bytes.len())?.to_vec()),
            Self::Float(bits) => Self::Float(stream.float(f32::from_bits(*bits))?.to_bits()),
            Self::Double(bits) => Self::Double(stream.double(f64::from_bits(*bits))?.to_bits()),
            Self::Uint64(value) => Self::Uint64(stream.uint64(*value)?),
            Self::String(string, buffer_size) => {
                let read = stream.string(string.as_bytes(), *buffer_size)?;
                Self::String(String::from_utf8(read.to_vec()).unwrap(), *buffer_size)
            }
            Self::Check(string) => {
                stream.check(string)?;
                Self::Check(string.clone())
            }
        })
    }
}

#[test]
fn every_sequence_writes_measures_and_reads_the_golden_bytes() {
    for case in rows(&load("bits.json"), "cases", 86) {
        let name = text(&case["name"]);
        let ops: Vec<Op> = case["ops"].as_array().unwrap().iter().map(Op::parse).collect();

        let mut buffer = vec![0xee; size(&case["bytes"])];
        let mut writer = Writer::new(&mut buffer);
        let mut measure = Measure::new();
        for op in &ops {
            op.serialize(&mut writer).unwrap_or_else(|e| panic!("{name}: {e}"));
            op.serialize(&mut measure).unwrap();
        }
        assert_eq!(measure.bits(), size(&case["bits"]), "{name}: bits measured");
        assert_eq!(measure.bytes(), size(&case["bytes"]), "{name}: bytes measured");
        assert_eq!(writer.finish(), Ok(size(&case["bytes"])), "{name}: length");
        assert_eq!(hex(&buffer), text(&case["hex"]), "{name}: bytes");

        let blanks: Vec<Op> = ops.iter().map(Op::blank).collect();
        let mut reader = Reader::new(&buffer);
        for (op, blank) in ops.iter().zip(&blanks) {
            assert_eq!(blank.serialize(&mut reader), Ok(masked(op)), "{name}");
        }
        assert_eq!(reader.finish(), Ok(()), "{name}: end");
    }
}

/// Value bits above the width are dropped on the wire (STANDARD §2.2).
fn masked(op: &Op) -> Op {
    match *op {
        Op::Bits(value, width) if width < 32 => Op::Bits(value & ((1 << width) - 1), width),
        _ => op.clone(),
    }
}

#[test]
fn widths() {
    for row in rows(&load("bits.json"), "bits_required", 20) {
        let number = |key: &str| i32::try_from(int(&row[key])).unwrap();
        assert_eq!(
            bits_required(number("min"), number("max")) as usize,
            size(&row["bits"]),
            "{row}"
        );
    }
}

#[test]
fn every_prefix_of_every_sequence_ends_early_and_never_panics() {
    for case in rows(&load("bits.json"), "cases", 86) {
        let ops: Vec<Op> = case["ops"].as_array().unwrap().iter().map(Op::parse).collect();
        let blanks: Vec<Op> = ops.iter().map(Op::blank).collect();
        let bytes = unhex(text(&case["hex"]));
        for cut in 0..bytes.len() {
            let mut reader = Reader::new(&bytes[..cut]);
            let read = blanks.iter().try_for_each(|op| op.serialize(&mut reader).map(|_| ()));
            assert_eq!(read, Err(Error::EndOfBuffer), "{} cut to {cut}", case["name"]);

            let mut short = vec![0; cut];
            let mut writer = Writer::new(&mut short);
            let written = ops
                .iter()
                .try_for_each(|op| op.serialize(&mut writer).map(|_| ()))
                .and_then(|()| writer.finish().map(|_| ()));
            assert_eq!(written, Err(Error::EndOfBuffer), "{} into {cut}", case["name"]);
        }
    }
}

#[test]
fn a_number_outside_its_range_is_neither_written_nor_read() {
    let mut buffer = [0; 4];
    let mut writer = Writer::new(&mut buffer);
    assert_eq!(writer.int(257, 1, 256), Err(Error::OutOfRange));
    assert_eq!(writer.int(0, 1, 256), Err(Error::OutOfRange));
    assert_eq!(Reader::new(&[31]).int(-10, -10, 10), Err(Error::OutOfRange));
    assert_eq!(Reader::new(&[20]).int(-10, -10, 10), Ok(10));
}
