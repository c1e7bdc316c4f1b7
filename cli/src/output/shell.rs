//! Words of a command line that somebody copies into a shell.

/// A word for a POSIX shell: as it is, if no character of it means anything there, and else in quotes.
pub(crate) fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=@%+,".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => quoted(text),
    }
}

/// The same in quotes, whatever it is.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::word;

    #[test]
    fn what_a_shell_would_take_for_something_else_is_quoted() {
        for plain in ["own.toml", "../a/b-1.toml", "a=b"] {
            assert_eq!(word(plain), plain);
        }
        assert_eq!(word("my scenario.toml"), "'my scenario.toml'");
        assert_eq!(word("it's"), r"'it'\''s'");
        assert_eq!(word("$(x)"), "'$(x)'");
        assert_eq!(word(""), "''");
    }
}
