//! Only what is missing: files that are here, that were begun, and of which an older version is here; and
//! directories of them. What crosses the wire is counted.

use crate::support::{Dir, Program, blake3_hex, data, fetch, haulier, serve, silent};

/// Other bytes than those of `data`.
fn other(len: usize) -> Vec<u8> {
    data(len).into_iter().map(|byte| byte.wrapping_add(1)).collect()
}

fn number(event: &serde_json::Value, key: &str) -> u64 {
    event[key].as_u64().unwrap_or_else(|| panic!("no {key} in {event}"))
}

/// Without --force the answer would tell the server that the file is here.
#[test]
fn what_is_here_already_costs_no_data() {
    let dir = Dir::new();
    let serving = serve(&[&dir.file("world.bin", &data(5_000_000))]);
    let (out, inbox) = (dir.file("out", &data(5_000_000)), dir.dir("inbox"));
    dir.file("inbox/world.bin", &data(5_000_000));
    for to in [&out, &inbox] {
        let message = fetch(&[&serving.ticket, "-o", to]).error(5);
        assert!(message.contains("use --force to compare it"), "{message}");
        let done = fetch(&[&serving.ticket, "-o", to, "--force"]).done();
        assert_eq!((number(&done, "bytes"), number(&done, "here_bytes")), (5_000_000, 5_000_000));
        assert!(number(&done, "wire_bytes_in") < 20_000, "{done}");
    }
    assert_eq!(dir.names("inbox"), ["world.bin"]);
}

/// The first process gets no chance to tidy up; the second asks for what is missing.
#[cfg(unix)]
#[test]
fn a_fetch_that_is_killed_goes_on_where_it_was() {
    let (dir, content) = (Dir::new(), data(20_000_000));
    let serving = serve(&[&dir.file("in", &content), "--rate", "40M"]);
    let out = dir.path("out");
    let first = Program::start(&["fetch", "--json", &serving.ticket, "-o", &out]);
    first.event_where("progress", |event| event["bytes"].as_u64() > Some(8_000_000));
    first.signal("KILL");
    drop(first);
    assert!(!std::fs::exists(&out).unwrap());
    let done = fetch(&[&serving.ticket, "-o", &out]).done();
    let (resumed, wire) = (number(&done, "resumed_bytes"), number(&done, "wire_bytes_in"));
    println!("{resumed} bytes resumed, {wire} over the wire");
    assert!(resumed > 5_000_000 && wire < 20_000_000 - resumed + 1_500_000, "{done}");
    assert!(dir.read("out") == content);
    assert_eq!(dir.names(""), ["in", "out"]);
}

/// The client of a server that was killed waited for it for a minute, although it was back within seconds.
/// Now the new server reports that it does not know the connection, and the client joins it and continues.
#[cfg(unix)]
#[test]
fn a_server_that_is_killed_and_is_back_is_gone_on_with() {
    let (dir, content) = (Dir::new(), data(20_000_000));
    let (file, secret, out) = (dir.file("in", &content), dir.path("secret"), dir.path("out"));
    haulier(&["keygen", "--secret", "-o", &secret]);
    let (socket, addr) = silent();
    drop(socket);
    let args = ["--bind", &addr, "--secret-file", &secret, "--rate", "40M"];
    let serve = || Program::start(&[&["serve", "--json", &file], &args[..]].concat());
    let first = serve();
    let ticket = first.event("listening")["ticket"].as_str().unwrap().to_owned();
    let fetching = Program::start(&["fetch", "--json", &ticket, "-o", &out, "--timeout", "120"]);
    fetching.event_where("progress", |event| event["bytes"].as_u64() > Some(8_000_000));
    first.signal("KILL");
    drop(first);
    let _second = serve();
    fetching.event("again");
    let done = fetching.finish().done();
    assert!(number(&done, "resumed_bytes") > 3_000_000, "{done}");
    assert!(dir.read("out") == content);
    assert_eq!(dir.names(""), ["in", "out", "secret", "secret.reset"]);
}

/// The lines of progress are for people and for programs that show them: where the bytes came from, how fast,
/// how long it will take; and no more of them than can be read.
#[cfg(unix)]
#[test]
fn progress_is_four_lines_a_second_and_says_where_the_bytes_came_from() {
    let (dir, content) = (Dir::new(), data(12_000_000));
    let serving = serve(&[&dir.file("in", &content), "--rate", "24M"]);
    let out = dir.path("out");
    let first = Program::start(&["fetch", "--json", &serving.ticket, "-o", &out]);
    first.event_where("progress", |event| event["bytes"].as_u64() > Some(6_000_000));
    first.signal("KILL");
    drop(first);
    let run = fetch(&[&serving.ticket, "-o", &out]);
    let lines: Vec<_> = run.events().into_iter().filter(|it| it["event"] == "progress").collect();
    let ms = |at: &serde_json::Value| at["ms"].as_f64().unwrap();
    let seconds = (ms(lines.last().unwrap()) - ms(&lines[0])) / 1000.0;
    println!("{} lines in {seconds} s", lines.len());
    assert!(lines.len() as f64 <= 4.0 * seconds + 2.0, "{lines:?}");
    for line in &lines {
        let (here, came) = (number(line, "resumed_bytes"), number(line, "came_bytes"));
        assert!(number(line, "bytes") <= here + came && number(line, "total") == 12_000_000);
        // Resumed bytes do not count for the rate: 24 Mbit/s are 3 MB/s, and a bunch may be early.
        assert!(number(line, "bytes_per_second") < 5_000_000, "{line}");
        assert!(
            line["remaining_s"].is_null() || line["remaining_s"].as_f64() < Some(30.0),
            "{line}"
        );
    }
    let done = run.done();
    let came = number(&done, "came_bytes") + number(&done, "resumed_bytes");
    assert!((12_000_000..13_500_000).contains(&came), "{done}");
    assert_eq!((number(&done, "packed_bytes"), number(&done, "saved_bytes")), (0, 0));
}

/// Text, which shrinks, killed in the middle: the packed parts that were written count, the rest comes, and
/// `--pack never` sends all of it as it is.
#[cfg(unix)]
#[test]
fn what_came_packed_is_kept_and_the_rest_comes_packed() {
    let text = || {
        (0_u64..).flat_map(|n| {
            format!("{:x}\n", n.wrapping_mul(n).wrapping_mul(2_654_435_761)).into_bytes()
        })
    };
    let (dir, content) = (Dir::new(), text().take(12_000_000).collect::<Vec<u8>>());
    let serving = serve(&[&dir.file("in", &content), "--rate", "16M"]);
    let out = dir.path("out");
    let first = Program::start(&["fetch", "--json", &serving.ticket, "-o", &out]);
    first.event_where("progress", |event| event["bytes"].as_u64() > Some(4_000_000));
    first.signal("KILL");
    drop(first);
    let done = fetch(&[&serving.ticket, "-o", &out]).done();
    println!("{done}");
    let (resumed, packed) = (number(&done, "resumed_bytes"), number(&done, "packed_bytes"));
    assert!(resumed > 2_000_000 && packed > 1_000_000, "{done}");
    // What is not here of a part comes with all of it.
    assert!((12_000_000..14_100_000).contains(&(resumed + packed)), "{done}");
    let saved = number(&done, "saved_bytes");
    assert_eq!(packed - saved, number(&done, "came_bytes"), "{done}");
    assert!(saved > packed / 10 && dir.read("out") == content);
    let plain = dir.path("plain");
    let done = fetch(&[&serving.ticket, "-o", &plain, "--pack", "never"]).done();
    assert_eq!(number(&done, "packed_bytes"), 0, "{done}");
    assert!(dir.read("plain") == content);
}

#[test]
fn of_an_older_version_only_what_changed_crosses_the_wire() {
    let (dir, mut content) = (Dir::new(), data(8_000_000));
    let out = dir.file("out", &content);
    content.splice(3_000_000..3_010_000, *b"an insertion");
    let serving = serve(&[&dir.file("in", &content)]);
    assert!(fetch(&[&serving.ticket, "-o", &out]).error(5).contains("--force"));
    let done = fetch(&[&serving.ticket, "-o", &out, "--force"]).done();
    println!("{} bytes over the wire", number(&done, "wire_bytes_in"));
    assert!(number(&done, "copied_bytes") > 7_000_000, "{done}");
    assert!(number(&done, "wire_bytes_in") < 1_000_000, "{done}");
    assert!(dir.read("out") == content);
    assert_eq!(dir.names(""), ["in", "out"]);
}

/// A server's directory of 20 files, one of them empty, two alike, and a directory with nothing in it.
fn maps(dir: &Dir) -> String {
    let maps = dir.dir("maps");
    for inner in ["maps/a", "maps/a/deep", "maps/empty"] {
        dir.dir(inner);
    }
    for n in 0..18_usize {
        let folder = ["maps", "maps/a", "maps/a/deep"][n % 3];
        dir.file(&format!("{folder}/{n}.map"), &data(n * 20_000));
    }
    dir.file("maps/a/large.bin", &other(3_000_000));
    dir.file("maps/same.bin", &other(3_000_000));
    maps
}

#[test]
fn a_directory_is_fetched_with_all_that_is_in_it() {
    let dir = Dir::new();
    let serving = serve(&[&maps(&dir)]);
    let inbox = dir.dir("inbox");
    let done = fetch(&[&serving.ticket, "-o", &inbox]).done();
    // The empty directory is not one of them.
    assert_eq!((number(&done, "files"), number(&done, "files_here")), (20, 0), "{done}");
    for n in 0..18_usize {
        let folder = ["maps", "maps/a", "maps/a/deep"][n % 3];
        assert!(dir.read(&format!("inbox/{folder}/{n}.map")) == data(n * 20_000), "{n}");
    }
    assert_eq!(dir.names("inbox/maps"), dir.names("maps"));
    assert!(dir.read("inbox/maps/same.bin") == other(3_000_000));
    assert!(dir.read("inbox/maps/a/large.bin") == other(3_000_000));
    // Two are alike, and come once; and all of it again costs the list.
    assert!(number(&done, "copied_bytes") == 3_000_000, "{done}");
    let again = fetch(&[&serving.ticket, "-o", &inbox]).done();
    assert!(number(&again, "wire_bytes_in") < 40_000, "{again}");
    assert_eq!(number(&again, "files_here"), 20, "{again}");
}

/// A server chooses names and contents, and learned from the answers what is in the directory of a client. So
/// files of several names go where no others are, and a file that nobody fetched is not compared.
#[test]
fn several_files_go_where_no_others_are() {
    let dir = Dir::new();
    let serving = serve(&[&maps(&dir)]);
    for inner in ["own", "own/maps"] {
        dir.dir(inner);
    }
    dir.file("own/maps/own.map", b"mine");
    let own = dir.path("own");
    for _ in 0..2 {
        let done = fetch(&[&serving.ticket, "-o", &own]).done();
        assert!(done["folder"].as_str().unwrap().ends_with("/own/maps (2)"), "{done}");
        assert_eq!(dir.names("own/maps (2)/maps"), dir.names("maps"));
    }
    assert_eq!(
        (dir.names("own"), dir.names("own/maps")),
        (vec!["maps".into(), "maps (2)".into()], vec!["own.map".into()])
    );
    // With leave they go beside it, and what is the same does not come.
    let done = fetch(&[&serving.ticket, "-o", &own, "--force"]).done();
    assert!(done["folder"].as_str().unwrap().ends_with("/own"), "{done}");
    assert!(dir.read("own/maps/own.map") == b"mine" && dir.names("own/maps").len() > 8);
}

/// What the first of two fetches had stored when it was killed is no file of others.
#[cfg(unix)]
#[test]
fn of_a_directory_the_rest_comes_after_a_kill() {
    let dir = Dir::new();
    let maps = dir.dir("maps");
    for n in 0..12 {
        dir.file(&format!("maps/{n}.map"), &other(1_200_000 + n));
    }
    let serving = serve(&[&*maps, "--rate", "24M"]);
    let out = dir.dir("out");
    let first = Program::start(&["fetch", "--json", &serving.ticket, "-o", &out]);
    first.event_where("progress", |event| event["files"].as_u64() > Some(3));
    first.signal("KILL");
    drop(first);
    let done = fetch(&[&serving.ticket, "-o", &out]).done();
    assert!(number(&done, "files_here") > 2, "{done}");
    for n in 0..12 {
        assert!(dir.read(&format!("out/maps/{n}.map")) == other(1_200_000 + n), "{n}");
    }
    assert_eq!((dir.names("out"), dir.names("out/maps").len()), (vec!["maps".into()], 12));
}

#[test]
fn of_a_directory_a_part_can_be_fetched_and_listed() {
    let dir = Dir::new();
    let serving = serve(&[&maps(&dir)]);
    let (only, inner) = (dir.dir("only"), dir.dir("inner"));
    let done = fetch(&[&serving.ticket, "-o", &only, "--only", "maps/a/*.map"]).done();
    assert_eq!(number(&done, "files"), 6, "{done}");
    assert_eq!(dir.names("only/maps"), ["a"]);
    assert_eq!(dir.names("only/maps/a").len(), 6);
    fetch(&[&serving.ticket, "maps/a/deep", "-o", &inner]).done();
    assert_eq!(dir.names("inner/maps/a"), ["deep"]);
    let none = fetch(&[&serving.ticket, "-o", &only, "--only", "*.zip"]).error_of(2, "usage");
    assert!(none.contains("--only"), "{none}");
    let list = haulier(&["fetch", &serving.ticket, "--list"]);
    assert!(list.text().contains("  maps/\n"), "{}", list.what);
    assert!(list.text().contains("    deep/\n"), "{}", list.what);
    assert!(list.text().contains(" KiB        17.map\n"), "{}", list.what);
}

/// A file that changes while it is served is not what was offered: nothing of it gets the name. The ticket
/// says which file it is for, so that it is not fetched as it is now.
#[test]
fn a_file_that_changes_while_it_is_served_is_said() {
    let dir = Dir::new();
    let file = dir.file("in", &data(8_000_000));
    let serving = serve(&[&file, "--rate", "4M"]);
    let out = dir.path("out");
    let fetch = Program::start(&["fetch", "--json", &serving.ticket, "-o", &out]);
    fetch.event_where("progress", |event| event["bytes"].as_u64() > Some(0));
    std::fs::write(&file, other(7_000_000)).unwrap();
    let message = fetch.finish().error(5);
    assert!(message.contains("changed while it was read"), "{message}");
    assert!(!std::fs::exists(&out).unwrap());
}

/// One that is replaced by a rename is served on as it was.
#[test]
fn a_file_that_is_replaced_is_served_as_it_was() {
    let dir = Dir::new();
    let file = dir.file("in", &data(2_000_000));
    let serving = serve(&[&file]);
    std::fs::rename(dir.file("new", b"new"), &file).unwrap();
    let done = fetch(&[&serving.ticket, "-o", &dir.path("out")]).done();
    assert_eq!(done["blake3"], blake3_hex(&data(2_000_000)));
}

/// What was hashed when the program started is not there any more. It ended this fetch, and each one after
/// it.
#[test]
fn a_file_that_is_edited_in_place_is_fetched_as_it_is_now() {
    use std::io::Write as _;
    let dir = Dir::new();
    let (maps, out) = (dir.dir("maps"), dir.dir("out"));
    // Of a single file the ticket says the BLAKE3.
    dir.file("maps/another", b"another");
    let file = dir.file("maps/in", &data(2_000_000));
    let serving = serve(&[&maps]);
    let mut edited = std::fs::File::options().write(true).open(&file).unwrap();
    edited.write_all(b"edited").unwrap();
    fetch(&[&serving.ticket, "-o", &out]).done();
    assert!(dir.read("out/maps/in") == [b"edited", &data(2_000_000)[6..]].concat());
}

/// Nobody listens there: if it were asked first, that would be the error. Root writes everywhere.
#[cfg(unix)]
#[test]
fn what_cannot_be_written_is_said_before_anything_is_asked() {
    let dir = Dir::new();
    let inbox = dir.dir("inbox");
    dir.set_mode("inbox", 0o555);
    if std::fs::write(dir.path("inbox/x"), b"x").is_ok() {
        eprintln!("skipped: this user writes everywhere");
        return;
    }
    let message = fetch(&["127.0.0.1:9", "--open", "-o", &inbox]).error(5);
    assert!(message.contains("no file can be made in"), "{message}");
    dir.set_mode("inbox", 0o755);
}

/// A file that is hashed only as it is sent goes in parts, each of which is verified, and is resumed too.
#[test]
fn a_file_that_nobody_has_hashed_arrives() {
    let dir = Dir::new();
    // A hole: nothing of it is on the disk.
    let file = dir.path("in");
    let bytes = (65 << 20) + 7;
    std::fs::File::create(&file).unwrap().set_len(bytes).unwrap();
    let serving = serve(&[&file]);
    let done = fetch(&[&serving.ticket, "-o", &dir.path("out")]).done();
    assert_eq!(number(&done, "bytes"), bytes);
    let zeros = blake3::Hasher::new().update(&vec![0; usize::try_from(bytes).unwrap()]).finalize();
    assert_eq!(done["blake3"], zeros.to_hex().as_str());
    assert_eq!(dir.names(""), [".in.haulier-tree", "in", "out"]);
}

/// Its length is known at its end; it takes its time, and waits for its client.
#[cfg(unix)]
#[test]
fn a_pipe_goes_to_the_first_client() {
    use std::io::Write as _;
    let (dir, content) = (Dir::new(), data(1_500_000));
    let args = ["serve", "--json", "--bind", "127.0.0.1:0", "-"];
    let (serving, mut stdin) = Program::start_piped(&args);
    let ticket = serving.event("listening")["ticket"].as_str().unwrap().to_owned();
    let out = dir.path("out");
    let first = Program::start(&["fetch", "--json", &ticket, "-o", &out, "--timeout", "1"]);
    serving.event("connected");
    stdin.write_all(&content[..1_200_000]).unwrap();
    first.event_where("progress", |event| event["bytes"].as_u64() > Some(0));
    // The rest of it is not there yet, and this one is too late for any of it.
    let second = fetch(&[&ticket, "-o", &dir.path("second")]).error(5);
    assert!(second.contains("a pipe is served once"), "{second}");
    stdin.write_all(&content[1_200_000..]).unwrap();
    drop(stdin);
    let done = first.finish().done();
    assert_eq!(
        (number(&done, "bytes"), &done["blake3"]),
        (1_500_000, &blake3_hex(&content).into())
    );
    assert!(dir.read("out") == content);
}
