//! In place of QR codes in a program that was built without them: nobody can ask for one.

use haulier_shell::failure::Failure;
use haulier_shell::report::Report;

use crate::args::QrArgs;

#[expect(clippy::unnecessary_wraps, reason = "as in a program with QR codes")]
pub(crate) const fn check(_: &QrArgs, _: &Report) -> Result<(), Failure> {
    Ok(())
}

#[expect(clippy::unnecessary_wraps, reason = "as in a program with QR codes")]
pub(crate) const fn show(_: &QrArgs, _: &str, _: &Report) -> Result<(), Failure> {
    Ok(())
}
