//! A body in another character encoding: signed in one, and sent in the other.

/// The body in each other encoding that it can have, with the name of that.
pub(crate) fn recoded(body: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    match std::str::from_utf8(body) {
        Ok("") => Vec::new(),
        Ok(text) => {
            let mut found = vec![
                ("UTF-16, low byte first", utf_16(text, u16::to_le_bytes)),
                ("UTF-16, high byte first", utf_16(text, u16::to_be_bytes)),
            ];
            let bytes = latin_1(text).filter(|_| !text.is_ascii());
            found.extend(bytes.map(|bytes| ("Latin-1", bytes)));
            found
        }
        Err(_) => {
            let text: String = body.iter().copied().map(char::from).collect();
            vec![("UTF-8", text.into_bytes())]
        }
    }
}

fn latin_1(text: &str) -> Option<Vec<u8>> {
    text.chars().map(|char| u8::try_from(u32::from(char)).ok()).collect()
}

fn utf_16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
    text.encode_utf16().flat_map(bytes).collect()
}
