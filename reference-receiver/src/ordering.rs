//! Which version of which entity an event is about.
//!
//! At least once delivery does not keep the order, so a sender that numbers the versions of an entity
//! lets its receiver tell what is late. Where the numbers stand is agreed per source; what follows from
//! them is decided by [`hookproof_core::ordering`], within the transaction that applies the effect.

use std::fmt;

use hookproof_core::ordering::Late;
use serde::Deserialize;
use serde_json::Value;

/// Where the events of a source say which version of which entity they are about.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrderingRule {
    /// The place of the entity's name in a JSON body, a text or a whole number, as a JSON Pointer
    /// (RFC 6901), for example `/data/id`.
    pub entity: Pointer,
    /// The place of its version, a whole number from 0 that grows with every change.
    pub version: Pointer,
    /// What becomes of an event that is older than what is applied.
    #[serde(default)]
    pub late: Late,
}

/// A JSON Pointer (RFC 6901) to something within a body.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct Pointer(String);

impl TryFrom<String> for Pointer {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        if text.starts_with('/') {
            Ok(Self(text))
        } else {
            Err(format!(
                "`{text}` is no JSON Pointer: write /data/id for {{\"data\":{{\"id\":…}}}}"
            ))
        }
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The version of an entity that an event is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Versioned {
    /// The entity's name, which is unique within the source.
    pub entity: String,
    /// The version.
    pub version: u64,
    /// What becomes of the event if a newer version is applied.
    pub late: Late,
}

impl OrderingRule {
    /// What a body says; `None` if it carries no entity and version, so that the order does not
    /// matter to it.
    ///
    /// # Errors
    ///
    /// What is wrong with an entity or a version that is there but cannot be one. To apply such an
    /// event could overwrite what is newer.
    pub fn read(&self, body: &[u8]) -> Result<Option<Versioned>, String> {
        let Ok(body) = serde_json::from_slice::<Value>(body) else { return Ok(None) };
        let (Some(entity), Some(version)) =
            (body.pointer(&self.entity.0), body.pointer(&self.version.0))
        else {
            return Ok(None);
        };
        let entity = match entity {
            Value::String(name) => name.clone(),
            Value::Number(number) if number.is_u64() || number.is_i64() => number.to_string(),
            other => {
                let at = &self.entity;
                return Err(format!("the entity at {at} is {other}, and no text or whole number"));
            }
        };
        // SQLite's integers end at 2⁶³ − 1.
        match version.as_u64().filter(|version| i64::try_from(*version).is_ok()) {
            Some(version) => Ok(Some(Versioned { entity, version, late: self.late })),
            None => {
                let at = &self.version;
                Err(format!("the version at {at} is {version}, and no whole number from 0"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use hookproof_core::ordering::Late;

    use super::{OrderingRule, Pointer, Versioned};

    fn read(body: &str) -> Result<Option<Versioned>, String> {
        let pointer = |text: &str| Pointer::try_from(text.to_owned()).expect("a pointer");
        let rule = OrderingRule {
            entity: pointer("/data/id"),
            version: pointer("/data/version"),
            late: Late::Reconcile,
        };
        rule.read(body.as_bytes())
    }

    #[test]
    fn an_event_carries_the_version_of_an_entity_or_none() {
        let check = |body: &str, found: Option<(&str, u64)>| {
            let versioned = found.map(|(entity, version)| Versioned {
                entity: entity.to_owned(),
                version,
                late: Late::Reconcile,
            });
            assert_eq!(read(body), Ok(versioned), "{body}");
        };
        check(r#"{"data":{"id":"a","version":3}}"#, Some(("a", 3)));
        check(r#"{"data":{"id":-7,"version":0}}"#, Some(("-7", 0)));
        check(r#"{"data":{"id":"a"}}"#, None);
        check(r#"{"data":{"version":3}}"#, None);
        check(r#"{"id":"a","version":3}"#, None);
        check("id=a", None);
        check("", None);
    }

    #[test]
    fn what_can_be_no_entity_or_version_is_an_error_and_no_guess() {
        let check = |body: &str, problem: &str| {
            assert_eq!(read(body), Err(problem.to_owned()), "{body}");
        };
        let whole = "and no whole number from 0";
        check(
            r#"{"data":{"id":"a","version":"3"}}"#,
            &format!("the version at /data/version is \"3\", {whole}"),
        );
        check(
            r#"{"data":{"id":"a","version":-1}}"#,
            &format!("the version at /data/version is -1, {whole}"),
        );
        check(
            r#"{"data":{"id":"a","version":9223372036854775808}}"#,
            &format!("the version at /data/version is 9223372036854775808, {whole}"),
        );
        check(
            r#"{"data":{"id":null,"version":3}}"#,
            "the entity at /data/id is null, and no text or whole number",
        );
        assert!(Pointer::try_from("data.id".to_owned()).is_err());
    }
}
