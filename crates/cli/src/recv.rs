//! `haulier recv`: waits for files that others send, verifies them, stores them. A server with an inbox and
//! nothing else.

use haulier::Urgency;
use haulier_files::InboxQuota;
use haulier_files::packing::Packing;
use haulier_files::session::Inbox;
use haulier_files::writer::Replace;
use haulier_shell::failure::Failure;
use haulier_shell::report::Report;

use crate::args::RecvArgs;
use crate::serve::{Host, Traffic};
use crate::target::Target;

pub(crate) fn run(args: &RecvArgs, report: &Report) -> Result<(), Failure> {
    // A target that cannot be written is reported before the program waits for a sender.
    let target = Target::find(&args.output)?;
    if args.stay && target.is_one_file() {
        let what = "--stay takes file after file: -o has to be a directory";
        return Err(Failure::Usage(what.into()));
    }
    let is_replaced = args.force || matches!(target, Target::Stream(..));
    let replace = if is_replaced { Replace::File } else { Replace::Never };
    if !args.force {
        target.check_free()?;
    }
    target.make_folder()?;
    let most = args.most.unwrap_or(u64::MAX);
    let inbox = Inbox::new(target.place(), replace, InboxQuota::new(most, most));
    let inbox = if args.no_attributes { inbox.without_attributes() } else { inbox };
    let host = Host {
        listen: &args.listen,
        look: &args.look,
        traffic: Traffic {
            max_rate_bps: u64::MAX,
            uplink: None,
            urgency: Urgency::LoadScreen,
            has_inbox: true,
        },
        sending: None,
        library: None,
        inbox: Some(inbox),
        packing: Packing::Never,
        is_once: !args.stay,
        target: Some(&target),
        timeout: args.timeout,
    };
    host.run(report)
}
