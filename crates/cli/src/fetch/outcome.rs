//! How a fetch ended, in words and fields.

use std::time::Duration;

use haulier::file::Digest;
use haulier::{CloseCode, ErrorKind, WireBytes};
use haulier_files::Progress;
use haulier_files::listing::{self, Row};
use haulier_files::offer::{Content, Offer};
use haulier_files::reason::{
    ANOTHER_FILE, BAD_OFFER, INTERRUPTED, NO_SUCH_FILE, NOT_ADMITTED, NOT_UNDERSTOOD,
};
use haulier_shell::failure::Failure;
use haulier_shell::report::Pace;
use haulier_shell::units::{in_millis, show_bytes, show_words};
use serde_json::{Value, json};

use super::Fetch;
use crate::silence::Silence;

/// From here on it is said what crossed the wire: less is mostly what every connection costs.
const MIN_WIRE_BYTES: u64 = 1 << 20;

impl Fetch<'_> {
    /// All is here: the last line.
    pub(super) fn conclude(
        mut self,
        (connect, total): (Duration, Duration),
    ) -> Result<(), Failure> {
        let wire = self.client.wire_bytes();
        let rtt = in_millis(self.client.stats().and_then(|stats| stats.rtt).unwrap_or_default());
        let mut fields = json!({
            "ok": true,
            "connect_ms": in_millis(connect),
            "total_ms": in_millis(total),
            "rtt_ms": rtt,
            "wire_bytes_in": wire.received,
            "wire_bytes_out": wire.sent,
        });
        let Some(target) = self.target else {
            let (list, text) = self.list();
            fields["files"] = list;
            self.report.answer(fields, &text);
            return Ok(());
        };
        target.commit(self.report)?;
        let progress = self.taking.progress();
        fields["bytes"] = json!(progress.wanted_bytes);
        for (name, bytes) in shares(&progress) {
            fields[name] = json!(bytes);
        }
        let (where_to, digest) = target.describe(&self.taking, self.here, &mut fields);
        let (bytes, seconds) = (show_bytes(progress.wanted_bytes), total.as_secs_f64());
        let text = match self.is_all_here() {
            true => format!(
                "all is here already, {bytes}, verified in {seconds:.3} s: {where_to}{digest}"
            ),
            false => format!(
                "fetched {bytes} in {seconds:.3} s and verified: {where_to}{}{}{digest}",
                below(&show_shares(&progress)),
                below(&show_wire(wire, rtt)),
            ),
        };
        self.report.done(fields, &text);
        Ok(())
    }

    /// Whether each file that is wanted was here before.
    fn is_all_here(&self) -> bool {
        let offer = self.taking.offer();
        let is_file = |file: &u32| offer.entry(*file).is_some_and(|entry| !entry.is_directory());
        self.here > 0 && self.taking.wanted().filter(is_file).count() == self.here as usize
    }

    /// What there is, as fields and as a tree.
    fn list(&self) -> (Value, String) {
        let offer = self.taking.offer();
        let entries = offer.entries().iter().map(|entry| {
            let root = entry.root().map(|root| Digest::from_bytes(*root).to_hex().to_string());
            json!({
                "name": entry.path.as_str(),
                "bytes": entry.size(),
                "blake3": root,
                "mode": entry.size().map(|_| entry.mode.to_string()),
                "modified_ns": (entry.modified_ns != 0).then_some(entry.modified_ns),
            })
        });
        let lines = listing::rows(offer).into_iter().map(|row| show_row(&row));
        (entries.collect(), lines.collect::<Vec<_>>().join("\n"))
    }
}

fn show_row(row: &Row<'_>) -> String {
    let indent = "  ".repeat(row.depth);
    let slash = if row.file.is_none() { "/" } else { "" };
    format!("{:>10}  {indent}{}{slash}", show_bytes(row.bytes), show_words(row.name))
}

/// Where the bytes of files came from. Of the wire's it is what was in blocks of files.
fn shares(progress: &Progress) -> [(&'static str, u64); 6] {
    [
        ("here_bytes", progress.here_bytes),
        ("resumed_bytes", progress.resumed_bytes),
        ("copied_bytes", progress.copied_bytes),
        ("came_bytes", progress.wire_bytes),
        ("packed_bytes", progress.packed_bytes),
        ("saved_bytes", progress.saved_bytes),
    ]
}

/// What a line of progress has beside the bytes verified and wanted: when it was, in milliseconds since the
/// program began to fetch.
pub(super) fn progress_fields(
    progress: &Progress,
    has_pipe: bool,
    at: Duration,
    silence: &Silence,
) -> Value {
    let mut fields = json!({
        "ms": in_millis(at),
        "bytes": progress.verified_bytes,
        "unfinished_bytes": progress.unfinished_bytes,
        "files": progress.files_done,
        "bytes_per_second": progress.bytes_per_second,
        "remaining_s": remaining(progress, has_pipe).map(|left| left.as_secs_f64()),
    });
    silence.add_to(&mut fields);
    for (name, bytes) in shares(progress) {
        fields[name] = json!(bytes);
    }
    fields
}

/// What did not come over the wire now.
pub(crate) fn show_shares(progress: &Progress) -> String {
    let shares = [
        (progress.here_bytes, "were here"),
        (progress.resumed_bytes, "were here from before"),
        (progress.copied_bytes, "were copied from what is here"),
        (progress.saved_bytes, "were saved by packing"),
    ];
    let shown = shares.into_iter().filter(|(bytes, _)| *bytes > 0);
    shown
        .map(|(bytes, what)| format!("{} {what}", show_bytes(bytes)))
        .collect::<Vec<_>>()
        .join(", ")
}

/// A line below what was said, if there is one.
pub(crate) fn below(line: &str) -> String {
    if line.is_empty() { String::new() } else { format!("\n{line}") }
}

/// What a transfer cost. Of a small one most is the handshake and probes, which says nothing of the rest.
pub(crate) fn show_wire(wire: WireBytes, rtt_ms: f64) -> String {
    let bytes = wire.received + wire.sent;
    if bytes < MIN_WIRE_BYTES {
        return String::new();
    }
    let bytes = show_bytes(bytes);
    format!("{bytes} of datagrams crossed the wire both ways, with a round trip of {rtt_ms:.0} ms")
}

/// Whether an entry is a pipe, whose size is unknown.
pub(crate) fn has_pipe(offer: &Offer) -> bool {
    offer.entries().iter().any(|entry| entry.content == Content::Stream)
}

/// The number of bytes that have come, and the total; `None` for a total that is unknown because of a pipe.
pub(crate) fn share(progress: &Progress, has_pipe: bool) -> (u64, Option<u64>) {
    let through = progress.verified_bytes.saturating_add(progress.unfinished_bytes);
    (through, (!has_pipe).then_some(progress.wanted_bytes))
}

/// How long the rest takes; of a pipe that is not known.
fn remaining(progress: &Progress, has_pipe: bool) -> Option<Duration> {
    progress.remaining.filter(|_| !has_pipe)
}

/// How fast it goes, how long the rest will take, and where the bytes came from; or that nothing comes.
pub(crate) fn pace(progress: &Progress, has_pipe: bool, silence: &Silence) -> Pace {
    let no_answer = silence.in_words();
    let remaining = remaining(progress, has_pipe).filter(|_| no_answer.is_none());
    let rate = match progress.bytes_per_second {
        0 => String::new(),
        rate => format!("{}/s", show_bytes(rate)),
    };
    Pace {
        rate: no_answer.unwrap_or(rate),
        is_measured: true,
        remaining,
        more: show_shares(progress),
        above: String::new(),
    }
}

/// The machine ended the transfer: the server broke a rule, or serves something else.
pub(super) fn ended(code: CloseCode, reason: &str) -> Failure {
    Failure::Verification(match code {
        ANOTHER_FILE => {
            "the server's file is not the one of the ticket: their BLAKE3 differ; nothing was stored"
                .into()
        }
        BAD_OFFER => format!("the names of the server's files are not safe: {}", show_words(reason)),
        _ => format!(
            "the server answered something else ({}): is it `haulier serve`?",
            show_words(reason)
        ),
    })
}

/// What becomes of an unfinished file when a fetch ends early.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    /// It stays, and the same fetch goes on from there.
    Here,
    /// It was to be a stream, or only the list was asked for.
    Nothing,
}

impl Kept {
    /// Why to fetch again, at the end of a sentence that says so.
    pub(super) const fn as_reason(self) -> &'static str {
        match self {
            Self::Here => ": what is here is kept",
            Self::Nothing => "",
        }
    }

    /// What is kept, at the end of a sentence that does not say to fetch again.
    const fn as_addition(self) -> &'static str {
        match self {
            Self::Here => "; what has arrived is kept",
            Self::Nothing => "",
        }
    }
}

/// The connection was closed here, because of what came, or because too little came.
pub(super) fn broken(code: CloseCode, kept: Kept) -> Failure {
    let again = kept.as_reason();
    match code {
        // What a jump of this machine's clock looks like: the server is heard, and time has passed.
        CloseCode::NO_PROGRESS => Failure::late(format!(
            "nothing got through for too long, or the clock of this machine jumped; fetch again{again}"
        )),
        CloseCode::BLOCK_DAMAGED => Failure::Verification(
            "what arrived is not what the server announced: its BLAKE3 differs; nothing of it was stored"
                .into(),
        ),
        CloseCode::PROTOCOL | CloseCode::CREDIT | CloseCode::BLOCK_TOO_LARGE => {
            Failure::Verification(format!("the server broke the rules of the wire ({code})"))
        }
        _ => Failure::peer(
            ErrorKind::Lost,
            format!("the connection was closed here ({code}); fetch again{again}"),
        ),
    }
}

/// The server closed: what it means for the user.
pub(super) fn refused(code: CloseCode, reason: &str, name: &str, kept: Kept) -> Failure {
    let words = show_words(reason);
    let said = if words.is_empty() { String::new() } else { format!(" ({words})") };
    let kept = kept.as_addition();
    let text = match code {
        NO_SUCH_FILE if name.is_empty() => "there is no file there".into(),
        NO_SUCH_FILE => format!("there is no file {name:?} there; --list says which there are"),
        NOT_UNDERSTOOD => format!("the server does not understand the request{said}"),
        NOT_ADMITTED => format!("the server gives no files for this ticket{said}"),
        CloseCode::SHUTTING_DOWN | INTERRUPTED => {
            format!("the server was shut down before the file was here{kept}")
        }
        CloseCode::NO_PROGRESS | CloseCode::TIMED_OUT => {
            format!("the server gave up: nothing got through for too long{kept}")
        }
        _ => format!("the server closed the connection: {code}{said}"),
    };
    Failure::closed(code, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock that jumps by a day ends a transfer with "no progress" at this end.
    #[test]
    fn nothing_that_happens_here_is_blamed_on_the_server() {
        let failure = broken(CloseCode::NO_PROGRESS, Kept::Here);
        assert_eq!((failure.exit_code(), failure.kind()), (3, "timeout"));
        assert!(failure.to_string().ends_with("fetch again: what is here is kept"), "{failure}");
        for code in [CloseCode::RESOURCES, CloseCode::AEAD_LIMIT, CloseCode::TIMED_OUT] {
            assert_eq!(broken(code, Kept::Here).exit_code(), 3, "{code}");
        }
        for code in [CloseCode::PROTOCOL, CloseCode::CREDIT, CloseCode::BLOCK_DAMAGED] {
            assert_eq!(broken(code, Kept::Here).exit_code(), 4, "{code}");
        }
    }

    /// Of a stream nothing is kept, and nothing else is said.
    #[test]
    fn nobody_is_promised_what_is_not_kept() {
        let failures = |kept| {
            [
                broken(CloseCode::NO_PROGRESS, kept),
                broken(CloseCode::RESOURCES, kept),
                refused(CloseCode::SHUTTING_DOWN, "", "", kept),
                refused(CloseCode::NO_PROGRESS, "", "", kept),
            ]
        };
        for (here, nothing) in failures(Kept::Here).iter().zip(&failures(Kept::Nothing)) {
            assert!(here.to_string().contains("kept"), "{here}");
            assert!(!nothing.to_string().contains("kept"), "{nothing}");
        }
    }
}
