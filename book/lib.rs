//! The code of the book. Each chapter is the documentation of a module here, so that `cargo test` compiles
//! what it shows; a program that is longer than a page is an example beside it.
//!
//! `cargo xtask book` builds the book itself.

/// A module for each chapter.
macro_rules! chapters {
    ($($name:ident: $file:literal),* $(,)?) => {
        $(#[cfg(doctest)]
        #[doc = include_str!(concat!("src/", $file))]
        mod $name {})*

        #[cfg(test)]
        const CHAPTERS: &[&str] = &[$($file),*];
    };
}

chapters! {
    readme: "README.md",
    why_not_tcp: "why-not-tcp.md",
    slices_and_acks: "slices-and-acks.md",
    hangs: "hangs.md",
    fragments: "fragments.md",
    packets_and_acks: "packets-and-acks.md",
    handshake: "handshake.md",
    finding_the_rate: "finding-the-rate.md",
    repair: "repair.md",
    pacing: "pacing.md",
    chunks_and_trees: "chunks-and-trees.md",
    encryption: "encryption.md",
    crowds: "crowds.md",
    first_join: "first-join.md",
    matchmaker: "matchmaker.md",
    beside_a_game: "beside-a-game.md",
    blocks: "blocks.md",
    own_transport: "own-transport.md",
    bevy: "bevy.md",
    coming_from: "coming-from.md",
    shell: "shell.md",
    tuning: "tuning.md",
    operating: "operating.md",
    wire: "wire.md",
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// A chapter that is forgotten here is not compiled, and one that is forgotten in the table of contents
    /// is not read.
    #[test]
    fn every_chapter_is_compiled_and_in_the_contents() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let files = std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().file_name());
        let mut files: Vec<String> = files.map(|name| name.into_string().unwrap()).collect();
        files.retain(|name| name != "SUMMARY.md");
        files.sort();
        let mut here = super::CHAPTERS.to_vec();
        here.sort_unstable();
        assert_eq!(files, here);
        let contents = include_str!("src/SUMMARY.md");
        let linked = |name: &&String| contents.contains(&format!("]({name})"));
        assert_eq!(
            files.iter().filter(linked).count(),
            files.len(),
            "a chapter is not in SUMMARY.md"
        );
    }
}
