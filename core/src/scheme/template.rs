//! What is signed, as a text with holes: `{id}.{timestamp}.{body}`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A piece of what is signed.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Part {
    /// This text itself.
    Text(String),
    /// The event's id.
    Id,
    /// The time, as it is written in the request.
    Timestamp,
    /// The raw body.
    Body,
    /// The method, in upper case.
    Method,
    /// The URL as it was called.
    Url,
    /// The URL with the percent-encodings undone that HubSpot names: `: / ? @ ! $ ' ( ) * , ;`
    UrlDecoded,
    /// The fields of a form in order of their names, each name followed by its value.
    Form,
}

const HOLES: [(&str, Part); 7] = [
    ("id", Part::Id),
    ("timestamp", Part::Timestamp),
    ("body", Part::Body),
    ("method", Part::Method),
    ("url", Part::Url),
    ("url-decoded", Part::UrlDecoded),
    ("form", Part::Form),
];

/// What is signed, piece by piece.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Template(Vec<Part>);

/// Why a text is no template.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TemplateError {
    hole: String,
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = HOLES.iter().map(|(name, _)| format!("{{{name}}}")).collect();
        write!(
            f,
            "`{}` is nothing that can be signed: write text and {}",
            self.hole.escape_debug(),
            names.join(", ")
        )
    }
}

impl std::error::Error for TemplateError {}

impl Template {
    /// The pieces, from left to right.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.0
    }

    /// Whether `part` is among them.
    #[must_use]
    pub fn has(&self, part: &Part) -> bool {
        self.0.contains(part)
    }

    /// The text that directly follows `part`, if text does.
    pub(crate) fn text_after(&self, part: &Part) -> Option<&str> {
        let at = self.0.iter().position(|found| found == part)?;
        match self.0.get(at + 1) {
            Some(Part::Text(text)) => Some(text),
            _ => None,
        }
    }
}

impl From<Vec<Part>> for Template {
    fn from(parts: Vec<Part>) -> Self {
        Self(parts)
    }
}

impl FromStr for Template {
    type Err = TemplateError;

    fn from_str(text: &str) -> Result<Self, TemplateError> {
        let mut parts = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let Some(open) = rest.find(['{', '}']) else {
                parts.push(Part::Text(rest.to_owned()));
                break;
            };
            if open > 0 {
                parts.push(Part::Text(rest[..open].to_owned()));
            }
            let hole = &rest[open..];
            let end = hole.find('}').map_or(hole.len(), |at| at + 1);
            let name = hole[..end].strip_prefix('{').and_then(|name| name.strip_suffix('}'));
            let known = HOLES.iter().find(|(known, _)| Some(*known) == name);
            let (_, part) = known.ok_or_else(|| TemplateError { hole: hole[..end].to_owned() })?;
            parts.push(part.clone());
            rest = &hole[end..];
        }
        Ok(Self(parts))
    }
}

impl TryFrom<String> for Template {
    type Error = TemplateError;

    fn try_from(text: String) -> Result<Self, TemplateError> {
        text.parse()
    }
}

impl From<Template> for String {
    fn from(template: Template) -> Self {
        template.to_string()
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.0 {
            match part {
                Part::Text(text) => f.write_str(text)?,
                hole => {
                    let name = HOLES.iter().find(|(_, part)| part == hole);
                    write!(f, "{{{}}}", name.map_or("", |(name, _)| name))?;
                }
            }
        }
        Ok(())
    }
}
