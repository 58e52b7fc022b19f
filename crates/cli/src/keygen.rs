//! `haulier keygen`: 32 bytes fit for keys, as a line of text.

use haulier::{Identity, Secret};
use haulier_shell::failure::Failure;
use haulier_shell::report::Report;
use serde_json::json;

use crate::args::KeygenArgs;
use crate::keys::{self, Kind};

pub(crate) fn run(args: &KeygenArgs, report: &Report) -> Result<(), Failure> {
    let kind = match (args.token, args.identity) {
        (true, _) => Kind::Token,
        (_, true) => Kind::Identity,
        _ => Kind::Secret,
    };
    let file = Some(&*args.output).filter(|path| path.as_os_str() != "-");
    if report.is_json() && file.is_none() {
        // JSON is what gets logged.
        return Err(Failure::Usage("a key is not printed as JSON: say -o FILE".into()));
    }
    let key = new_secret()?;
    keys::write_private(file, &kind.to_text(key.as_bytes()))?;
    let file = file.map(|path| path.display().to_string());
    let mut fields = json!({ "ok": true, "kind": kind.name(), "file": file });
    let mut text = file.map_or(String::new(), |file| format!("a new {} key: {file}", kind.name()));
    if kind == Kind::Identity {
        let public = Kind::Public.to_text(&Identity::new(key).public());
        fields["public"] = json!(*public);
        text = format!("{text}\n{}", *public).trim_start().into();
    }
    report.done(fields, &text);
    Ok(())
}

/// 32 bytes from the system's generator.
pub(crate) fn new_secret() -> Result<Secret, Failure> {
    haulier::random_secret().map_err(|error| Failure::Io(format!("no random bytes: {error}")))
}
