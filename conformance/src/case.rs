//! The form of a case.

use std::fmt;
use std::str::FromStr;

use hookproof_core::named_enum;
use serde::{Deserialize, Serialize};

/// The permanent id of a case: its group and its number there, as in `SIG-05`. An id is never used
/// for another case, and never renumbered.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CaseId {
    group: Group,
    number: u8,
}

named_enum! {
    /// What a case is about, in the order of a report.
    pub enum Group {
        /// What is signed, and by whom.
        Signature = "SIG",
        /// When it was signed.
        Timestamp = "TS",
        /// The same event again.
        Replay = "REP",
        /// The same event at the same moment.
        Concurrency = "CON",
        /// Events of one entity out of order.
        Ordering = "ORD",
        /// The end of the receiver's process.
        Crash = "CRA",
        /// How HTTP carries the event.
        Transport = "TRN",
        /// Sizes and waits.
        Limits = "LIM",
        /// What is answered.
        Response = "RSP",
        /// What an attacker learns or breaks.
        Security = "SEC",
        /// What precedes the first event.
        Handshake = "HSK",
    }
}

/// How much a case weighs (RFC 2119; `Info` only tells).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Level {
    /// A receiver that fails it loses, repeats or believes what it must not.
    Must,
    /// There can be a reason to fail it.
    Should,
    /// An option.
    May,
    /// A fact about the receiver, never a failure.
    Info,
}

/// A case as data.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Its id.
    pub id: CaseId,
    /// Its weight.
    pub level: Level,
    /// What is demanded, in one sentence.
    pub rule: String,
    /// Where the rule comes from: a section of a standard, or a kind of incident.
    pub source: String,
    /// What happens to whoever fails it.
    pub why: String,
    /// How to mend a receiver that fails it.
    pub fix: String,
}

/// A text is not the id of a case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CaseIdError {
    text: String,
}

impl fmt::Display for CaseIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not the id of a case; ids are ", self.text.escape_debug())?;
        for (at, group) in Group::ALL.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{}-01", group.as_str())?;
        }
        f.write_str(" and so on")
    }
}

impl std::error::Error for CaseIdError {}

impl CaseId {
    /// What the case is about.
    #[must_use]
    pub fn group(&self) -> Group {
        self.group
    }

    /// Its number within the group, from 1.
    #[must_use]
    pub fn number(&self) -> u8 {
        self.number
    }
}

impl fmt::Display for CaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}-{:02}", self.group.as_str(), self.number))
    }
}

impl FromStr for CaseId {
    type Err = CaseIdError;

    /// Strict: the code in capitals, a hyphen, two digits from 01.
    fn from_str(text: &str) -> Result<Self, CaseIdError> {
        let parsed = text.split_once('-').and_then(|(code, digits)| {
            let group = *Group::ALL.iter().find(|group| group.as_str() == code)?;
            let is_number = digits.len() == 2 && digits.bytes().all(|b| b.is_ascii_digit());
            let number = digits.parse().ok().filter(|number| is_number && *number > 0)?;
            Some(Self { group, number })
        });
        parsed.ok_or_else(|| CaseIdError { text: text.to_owned() })
    }
}

impl TryFrom<String> for CaseId {
    type Error = CaseIdError;

    fn try_from(text: String) -> Result<Self, CaseIdError> {
        text.parse()
    }
}

impl From<CaseId> for String {
    fn from(id: CaseId) -> Self {
        id.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_as_it_prints_and_nothing_else_is_one() {
        for text in ["SIG-01", "TS-10", "HSK-02", "CRA-99"] {
            let id: CaseId = text.parse().unwrap();
            assert_eq!(id.to_string(), text);
        }
        for text in ["", "SIG", "SIG-", "SIG-1", "SIG-00", "SIG-001", "sig-01", "XYZ-01", "SIG-+1"]
        {
            assert!(text.parse::<CaseId>().is_err(), "{text}");
        }
    }

    #[test]
    fn ids_sort_by_group_in_the_order_of_a_report_then_by_number() {
        let id = |text: &str| text.parse::<CaseId>().unwrap();
        assert!(id("SIG-25") < id("TS-01"));
        assert!(id("TS-02") < id("TS-10"));
        assert!(id("SEC-06") < id("HSK-01"));
    }
}
