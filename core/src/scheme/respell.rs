//! The ways in which a JSON body changes when it is parsed and written again.

use std::borrow::Cow;

/// How JSON is laid out: what follows a comma and a colon, how a line ends, and by how many spaces
/// each is indented, if there are lines at all.
struct Layout {
    name: &'static str,
    comma: &'static str,
    colon: &'static str,
    line_end: &'static str,
    indent: Option<usize>,
}

impl Layout {
    const fn in_one_line(name: &'static str, comma: &'static str, colon: &'static str) -> Self {
        Self { name, comma, colon, line_end: "\n", indent: None }
    }

    const fn in_lines(name: &'static str, line_end: &'static str, indent: usize) -> Self {
        Self { name, comma: ",", colon: ": ", line_end, indent: Some(indent) }
    }
}

const LAYOUTS: [Layout; 6] = [
    Layout::in_one_line("compact", ",", ":"),
    Layout::in_one_line("with a space after each comma and colon", ", ", ": "),
    Layout::in_lines("indented by two spaces", "\n", 2),
    Layout::in_lines("indented by four spaces", "\n", 4),
    Layout::in_lines("indented by two spaces, in lines that end with CR LF", "\r\n", 2),
    Layout::in_lines("indented by four spaces, in lines that end with CR LF", "\r\n", 4),
];

/// How the characters of strings are spelt.
#[derive(Clone, Copy)]
enum Spelling {
    AsItIs,
    Ascii,
    Unescaped,
    AsciiAndSlashes,
    PlainSlashes,
    /// As Go's `encoding/json` has it unless told otherwise: safe within HTML and JavaScript.
    Html,
}

const ASCII: (Spelling, &str) = (Spelling::Ascii, ", other characters than ASCII escaped");
const HTML: (Spelling, &str) = (Spelling::Html, ", `<`, `>` and `&` escaped");
const AS_IT_IS: (Spelling, &str) = (Spelling::AsItIs, "");

const SPELLINGS: [(Spelling, &str); 6] = [
    AS_IT_IS,
    ASCII,
    (Spelling::Unescaped, ", escaped characters written out"),
    (Spelling::AsciiAndSlashes, ", slashes and other characters than ASCII escaped"),
    (Spelling::PlainSlashes, ", slashes not escaped"),
    HTML,
];

/// Those of a body with sorted keys, in which all that need not be escaped is written out already.
const SPELLINGS_SORTED: [(Spelling, &str); 3] = [AS_IT_IS, ASCII, HTML];

/// The body in each other spelling of the same JSON, with what that is: at most six layouts of twenty-one
/// spellings, each with and without a line break at its end.
pub(crate) fn respelt(body: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut found: Vec<(String, Vec<u8>)> = Vec::new();
    let Some(tokens) = std::str::from_utf8(body).ok().and_then(tokens) else { return found };
    add(&mut found, body, &tokens, "", &SPELLINGS);
    for (write, how) in NUMBERS {
        let rewritten: Vec<_> = tokens.iter().map(|token| number(token, write)).collect();
        let rewritten: Vec<&str> = rewritten.iter().map(AsRef::as_ref).collect();
        if rewritten != tokens {
            add(&mut found, body, &rewritten, how, &SPELLINGS);
        }
    }
    if let Ok(value) = serde_json::from_slice::<serde_json::Value>(body) {
        let sorted = value.to_string();
        let sorted = self::tokens(&sorted).unwrap_or_default();
        let how = match numbers(&sorted) == numbers(&tokens) {
            true => ", keys sorted",
            false => ", keys sorted and numbers rewritten",
        };
        add(&mut found, body, &sorted, how, &SPELLINGS_SORTED);
    }
    found
}

/// How a number is written again that was read as a double; `None` where it is left as it was.
type WriteNumber = fn(&str) -> Option<String>;

const NUMBERS: [(WriteNumber, &str); 2] = [
    (by_javascript, ", numbers as JavaScript writes them"),
    (by_python, ", numbers as Python writes them"),
];

fn number<'a>(token: &'a str, write: WriteNumber) -> Cow<'a, str> {
    let written = is_number(token).then(|| write(token)).flatten();
    written.map_or(Cow::Borrowed(token), Cow::Owned)
}

fn is_number(token: &str) -> bool {
    token.starts_with(|c: char| c == '-' || c.is_ascii_digit())
}

/// The numbers of a text, in the order of their spelling.
fn numbers<'a>(tokens: &[&'a str]) -> Vec<&'a str> {
    let mut numbers: Vec<_> = tokens.iter().copied().filter(|token| is_number(token)).collect();
    numbers.sort_unstable();
    numbers
}

/// `JSON.stringify`: every number is a double (ECMA-262, Number::toString).
fn by_javascript(token: &str) -> Option<String> {
    let value: f64 = token.parse().ok().filter(|value: &f64| value.is_finite())?;
    if value == 0.0 {
        return Some("0".to_owned());
    }
    match value.abs() {
        1e-6..1e21 => Some(value.to_string()),
        _ => Some(with_sign(&format!("{value:e}"), 1)),
    }
}

/// `json.dumps`: what has neither a point nor an exponent is an integer of any length, all else a
/// double, written as `repr` has it.
fn by_python(token: &str) -> Option<String> {
    if !token.contains(['.', 'e', 'E']) {
        return None;
    }
    let value: f64 = token.parse().ok().filter(|value: &f64| value.is_finite())?;
    match value.abs() {
        0.0 | 1e-4..1e16 => Some(format!("{value:?}")),
        _ => Some(with_sign(&format!("{value:e}"), 2)),
    }
}

/// An exponent with its sign, in so many digits at least.
fn with_sign(text: &str, digits: usize) -> String {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    format!("{mantissa}e{sign}{exponent:0>digits$}")
}

/// Adds each layout of each spelling which is neither the body nor there yet.
fn add(
    found: &mut Vec<(String, Vec<u8>)>,
    body: &[u8],
    tokens: &[&str],
    order: &str,
    spellings: &[(Spelling, &str)],
) {
    for layout in &LAYOUTS {
        for (spelling, what) in spellings {
            let bytes = write(tokens, layout, *spelling).into_bytes();
            if bytes == body || found.iter().any(|(_, known)| *known == bytes) {
                continue;
            }
            let name = format!("{}{order}{what}", layout.name);
            let with_end = [&bytes, layout.line_end.as_bytes()].concat();
            found.push((name.clone(), bytes));
            found.push((format!("{name}, with a line break at its end"), with_end));
        }
    }
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
            text.push_str(layout.line_end);
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
        Spelling::Html => html(&unescaped(string)),
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

/// Escapes what could end a script, and the two characters that end a line in JavaScript only.
fn html(string: &str) -> String {
    let mut text = String::new();
    for char in string.chars() {
        match char {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                text.push_str(&format!("\\u{:04x}", u32::from(char)));
            }
            _ => text.push(char),
        }
    }
    text
}

/// Writes out what JSON need not escape.
fn unescaped(string: &str) -> String {
    let Ok(value) = serde_json::from_str::<String>(string) else { return string.to_owned() };
    serde_json::Value::String(value).to_string()
}
