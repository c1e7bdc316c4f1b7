//! The ways in which a JSON body changes when it is parsed and written again.

/// How JSON is laid out: what follows a comma and a colon, and the indentation of a line.
struct Layout {
    name: &'static str,
    comma: &'static str,
    colon: &'static str,
    indent: Option<usize>,
}

const LAYOUTS: [Layout; 4] = [
    Layout { name: "compact", comma: ",", colon: ":", indent: None },
    Layout {
        name: "with a space after each comma and colon",
        comma: ", ",
        colon: ": ",
        indent: None,
    },
    Layout { name: "indented by two spaces", comma: ",", colon: ": ", indent: Some(2) },
    Layout { name: "indented by four spaces", comma: ",", colon: ": ", indent: Some(4) },
];

/// How the characters of strings are spelt.
#[derive(Clone, Copy)]
enum Spelling {
    AsItIs,
    Ascii,
    Unescaped,
    AsciiAndSlashes,
    PlainSlashes,
}

const SPELLINGS: [(Spelling, &str); 5] = [
    (Spelling::AsItIs, ""),
    (Spelling::Ascii, ", other characters than ASCII escaped"),
    (Spelling::Unescaped, ", escaped characters written out"),
    (Spelling::AsciiAndSlashes, ", slashes and other characters than ASCII escaped"),
    (Spelling::PlainSlashes, ", slashes not escaped"),
];

/// The body in each other spelling of the same JSON, with what that is.
pub(crate) fn respelt(body: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut found: Vec<(String, Vec<u8>)> = Vec::new();
    let Some(tokens) = std::str::from_utf8(body).ok().and_then(tokens) else { return found };
    let mut add = |name: String, bytes: Vec<u8>| {
        if bytes != body && !found.iter().any(|(_, known)| *known == bytes) {
            found.push((name, bytes));
        }
    };
    for layout in &LAYOUTS {
        for (spelling, what) in SPELLINGS {
            add(format!("{}{what}", layout.name), write(&tokens, layout, spelling).into_bytes());
        }
    }
    if let Ok(value) = serde_json::from_slice::<serde_json::Value>(body) {
        let sorted = value.to_string();
        for layout in &LAYOUTS {
            let tokens = self::tokens(&sorted).unwrap_or_default();
            let bytes = write(&tokens, layout, Spelling::AsItIs).into_bytes();
            add(format!("{}, keys sorted and numbers rewritten", layout.name), bytes);
        }
    }
    found
}

/// The marks, strings and other words of what looks like JSON, without the space between them.
fn tokens(text: &str) -> Option<Vec<&str>> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    if !rest.starts_with(['{', '[']) {
        return None;
    }
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '{' | '}' | '[' | ']' | ',' | ':' => 1,
            '"' => string_length(rest)?,
            _ => rest.find(['{', '}', '[', ']', ',', ':', '"', ' ', '\n', '\r', '\t'])?,
        };
        let (token, after) = rest.split_at_checked(length)?;
        tokens.push(token);
        rest = after.trim_start();
    }
    Some(tokens)
}

fn string_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 1;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

fn write(tokens: &[&str], layout: &Layout, spelling: Spelling) -> String {
    let mut text = String::new();
    let mut depth = 0_usize;
    let line = |text: &mut String, depth: usize| {
        if let Some(indent) = layout.indent {
            text.push('\n');
            text.extend(std::iter::repeat_n(' ', indent * depth.min(100)));
        }
    };
    for (at, token) in tokens.iter().enumerate() {
        let is_empty = |open, close| *token == open && tokens.get(at + 1) == Some(&close);
        let was_empty = |open| tokens[..at].last() == Some(&open);
        match *token {
            "{" | "[" => {
                text.push_str(token);
                depth += 1;
                if !is_empty("{", "}") && !is_empty("[", "]") {
                    line(&mut text, depth);
                }
            }
            "}" | "]" => {
                depth = depth.saturating_sub(1);
                if !was_empty(if *token == "}" { "{" } else { "[" }) {
                    line(&mut text, depth);
                }
                text.push_str(token);
            }
            "," => {
                text.push_str(layout.comma);
                line(&mut text, depth);
            }
            ":" => text.push_str(layout.colon),
            // A number or a word has one spelling.
            value => text.push_str(&spelt(value, spelling)),
        }
    }
    text
}

fn spelt(string: &str, spelling: Spelling) -> String {
    match spelling {
        Spelling::AsItIs => string.to_owned(),
        Spelling::Ascii => ascii(string),
        Spelling::Unescaped => unescaped(string),
        Spelling::AsciiAndSlashes => ascii(&string.replace("\\/", "/").replace('/', "\\/")),
        Spelling::PlainSlashes => string.replace("\\/", "/"),
    }
}

fn ascii(string: &str) -> String {
    let mut text = String::new();
    let mut units = [0; 2];
    for char in string.chars() {
        if char.is_ascii() {
            text.push(char);
        } else {
            for unit in char.encode_utf16(&mut units) {
                text.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    text
}

/// Writes out what JSON need not escape.
fn unescaped(string: &str) -> String {
    let Ok(value) = serde_json::from_str::<String>(string) else { return string.to_owned() };
    serde_json::Value::String(value).to_string()
}
