//! Internationalised labels: whether one that begins with `xn--` is an A-label, and what a name is in
//! A-labels.
//!
//! An A-label stays as it is given: it is judged, resolved and dialled as ASCII. That it decodes, and
//! to nothing that would be written otherwise, is checked, since no registry and no resolver of
//! IDNA2008 (RFC 5891 §4.2, §5.4) knows another. Which code points a registry allows is its own affair
//! and changes with each edition of Unicode: that needs tables, and no address depends on it.

/// What an A-label begins with (RFC 5890 §2.3.2.5).
const PREFIX: &str = "xn--";

/// The parameters of Punycode (RFC 3492 §5).
const BASE: u32 = 36;
const THRESHOLD_MIN: u32 = 1;
const THRESHOLD_MAX: u32 = 26;
const SKEW: u32 = 38;
const DAMP: u32 = 700;
const BIAS_FIRST: u32 = 72;
const CODE_POINT_FIRST: u32 = 0x80;

/// Letters beyond ASCII of which no edition of UTS #46 makes anything but the lower case, and which no
/// normalisation changes or joins: of these alone a name can be written in A-labels without its tables.
const PLAIN: [(char, char); 15] = [
    ('\u{c0}', '\u{d6}'),
    ('\u{d8}', '\u{f6}'),
    ('\u{f8}', '\u{131}'),
    ('\u{134}', '\u{13e}'),
    ('\u{141}', '\u{148}'),
    ('\u{14a}', '\u{17e}'),
    ('\u{391}', '\u{3a1}'),
    ('\u{3a3}', '\u{3a9}'),
    ('\u{3ac}', '\u{3ce}'),
    ('\u{400}', '\u{45f}'),
    ('\u{3041}', '\u{3096}'),
    ('\u{30a1}', '\u{30fa}'),
    ('\u{30fc}', '\u{30fc}'),
    ('\u{4e00}', '\u{9fff}'),
    ('\u{ac00}', '\u{d7a3}'),
];

/// Whether a label in lower case either does not begin with `xn--` or is an A-label: Punycode in its
/// one spelling, of a label that is not all ASCII and has neither upper case, space nor a hyphen where
/// RFC 5891 §4.2.3.1 forbids one.
pub(super) fn is_plain_or_a_label(label: &str) -> bool {
    let Some(code) = label.strip_prefix(PREFIX) else { return true };
    let Some(decoded) = decode(code) else { return false };
    let is_refused =
        |c: &char| c.is_whitespace() || c.is_control() || !c.to_lowercase().eq(std::iter::once(*c));
    let has_hyphens = decoded.first() == Some(&'-')
        || decoded.last() == Some(&'-')
        || decoded.get(2..4) == Some(&['-', '-']);
    !decoded.iter().all(char::is_ascii)
        && !decoded.iter().any(is_refused)
        && !has_hyphens
        && encode(&decoded).as_deref() == Some(code)
}

/// A name in A-labels, where it leaves no doubt what these are.
pub(super) fn in_a_labels(name: &str) -> Option<String> {
    let labels: Option<Vec<_>> = name.split('.').map(a_label).collect();
    Some(labels?.join("."))
}

fn a_label(label: &str) -> Option<String> {
    if label.is_ascii() {
        return Some(label.to_ascii_lowercase());
    }
    let is_plain = |c: char| {
        c.is_ascii_alphanumeric() || c == '-' || PLAIN.iter().any(|(a, z)| (*a..=*z).contains(&c))
    };
    if !label.chars().all(is_plain) {
        return None;
    }
    let lower: Vec<_> = label.chars().flat_map(char::to_lowercase).collect();
    let label = format!("{PREFIX}{}", encode(&lower)?);
    // Upper case that becomes two characters leaves a doubt.
    (lower.iter().all(|c| is_plain(*c)) && is_plain_or_a_label(&label)).then_some(label)
}

/// RFC 3492 §6.2; `None` if it is no Punycode. A label is short, so `insert` costs nothing.
fn decode(code: &str) -> Option<Vec<char>> {
    let (plain, digits) = code.rsplit_once('-').unwrap_or(("", code));
    let mut decoded: Vec<char> = plain.chars().collect();
    let mut code_point = CODE_POINT_FIRST;
    let mut at = 0_u32;
    let mut bias = BIAS_FIRST;
    let mut digits = digits.bytes().peekable();
    while digits.peek().is_some() {
        let before = at;
        let mut weight = 1_u32;
        let mut position = BASE;
        loop {
            let digit = value_of(digits.next()?)?;
            at = at.checked_add(digit.checked_mul(weight)?)?;
            let threshold = threshold(position, bias);
            if digit < threshold {
                break;
            }
            weight = weight.checked_mul(BASE - threshold)?;
            position += BASE;
        }
        let length = u32::try_from(decoded.len()).ok()? + 1;
        bias = adapted(at - before, length, before == 0);
        code_point = code_point.checked_add(at / length)?;
        at %= length;
        decoded.insert(usize::try_from(at).ok()?, char::from_u32(code_point)?);
        at += 1;
    }
    Some(decoded)
}

/// RFC 3492 §6.3; `None` if it is too long for its arithmetic.
fn encode(label: &[char]) -> Option<String> {
    let mut code: String = label.iter().filter(|c| c.is_ascii()).collect();
    let plain = u32::try_from(code.len()).ok()?;
    if plain > 0 {
        code.push('-');
    }
    let mut written = plain;
    let mut code_point = CODE_POINT_FIRST;
    let mut gap = 0_u32;
    let mut bias = BIAS_FIRST;
    while written < u32::try_from(label.len()).ok()? {
        let next = label.iter().map(|c| u32::from(*c)).filter(|c| *c >= code_point).min()?;
        gap = gap.checked_add((next - code_point).checked_mul(written + 1)?)?;
        code_point = next;
        for c in label.iter().map(|c| u32::from(*c)) {
            if c < code_point {
                gap = gap.checked_add(1)?;
            }
            if c == code_point {
                write_number(&mut code, gap, bias);
                bias = adapted(gap, written + 1, written == plain);
                gap = 0;
                written += 1;
            }
        }
        gap = gap.checked_add(1)?;
        code_point += 1;
    }
    Some(code)
}

/// A number of variable length (RFC 3492 §3.3).
fn write_number(code: &mut String, mut number: u32, bias: u32) {
    let mut position = BASE;
    loop {
        let threshold = threshold(position, bias);
        if number < threshold {
            break;
        }
        let base = BASE - threshold;
        code.push(digit(threshold + (number - threshold) % base));
        number = (number - threshold) / base;
        position += BASE;
    }
    code.push(digit(number));
}

fn threshold(position: u32, bias: u32) -> u32 {
    position.saturating_sub(bias).clamp(THRESHOLD_MIN, THRESHOLD_MAX)
}

/// RFC 3492 §6.1.
fn adapted(gap: u32, length: u32, is_first: bool) -> u32 {
    let mut gap = if is_first { gap / DAMP } else { gap / 2 };
    gap += gap / length;
    let mut position = 0;
    while gap > (BASE - THRESHOLD_MIN) * THRESHOLD_MAX / 2 {
        gap /= BASE - THRESHOLD_MIN;
        position += BASE;
    }
    position + (BASE - THRESHOLD_MIN + 1) * gap / (gap + SKEW)
}

/// The value of a digit, which is in lower case (RFC 3492 §5).
fn value_of(digit: u8) -> Option<u32> {
    match digit {
        b'a'..=b'z' => Some(u32::from(digit - b'a')),
        b'0'..=b'9' => Some(u32::from(digit - b'0') + 26),
        _ => None,
    }
}

fn digit(value: u32) -> char {
    char::from_digit((value + 10) % BASE, BASE).unwrap_or_default()
}
