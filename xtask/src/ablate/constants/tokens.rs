//! Rust as tokens, as far as it takes to find names: words and single marks. Comments, literals and lifetimes
//! have none.

/// A word or a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    /// The byte at which it begins.
    pub(super) at: usize,
    pub(super) text: &'a str,
}

pub(super) fn tokens(text: &str) -> Vec<Token<'_>> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let rest = &text[at..];
        let len = match byte {
            b'/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            b'/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            b'"' => quoted(rest),
            b'\'' => 1 + character(&rest[1..]),
            _ if is_word(byte) => {
                let len = rest.bytes().position(|byte| !is_word(byte)).unwrap_or(rest.len());
                tokens.push(Token { at, text: &rest[..len] });
                len
            }
            _ if byte.is_ascii_graphic() => {
                tokens.push(Token { at, text: &rest[..1] });
                1
            }
            _ => rest.chars().next().map_or(1, char::len_utf8),
        };
        at += len;
    }
    tokens
}

const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The length of a string.
fn quoted(text: &str) -> usize {
    let mut is_escaped = false;
    let end = text.bytes().skip(1).position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    });
    end.map_or(text.len(), |end| end + 2)
}

/// The length of a character after its first quote; none of a lifetime, whose name is a word like any.
fn character(text: &str) -> usize {
    if text.starts_with('\\') {
        return text[2..].find('\'').map_or(text.len(), |end| end + 3);
    }
    let mut chars = text.chars();
    let first = chars.next().map_or(0, char::len_utf8);
    if chars.next() == Some('\'') { first + 1 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_outside_of_comments_and_literals() {
        let text = "a.B /* C */ \"D \\\" E\" 'F' '\\n' &'g H // I\nJ::K";
        let words: Vec<&str> = tokens(text).iter().map(|token| token.text).collect();
        assert_eq!(words, ["a", ".", "B", "&", "g", "H", "J", ":", ":", "K"]);
    }
}
