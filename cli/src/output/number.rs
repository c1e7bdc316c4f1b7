//! Numbers for people.

use std::fmt;

/// A count with its thousands apart: `1,000`.
pub(crate) struct Grouped(pub(crate) u64);

impl fmt::Display for Grouped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        let mut text = String::with_capacity(digits.len() + digits.len() / 3);
        for (at, digit) in digits.chars().enumerate() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                text.push(',');
            }
            text.push(digit);
        }
        f.pad(&text)
    }
}

/// A count with its noun: `1 event`, `2 events`.
pub(crate) struct Counted(pub(crate) u64, pub(crate) &'static str);

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = Grouped(self.0);
        match (self.0, self.1.strip_suffix('y')) {
            (1, _) => write!(f, "{count} {}", self.1),
            (_, Some(stem)) => write!(f, "{count} {stem}ies"),
            (_, None) => write!(f, "{count} {}s", self.1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_stand_apart() {
        let check = |number: u64, text: &str| assert_eq!(Grouped(number).to_string(), text);
        check(0, "0");
        check(999, "999");
        check(1000, "1,000");
        check(12_345_678, "12,345,678");
        check(u64::MAX, "18,446,744,073,709,551,615");
    }

    #[test]
    fn one_of_a_thing_has_no_plural() {
        assert_eq!(Counted(0, "event").to_string(), "0 events");
        assert_eq!(Counted(1, "event").to_string(), "1 event");
        assert_eq!(Counted(1000, "event").to_string(), "1,000 events");
        assert_eq!(Counted(1, "history").to_string(), "1 history");
        assert_eq!(Counted(2, "history").to_string(), "2 histories");
    }
}
