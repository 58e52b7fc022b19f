//! Draws the lab's figure, `docs/lab/joins.svg`, from the measured joins beside it, and prints the
//! same as a table: `cargo run --release -p haulier-lab --example joins`.

use haulier_lab::figures::Joins;

fn main() -> Result<(), String> {
    let lab = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/lab");
    let text = std::fs::read_to_string(format!("{lab}/joins.json"));
    let joins = Joins::read(&text.map_err(|error| format!("joins.json: {error}"))?);
    let joins = joins.map_err(|what| format!("joins.json: {what}"))?;
    std::fs::write(format!("{lab}/joins.svg"), joins.figure()?)
        .map_err(|error| format!("joins.svg: {error}"))?;
    print!("{}", joins.table());
    Ok(())
}
