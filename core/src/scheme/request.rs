//! What schemes sign beside the body: a request with its method, its URL and its headers.

use std::borrow::Cow;

use sha2::{Digest as _, Sha256};

use super::mac::hex;
use super::template::{Part, Template};

/// A request as it arrived.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request<'a> {
    /// The method, in upper case.
    pub method: &'a str,
    /// The URL as the sender called it: scheme, host, path and query. Empty if it is not known.
    pub url: &'a str,
    /// The header fields in order, with their raw values.
    pub headers: &'a [(String, Vec<u8>)],
    /// The raw body.
    pub body: &'a [u8],
}

/// The values that fill a template.
#[derive(Clone, Debug)]
pub(crate) struct Values<'a> {
    pub(crate) id: Cow<'a, [u8]>,
    pub(crate) timestamp: Cow<'a, [u8]>,
    pub(crate) method: &'a str,
    pub(crate) url: Cow<'a, str>,
    pub(crate) body: Cow<'a, [u8]>,
    /// Whether the body is no form, since its hash is in the URL.
    pub(crate) is_hashed: bool,
}

impl Values<'_> {
    /// Hands the signed bytes over, piece by piece.
    pub(crate) fn feed(&self, signed: &Template, mut to: impl FnMut(&[u8])) {
        for part in signed.parts() {
            match part {
                Part::Text(text) => to(text.as_bytes()),
                Part::Id => to(&self.id),
                Part::Timestamp => to(&self.timestamp),
                Part::Body => to(&self.body),
                Part::Method => to(self.method.as_bytes()),
                Part::Url => to(self.url.as_bytes()),
                Part::UrlDecoded => to(url_decoded(&self.url).as_bytes()),
                Part::Form if self.is_hashed => {}
                Part::Form => to(&form(&self.body)),
            }
        }
    }

    pub(crate) fn signed_bytes(&self, signed: &Template) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.feed(signed, |piece| bytes.extend_from_slice(piece));
        bytes
    }
}

/// The value of a parameter in the query of a URL.
pub(crate) fn query<'a>(url: &'a str, name: &str) -> Option<&'a str> {
    let (_, query) = url.split_once('?')?;
    let query = query.split_once('#').map_or(query, |(query, _)| query);
    query
        .split('&')
        .find_map(|pair| pair.split_once('=').filter(|(key, _)| *key == name))
        .map(|(_, value)| value)
}

pub(crate) fn body_hash(body: &[u8]) -> String {
    hex(&Sha256::digest(body))
}

/// The other spelling of a URL's port: without it, or with the default of its scheme.
pub(crate) fn other_port(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let host_end = authority.rfind(']').unwrap_or(0);
    if let Some(colon) = authority[host_end..].rfind(':') {
        return Some(format!("{scheme}://{}{path}", &authority[..host_end + colon]));
    }
    let port = if scheme == "https" { 443 } else { 80 };
    Some(format!("{scheme}://{authority}:{port}{path}"))
}

/// Undoes the percent-encodings that HubSpot undoes before it signs.
fn url_decoded(url: &str) -> String {
    const DECODED: [(&str, &str); 12] = [
        ("%3A", ":"),
        ("%2F", "/"),
        ("%3F", "?"),
        ("%40", "@"),
        ("%21", "!"),
        ("%24", "$"),
        ("%27", "'"),
        ("%28", "("),
        ("%29", ")"),
        ("%2A", "*"),
        ("%2C", ","),
        ("%3B", ";"),
    ];
    DECODED.iter().fold(url.to_owned(), |url, (encoded, plain)| url.replace(encoded, plain))
}

/// The fields of an `application/x-www-form-urlencoded` body, each once, sorted and joined.
fn form(body: &[u8]) -> Vec<u8> {
    let mut fields: Vec<_> = body
        .split(|b| *b == b'&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let at = pair.iter().position(|b| *b == b'=').unwrap_or(pair.len());
            (form_decoded(&pair[..at]), form_decoded(pair.get(at + 1..).unwrap_or(&[])))
        })
        .collect();
    fields.sort();
    fields.dedup();
    fields.into_iter().flat_map(|(name, value)| [name, value].concat()).collect()
}

pub(crate) fn form_decoded(text: &[u8]) -> Vec<u8> {
    let digit = |b: Option<&u8>| b.and_then(|b| char::from(*b).to_digit(16));
    let mut bytes = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        at += 1;
        match (byte, digit(text.get(at)), digit(text.get(at + 1))) {
            (b'%', Some(high), Some(low)) => {
                bytes.extend(u8::try_from(high * 16 + low));
                at += 2;
            }
            (b'+', ..) => bytes.push(b' '),
            _ => bytes.push(*byte),
        }
    }
    bytes
}
