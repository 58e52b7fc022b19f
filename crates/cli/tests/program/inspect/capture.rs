//! `inspect --pcap`: captures of simulated and real joins, opened from end to end, and files of other kinds.
//! The parts are tested in `haulier-capture`; Wireshark beside it by `cargo xtask ci --only wireshark`.

use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};

use haulier_capture::CaptureWriter;
use haulier_capture::layers::UdpDatagram;
use serde_json::{Value, json};

use crate::scenes::capture_scene;
use crate::support::{Dir, Program, data, fetch, haulier, serve};

/// A capture of a simulated join, and its keys.
fn scene(dir: &Dir, query: &str, is_sealed: bool) -> (String, String) {
    let file = dir.path("scene.pcap");
    let keys = capture_scene(query, is_sealed, &file);
    (file, dir.file("scene.keys", keys.as_bytes()))
}

/// What is said of a capture: its datagrams, and the summary.
fn inspect(file: &str, options: &[&str]) -> (Vec<Value>, Value) {
    let run = haulier(&[&["inspect", "--json", "--pcap", file], options].concat());
    let done = run.done();
    let mut events = run.events();
    events.pop();
    (events, done)
}

/// A capture of these payloads, each from a port of its own.
fn capture(payloads: &[&[u8]]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut writer = CaptureWriter::new(&mut file).unwrap();
    for (number, payload) in (1..).zip(payloads) {
        let source: SocketAddr = ([192, 0, 2, 1], 10_000 + number).into();
        let destination = ([192, 0, 2, 2], 20_000).into();
        let (traffic_class, hops) = (2, 64);
        let datagram = UdpDatagram { source, destination, traffic_class, hops, payload };
        writer.write(u64::from(number) * 1_500_000, &datagram).unwrap();
    }
    file
}

/// Each datagram of both wires is printed, with the frames of mode `open`, and counted.
#[test]
fn a_join_of_each_wire_is_read() {
    let dir = Dir::new();
    let (file, _) = scene(&dir, "senders=haulier,article&bytes=64k&loss=5", false);
    let (said, done) = inspect(&file, &[]);
    let of = |packet: &str| said.iter().filter(|said| said["datagram"]["packet"] == packet).count();
    assert_eq!(of("request"), 4, "{done}");
    for kind in ["request", "response", "data", "slice", "ack"] {
        assert_eq!(done["kinds"][kind]["datagrams"], json!(of(kind)), "{kind}");
        assert!(of(kind) > 0, "{kind}");
    }
    assert_eq!(done["connections"], 1);
    // The request of the article's player is a datagram of the simulation, of neither wire.
    assert_eq!(
        said.len() as u64 + done["neither"]["datagrams"].as_u64().unwrap(),
        said.last().unwrap()["packet"].as_u64().unwrap()
    );
    let first = &said[0];
    assert_eq!((&first["after_ms"], &first["direction"]), (&json!(0.0), &json!("from client")));
    assert_eq!(
        (&first["source"], &first["destination"]),
        (&json!("10.0.0.2:4016"), &json!("10.0.0.1:4016"))
    );
    let frames = |said: &Value| said["datagram"]["frames"].as_array().cloned().unwrap_or_default();
    let has = |name: &str| said.iter().flat_map(frames).any(|frame| frame["frame"] == name);
    assert!(
        ["block", "slice", "last_slice", "repair_slice", "ack", "progress"].into_iter().all(has)
    );
    let text = haulier(&["inspect", "--pcap", &file]);
    assert!(text.text().contains("(from server)  response, "), "{}", text.what);
    assert!(
        text.text().ends_with("1 connections, by the ids of their clients\n2 of neither wire\n")
    );
}

/// What is captured is what `inspect HEX` says of the same bytes.
#[test]
fn a_datagram_of_a_capture_is_what_it_is_in_hex() {
    let dir = Dir::new();
    let file = dir.path("one.pcap");
    let slice =
        [0x75, 0xbe, 0x2b, 0x48, 0, 2, 10, 10, 12, 0, 0x68, 0x61, 0x75, 0x6c, 0x69, 0x65, 0x72];
    let slice = [&slice[..], &[0xe2, 0xac, 0x08, 0x99]].concat();
    std::fs::write(&file, capture(&[&slice])).unwrap();
    let (mut said, _) = inspect(&file, &[]);
    let hex: String = slice.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut alone = haulier(&["inspect", "--json", &hex]).events().remove(0);
    alone["wire"] = json!("article");
    assert_eq!(said.remove(0)["datagram"], alone);
}

/// Other protocols have first bytes like ours; they are counted and not taken for it.
#[test]
fn what_is_of_neither_wire_is_counted_and_shown_on_request() {
    let dir = Dir::new();
    let file = dir.path("foreign.pcap");
    let dns =
        b"\x04\xd2\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x07haulier\x03org\x00\x00\x01\x00\x01";
    let quic = [&[0xc3, 0, 0, 0, 1, 8][..], &[7; 1194]].concat();
    let like_data = [&[0x0c][..], &[9; 60]].concat();
    let like_reset = [&[0x08][..], &[9; 16]].concat();
    let payloads: [&[u8]; 6] = [dns, &quic, &[0x80; 172], &like_data, &like_reset, b""];
    std::fs::write(&file, capture(&payloads)).unwrap();
    let (said, done) = inspect(&file, &[]);
    assert_eq!((said.len(), &done["neither"]["datagrams"]), (0, &json!(6)));
    let (said, _) = inspect(&file, &["--all"]);
    assert_eq!(said.len(), 6);
    assert!(said.iter().all(|said| said["datagram"]["wire"].is_null()));
    // A user that gives a port thereby says that its datagrams are of this protocol.
    let (said, done) = inspect(&file, &["--port", "10004,10005"]);
    let kinds: Vec<_> = said.iter().map(|said| &said["datagram"]["packet"]).collect();
    assert_eq!(kinds, ["data", "reset"]);
    assert_eq!(done["neither"]["datagrams"], 0, "of another port nothing is counted");
}

#[test]
fn kinds_can_be_chosen() {
    let dir = Dir::new();
    let (file, _) = scene(&dir, "senders=haulier,article&bytes=32k", false);
    let (said, done) = inspect(&file, &["--only", "request,slice"]);
    assert!(!said.is_empty());
    assert!(said.iter().all(
        |said| said["datagram"]["packet"] == "request" || said["datagram"]["packet"] == "slice"
    ));
    assert!(done["kinds"]["data"]["datagrams"].as_u64() > Some(0), "the summary has all");
    let refused = haulier(&["inspect", "--pcap", &file, "--only", "frames"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("in_line"), "{}", refused.what);
}

/// A sealed connection without its keys, and with the key log of another one.
#[test]
fn what_is_sealed_is_told() {
    let dir = Dir::new();
    let (file, _) = scene(&dir, "senders=haulier&bytes=32k", true);
    let (said, done) = inspect(&file, &[]);
    assert!(said.iter().all(|said| said["datagram"]["frames"].is_null()));
    assert_eq!((&done["connections"], &done["no_key"]), (&json!(1), &json!(0)));
    let log = dir.path("keys");
    std::fs::write(&log, "# of nobody\n").unwrap();
    let (said, done) = inspect(&file, &["--keylog", &log]);
    assert!(said.iter().all(|said| said["datagram"]["key"] == "missing"));
    assert_eq!(done["no_key"].as_u64(), Some(said.len() as u64));
    let client = said[0]["datagram"]["from"].as_str().unwrap();
    let key = "00".repeat(32);
    std::fs::write(
        &log,
        format!(
            "HELLO {client} {key} 00\nWELCOME {client} {key} 00\nSERVER {client} {client} 1 {key}\n"
        ),
    )
    .unwrap();
    let (said, done) = inspect(&file, &["--keylog", &log]);
    assert_eq!(said[0]["datagram"]["key"], "wrong");
    assert!(done["wrong_key"].as_u64() > Some(0) && done["opened"] == 0, "{done}");
    std::fs::write(&log, "CLIENT_RANDOM 00 00\n").unwrap();
    let run = haulier(&["inspect", "--json", "--pcap", &file, "--keylog", &log]);
    assert!(run.error(2).contains("line 1 of the key log begins with none of HELLO"));
}

/// A pipe, and a file that somebody still writes.
#[test]
fn a_capture_comes_from_a_pipe_and_may_be_cut() {
    let dir = Dir::new();
    let (file, _) = scene(&dir, "senders=haulier&bytes=32k", false);
    let bytes = std::fs::read(&file).unwrap();
    let args = ["inspect", "--json", "--pcap", "-"];
    let piped = Program::start_with(&args, &bytes).finish();
    let (said, done) = inspect(&file, &[]);
    assert_eq!(piped.done(), done);
    let cut = Program::start_with(&args, &bytes[..bytes.len() - 1]).finish();
    assert_eq!(cut.done()["ok"], true);
    let events = cut.events();
    let warning = events.iter().find(|event| event["event"] == "warning").unwrap();
    assert!(
        warning["message"].as_str().unwrap().contains("in the middle of a packet"),
        "{warning}"
    );
    let datagrams = events.iter().filter(|event| event["event"] == "datagram").count();
    assert_eq!(datagrams, said.len() - 1);
}

#[test]
fn what_is_no_capture_is_refused() {
    let dir = Dir::new();
    let inspect = |bytes: &[u8]| {
        let file = dir.path("wrong.pcap");
        std::fs::write(&file, bytes).unwrap();
        haulier(&["inspect", "--json", "--pcap", &file])
    };
    assert!(inspect(b"").error(5).contains("no capture"));
    assert!(inspect(b"GIF89a and more than a header has").error(5).contains("no capture"));
    // A section of pcapng, and a block that is shorter than its own header.
    let order = 0x1a2b_3c4d_u32.to_le_bytes();
    let section =
        [&[10, 13, 13, 10, 28, 0, 0, 0][..], &order, &[1, 0, 0, 0], &[255; 8], &[28, 0, 0, 0]];
    let damaged = [&section.concat()[..], &[6, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0, 0], &[0; 40]].concat();
    assert!(inspect(&damaged).error(5).contains("a block is malformed"));
    let missing = haulier(&["inspect", "--json", "--pcap", &dir.path("none")]);
    assert!(missing.error(5).contains("no such file"));
    let both = haulier(&["inspect", "--pcap", "x", "00"]);
    assert_eq!(both.code, Some(2), "{}", both.what);
}

/// What is written is what was shown, and reads the same.
#[test]
fn what_is_shown_is_written() {
    let dir = Dir::new();
    let (file, _) = scene(&dir, "senders=haulier,article&bytes=32k&loss=2", false);
    let written = dir.path("written.pcap");
    let kinds = ["--only", "request,response,data,slice"];
    let (said, _) = inspect(&file, &[&kinds[..], &["--write", &written]].concat());
    let (again, _) = inspect(&written, &[]);
    let datagrams =
        |said: &[Value]| said.iter().map(|said| said["datagram"].clone()).collect::<Vec<_>>();
    assert_eq!(datagrams(&said), datagrams(&again));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(&written).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "as secret as the key log");
    }
}

/// What is opened of these datagrams, and the file that was written of it, which needs no keys any more.
fn open(file: &str, keys: &str, written: &str) -> (Vec<Value>, Value) {
    let (said, done) = inspect(file, &["--keylog", keys, "--write", written]);
    let (again, _) = inspect(written, &[]);
    assert_eq!(said.len(), again.len());
    for (sealed, open) in said.iter().zip(&again) {
        let (sealed, open) = (&sealed["datagram"], &open["datagram"]);
        for name in ["packet", "from", "to", "sender", "request", "versions", "idle_ms", "cookie"] {
            assert_eq!(sealed[name], open[name], "{name} of {sealed}");
        }
        // A short response of mode `open` is filled up with padding.
        let frames = |said: &Value| -> Vec<Value> {
            let frames = said["frames"].as_array().cloned().unwrap_or_default();
            frames.into_iter().filter(|frame| frame["frame"] != "padding").collect()
        };
        assert_eq!(frames(sealed), frames(open));
    }
    (said, done)
}

fn has_frame(said: &[Value], name: &str) -> bool {
    let frames = said.iter().filter_map(|said| said["datagram"]["frames"].as_array());
    frames.flatten().any(|frame| frame["frame"] == name)
}

/// In the simulator: all of a join with loss and repair is opened, with the keys of its client.
#[test]
fn a_simulated_join_is_opened() {
    let dir = Dir::new();
    let written = dir.path("open.pcap");
    let query = "senders=haulier,article&bytes=64k&loss=5&seed=3";
    let (file, keys) = scene(&dir, query, true);
    let (said, done) = open(&file, &keys, &written);
    let sealed: u64 = ["request", "response", "data"]
        .map(|kind| done["kinds"][kind]["datagrams"].as_u64().unwrap())
        .iter()
        .sum();
    assert_eq!((&done["opened"], &done["no_key"]), (&json!(sealed), &json!(0)));
    let request = &said[0]["datagram"];
    assert_eq!((&request["mode"], &request["key"]), (&json!("secret"), &json!("opened")));
    assert!(
        ["block", "last_slice", "repair_slice", "progress"]
            .iter()
            .all(|name| has_frame(&said, name))
    );
    // The keys of another run open nothing of this one, and say so.
    let elsewhere = Dir::new();
    let (other, _) = scene(&elsewhere, "senders=haulier&bytes=64k&seed=4", true);
    let (_, done) = inspect(&other, &["--keylog", &keys]);
    assert_eq!(done["opened"], 0);
}

/// Whether a datagram goes to the client, and its bytes.
type Tapped = (bool, Vec<u8>);

/// Records the datagrams between a client and a server on loopback, as a machine between them could.
struct Tap {
    front: Arc<UdpSocket>,
    seen: Arc<Mutex<Vec<Tapped>>>,
}

impl Tap {
    /// A tap at an address of its own: the server, which starts later, is given it as its own address.
    fn new() -> Self {
        let front = UdpSocket::bind("127.0.0.1:0").unwrap();
        Self { front: Arc::new(front), seen: Arc::default() }
    }

    fn address(&self) -> String {
        self.front.local_addr().unwrap().to_string()
    }

    /// Forwards in both directions until the test's program ends.
    fn forward(&self, server: &str) {
        let back = Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap());
        back.connect(server).unwrap();
        let client: Arc<Mutex<Option<SocketAddr>>> = Arc::default();
        for is_down in [false, true] {
            let (front, back) = (Arc::clone(&self.front), Arc::clone(&back));
            let (seen, client) = (Arc::clone(&self.seen), Arc::clone(&client));
            std::thread::spawn(move || {
                let mut buffer = vec![0; 65_536];
                loop {
                    // A server that is gone is an error of the socket, and no end of the tap.
                    let Ok((bytes, from)) =
                        (if is_down { &back } else { &front }).recv_from(&mut buffer)
                    else {
                        continue;
                    };
                    let datagram = &buffer[..bytes];
                    seen.lock().unwrap().push((is_down, datagram.to_vec()));
                    let mut client = client.lock().unwrap();
                    let _lost = match (is_down, *client) {
                        (false, _) => {
                            *client = Some(from);
                            back.send(datagram)
                        }
                        (true, Some(client)) => front.send_to(datagram, client),
                        (true, None) => continue,
                    };
                }
            });
        }
    }

    fn capture(&self) -> Vec<u8> {
        let mut file = Vec::new();
        let mut writer = CaptureWriter::new(&mut file).unwrap();
        let ends: [SocketAddr; 2] =
            ["192.0.2.1:4016", "192.0.2.2:50000"].map(|at| at.parse().unwrap());
        for (number, (is_down, payload)) in (1..).zip(&*self.seen.lock().unwrap()) {
            let [server, client] = ends;
            let (source, destination) = if *is_down { (server, client) } else { (client, server) };
            let (traffic_class, hops) = (0, 64);
            let datagram = UdpDatagram { source, destination, traffic_class, hops, payload };
            writer.write(number * 1000, &datagram).unwrap();
        }
        file
    }
}

/// Real `serve` and `fetch` over loopback sockets: the key log of either end opens every datagram.
#[test]
fn a_real_transfer_is_opened_with_the_keys_of_either_end() {
    let dir = Dir::new();
    let world = dir.file("world.bin", &data(200_000));
    let [here, there] = ["here.keys", "there.keys"].map(|name| dir.path(name));
    let tap = Tap::new();
    let serving = serve(&[&world, "--once", "--keylog", &here, "--address", &tap.address()]);
    tap.forward(&serving.addr);
    fetch(&[&serving.ticket, "-o", &dir.path("got"), "--keylog", &there]).done();
    serving.program.finish().done();
    let file = dir.file("tap.pcap", &tap.capture());
    let (sealed, without) = inspect(&file, &[]);
    assert!(!has_frame(&sealed, "block"));
    for keys in [here, there] {
        let (said, done) = open(&file, &keys, &dir.path("open.pcap"));
        assert_eq!(done["opened"], json!(said.len()), "{done}");
        assert_eq!((&done["kinds"], &done["connections"]), (&without["kinds"], &json!(1)));
        // "HLF2", get, all of it.
        assert!(
            said[0]["datagram"]["request"].as_str().unwrap().contains("484c4632"),
            "{}",
            said[0]
        );
        assert!(
            ["block", "slice", "message", "progress", "close"]
                .iter()
                .all(|name| has_frame(&said, name))
        );
    }
}
