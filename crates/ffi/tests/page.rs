//! The page docs/C.md shows the programs that are in `examples/`, which the step `c` of CI compiles and runs.

const PAGE: &str = include_str!("../../../docs/C.md");
const PROGRAMS: [&str; 2] =
    [include_str!("../examples/join_server.c"), include_str!("../examples/join_client.c")];

/// A program without its first comment, which says how to compile it.
fn code(program: &str) -> &str {
    program.find("#include").map_or(program, |at| &program[at..])
}

#[test]
fn the_page_shows_the_programs_there_are() {
    let shown: Vec<&str> =
        PAGE.split("```c\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(shown, PROGRAMS.map(code), "copy the examples into the page");
}

#[test]
fn the_programs_have_sixty_lines_at_most() {
    let lines = PROGRAMS.map(|program| program.lines().count());
    assert!(lines.iter().all(|&lines| lines <= 60), "{lines:?}");
}
