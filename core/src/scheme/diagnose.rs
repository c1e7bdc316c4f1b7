//! Why a request does not verify: the usual mistakes, tried one after the other.
//!
//! This is for a person who holds the secret and looks at one request. It tries hundreds of signatures and
//! compares in variable time, so a receiver must not call it while it answers.

use std::borrow::Cow;
use std::fmt;
use std::slice;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};

use super::charset::recoded;
use super::key::{Key, KeyReading, Material};
use super::mac::{decode, unhex};
use super::mend::{bare, hashed, mended};
use super::request::{Request, Values, other_port};
use super::respell::respelt;
use super::template::{Part, Template};
use super::verify::Fault;
use super::{Algorithm, Encoding, Scheme, TimestampUnit, calendar, known};
use crate::time::{Millis, Timestamp};

/// The largest body, in bytes, on which two mistakes at once are tried.
const PAIRS_BODY_MAX: usize = 65_536;

/// One thing that was done otherwise than the scheme has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Mistake {
    /// The body was written anew from its JSON, by one side; the other had it in this form.
    BodyRespelt(String),
    /// A line break at the end of the body was lost or added.
    LineBreak(&'static str),
    /// The line breaks within the body were changed.
    LineBreaks(&'static str),
    /// A byte order mark at the start of the body was lost or added.
    ByteOrderMark(&'static str),
    /// The body was empty.
    EmptyBody,
    /// The secret was taken in another way than its form has it.
    Secret(KeyReading),
    /// A secret that is no longer in use signed it: the nth of those given as older, from 0.
    OlderSecret(usize),
    /// The timestamp was signed in another unit than it was sent in.
    SignedUnit(&'static str),
    /// The timestamp is in another unit than the scheme's.
    TimestampUnit(&'static str),
    /// The signature is right; only the time is not.
    Clock,
    /// The signature stands in another header.
    OtherHeader(String),
    /// The signature is taken from the header with too much or too little around it.
    HeaderPart(String),
    /// A value of the scheme stands in quotes.
    Quoted,
    /// The items of a header are separated by another character than the scheme's.
    Separator {
        /// What separates them.
        found: char,
        /// What should.
        expected: String,
    },
    /// The signature stands alone, without the fields of this form that belong to it. Whether it is
    /// right cannot be told.
    BareSignature(String),
    /// The signature is a plain SHA-256 and no HMAC, made in this way.
    PlainHash(&'static str),
    /// The body was signed in another character encoding than it was sent in: in this one.
    Charset(&'static str),
    /// The signature is written in another encoding.
    Encoding {
        /// How it is written.
        found: &'static str,
        /// How it should be.
        expected: &'static str,
    },
    /// It was signed by another scheme.
    OtherScheme(String),
    /// Other parts, or in another order, were signed.
    OtherParts(String),
    /// Another URL was signed.
    OtherUrl(String),
}

impl Mistake {
    /// A name for programs.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::BodyRespelt(_) => "body-reserialised",
            Self::LineBreak(_) => "trailing-newline",
            Self::LineBreaks(_) => "line-breaks",
            Self::ByteOrderMark(_) => "byte-order-mark",
            Self::EmptyBody => "empty-body",
            Self::Secret(_) => "secret-decoding",
            Self::OlderSecret(_) => "older-secret",
            Self::SignedUnit(_) => "signed-timestamp-unit",
            Self::TimestampUnit(_) => "timestamp-unit",
            Self::Clock => "clock",
            Self::OtherHeader(_) => "other-header",
            Self::HeaderPart(_) => "header-part",
            Self::Quoted => "quotes",
            Self::Separator { .. } => "separator",
            Self::BareSignature(_) => "bare-signature",
            Self::PlainHash(_) => "plain-hash",
            Self::Charset(_) => "charset",
            Self::Encoding { .. } => "encoding",
            Self::OtherScheme(_) => "other-scheme",
            Self::OtherParts(_) => "other-parts",
            Self::OtherUrl(_) => "other-url",
        }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BodyRespelt(how) => write!(
                f,
                "the body was re-serialised: it matches when its JSON is {how}; verify the raw bytes, \
                 before any parser"
            ),
            Self::LineBreak(how) => {
                write!(f, "the body matches {how}; an editor, `echo` or a framework changed its end")
            }
            Self::LineBreaks(how) => write!(f, "the body matches with {how} line breaks"),
            Self::ByteOrderMark(how) => write!(f, "the body matches {how} (U+FEFF, a BOM)"),
            Self::EmptyBody => f.write_str(
                "an empty body was signed; whoever signed it had no body, or had read it already",
            ),
            Self::Secret(reading) => write!(f, "the secret was taken {reading}"),
            Self::OlderSecret(nth) => write!(
                f,
                "it is signed by an older secret (number {} of those given); let both overlap while \
                 you rotate",
                nth.saturating_add(1)
            ),
            Self::SignedUnit(unit) => {
                write!(f, "the timestamp was signed in {unit}, but not sent so")
            }
            Self::TimestampUnit(unit) => {
                write!(f, "the timestamp is in {unit}, which the scheme does not have")
            }
            Self::Clock => f.write_str(
                "the signature is right, and only the time is not: the request is old, or a clock is \
                 wrong",
            ),
            Self::OtherHeader(name) => write!(f, "the signature stands in `{name}`"),
            Self::HeaderPart(right) => write!(
                f,
                "the signature is there, but not as the header should have it: {right}"
            ),
            Self::Quoted => f.write_str(
                "a header's value stands in quotes, which the scheme does not have; without them the \
                 signature is right",
            ),
            Self::Separator { found, expected } => write!(
                f,
                "the items of a header are separated by `{found}`, and should be by `{expected}`"
            ),
            Self::BareSignature(form) => write!(
                f,
                "the header has a signature alone, and should have `{form}`: without the rest, nobody \
                 can tell whether it is right"
            ),
            Self::PlainHash(how) => {
                write!(f, "the signature is a plain SHA-256 and no HMAC: {how}")
            }
            Self::Charset(name) => write!(
                f,
                "the body was signed in {name}, and sent in another character encoding: sign and send \
                 the same bytes"
            ),
            Self::Encoding { found, expected } => {
                write!(f, "the signature is written in {found}, and should be in {expected}")
            }
            Self::OtherScheme(name) => write!(f, "it is signed by the scheme `{name}`"),
            Self::OtherParts(parts) => write!(f, "what was signed is `{parts}`"),
            Self::OtherUrl(url) => write!(f, "the URL that was signed is {}", url.escape_debug()),
        }
    }
}

/// What would have matched, with the fewest mistakes first found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnosis {
    /// All these together make the signature right. Never empty.
    pub mistakes: Vec<Mistake>,
}

/// A signature in whatever place and spelling.
struct Claim<'a> {
    header: &'a str,
    encoding: &'static str,
    signature: Vec<u8>,
}

/// Looks for the mistakes that explain `fault`, which [`Scheme::verify`] told for this request.
/// `older` are secrets that are no longer in use.
#[must_use]
pub fn diagnose(
    scheme: &Scheme,
    secrets: &[&str],
    older: &[&str],
    request: &Request<'_>,
    now: Timestamp,
    tolerance: Option<Millis>,
) -> Option<Diagnosis> {
    let keys: Vec<_> = secrets.iter().filter_map(|t| Key::parse(scheme.key, t).ok()).collect();
    if scheme.verify(&keys, request, now, None).is_ok() {
        let mistake = clock(scheme, request, now, tolerance)?;
        return Some(Diagnosis { mistakes: vec![mistake] });
    }
    for (nth, text) in older.iter().enumerate() {
        let key = Key::parse(scheme.key, text).ok();
        if key.is_some_and(|key| scheme.verify(&[key], request, now, None).is_ok()) {
            return Some(Diagnosis { mistakes: vec![Mistake::OlderSecret(nth)] });
        }
    }
    for other in known::all() {
        let keys: Vec<_> = secrets.iter().filter_map(|t| Key::parse(other.key, t).ok()).collect();
        let is_other = other.name != scheme.name && other.algorithm != Algorithm::Token;
        if is_other && other.verify(&keys, request, now, None).is_ok() {
            let mistakes = vec![Mistake::OtherScheme(other.name)];
            return Some(Diagnosis { mistakes });
        }
    }
    let mistake = mended(scheme, &keys, request, now);
    if let Some(mistake) = mistake {
        return Some(Diagnosis { mistakes: vec![mistake] });
    }
    let claims = claims(scheme.algorithm, request);
    by_signature(scheme, secrets, older, request, &claims).or_else(|| {
        let signatures: Vec<_> = claims.iter().map(|claim| claim.signature.clone()).collect();
        let mistake = hashed(scheme, &keys, request, &signatures);
        let mistake = mistake.or_else(|| bare(scheme, request))?;
        Some(Diagnosis { mistakes: vec![mistake] })
    })
}

/// What is wrong with the time of a request whose signature is right.
fn clock(
    scheme: &Scheme,
    request: &Request<'_>,
    now: Timestamp,
    tolerance: Option<Millis>,
) -> Option<Mistake> {
    let tolerance = tolerance?;
    let fault = scheme.verify(&[], request, now, Some(tolerance)).err()?;
    if !matches!(fault, Fault::TooOld { .. } | Fault::TooNew { .. }) {
        return None;
    }
    let values = scheme.values(request, true).ok()?;
    let units =
        [(TimestampUnit::Milliseconds, "milliseconds"), (TimestampUnit::Seconds, "seconds")];
    for (unit, name) in units.into_iter().filter(|(unit, _)| *unit != scheme.timestamp_unit) {
        let near = |at: Timestamp| now.since(at).max(at.since(now)) <= tolerance;
        if calendar::read(unit, &values.timestamp).is_some_and(near) {
            return Some(Mistake::TimestampUnit(name));
        }
    }
    Some(Mistake::Clock)
}

/// Which mistakes at once make one of the signatures in the headers right.
fn by_signature(
    scheme: &Scheme,
    secrets: &[&str],
    older: &[&str],
    request: &Request<'_>,
    claims: &[Claim<'_>],
) -> Option<Diagnosis> {
    if claims.is_empty() {
        return None;
    }
    let signatures: Vec<_> = claims.iter().map(|claim| claim.signature.clone()).collect();
    let keys = keys(scheme, secrets, older);
    let bodies = bodies(request.body);
    let readings = readings(scheme, request);
    let most = if request.body.len() > PAIRS_BODY_MAX { 1 } else { 2 };
    let mut best: Option<Vec<Mistake>> = None;
    for (body_mistake, body) in &bodies {
        for reading in &readings {
            let uses_body = reading.signed.has(&Part::Body) || reading.signed.has(&Part::Form);
            if body_mistake.is_some() && !uses_body {
                continue;
            }
            let values = Values { body: Cow::Borrowed(body), ..reading.values.clone() };
            for (key_mistake, key) in &keys {
                let made = [body_mistake, &reading.mistake, key_mistake];
                let made: Vec<_> = made.into_iter().flatten().cloned().collect();
                if made.len() > most || best.as_ref().is_some_and(|b| b.len() <= made.len()) {
                    continue;
                }
                let is_right = |claimed: &[Vec<u8>]| {
                    scheme.is_body_of_hash(&values)
                        && scheme.matches(&reading.signed, key, &values, claimed)
                };
                if !is_right(&signatures) {
                    continue;
                }
                for claim in claims.iter().filter(|c| is_right(slice::from_ref(&c.signature))) {
                    let mistakes: Vec<_> =
                        made.iter().cloned().chain(misplaced(scheme, claim, request)).collect();
                    let is_better = best.as_ref().is_none_or(|b| mistakes.len() < b.len());
                    if is_better && !mistakes.is_empty() {
                        best = Some(mistakes);
                    }
                }
            }
        }
    }
    best.map(|mistakes| Diagnosis { mistakes })
}

/// What is wrong with the place and the spelling of a signature that is right.
fn misplaced(scheme: &Scheme, claim: &Claim<'_>, request: &Request<'_>) -> Vec<Mistake> {
    let mut mistakes = Vec::new();
    let wanted = scheme.signature.header.as_deref().unwrap_or_default();
    let is_elsewhere = !claim.header.eq_ignore_ascii_case(wanted);
    if is_elsewhere {
        mistakes.push(Mistake::OtherHeader(claim.header.to_owned()));
    }
    let expected = scheme.encoding.as_str();
    if claim.encoding != expected {
        mistakes.push(Mistake::Encoding { found: claim.encoding, expected });
    }
    if !is_elsewhere && claim.encoding == expected {
        let found = scheme.signatures(request);
        let is_usable = |text: &Cow<'_, [u8]>| {
            decode(scheme.encoding, text).is_some_and(|found| found == claim.signature)
        };
        if !found.iter().any(is_usable) {
            let form = format!("`{}` and the {expected}", scheme.signature.prefix);
            let bare = scheme.signature.prefix.is_empty();
            let right = if bare { format!("the {expected} alone") } else { form };
            mistakes.push(Mistake::HeaderPart(right));
        }
    }
    mistakes
}

/// Whatever in the headers could be a signature.
fn claims<'a>(algorithm: Algorithm, request: &Request<'a>) -> Vec<Claim<'a>> {
    let mut claims = Vec::new();
    let fits = |bytes: &Vec<u8>| algorithm.fits(bytes.len());
    for (header, value) in request.headers.iter().take(100) {
        for item in value.split(|b| b" ,;".contains(b)).filter(|i| i.len() >= 27).take(64) {
            let after = item.iter().take(10).position(|b| *b == b'=').map(|at| &item[at + 1..]);
            for text in [Some(item), after].into_iter().flatten() {
                let lower = text.to_ascii_lowercase();
                let of_text = |bytes: Option<Vec<u8>>| bytes.and_then(|bytes| unhex(&bytes));
                let found = [
                    (Encoding::Hex.as_str(), unhex(text)),
                    ("upper-case hex", unhex(&lower)),
                    (Encoding::Base64.as_str(), STANDARD.decode(text).ok()),
                    ("base64 without padding", STANDARD_NO_PAD.decode(text).ok()),
                    ("base64 for URLs", URL_SAFE.decode(text).ok()),
                    ("base64 for URLs without padding", URL_SAFE_NO_PAD.decode(text).ok()),
                    ("base64 of the hex", of_text(STANDARD.decode(text).ok())),
                ];
                let found = found.into_iter().find_map(|(e, s)| s.filter(fits).map(|s| (e, s)));
                if let Some((encoding, signature)) = found {
                    claims.push(Claim { header, encoding, signature });
                }
            }
        }
    }
    claims
}

/// The keys that may have signed: the right ones first.
fn keys(scheme: &Scheme, secrets: &[&str], older: &[&str]) -> Vec<(Option<Mistake>, Key)> {
    let right = |text: &&str| Key::parse(scheme.key, text).ok();
    let mut keys: Vec<_> = secrets.iter().filter_map(right).map(|key| (None, key)).collect();
    for (nth, key) in older.iter().enumerate().filter_map(|(n, t)| right(t).map(|k| (n, k))) {
        keys.push((Some(Mistake::OlderSecret(nth)), key));
    }
    // Only a MAC has a key that could be any bytes.
    for text in secrets.iter().filter(|_| scheme.algorithm.is_hmac()) {
        for (reading, bytes) in Key::misreadings(scheme.key, text) {
            keys.push((Some(Mistake::Secret(reading)), Key(Material::Bytes(bytes))));
        }
    }
    keys
}

fn bodies(body: &[u8]) -> Vec<(Option<Mistake>, Cow<'_, [u8]>)> {
    const MARK: &[u8] = b"\xef\xbb\xbf";
    let mut bodies = vec![(None, Cow::Borrowed(body))];
    let mut add = |mistake, bytes: Vec<u8>| bodies.push((Some(mistake), Cow::Owned(bytes)));
    for (end, with, without) in [
        (&b"\r\n"[..], "with CR LF at its end", "without CR LF at its end"),
        (b"\n", "with a line feed at its end", "without the line feed at its end"),
    ] {
        add(Mistake::LineBreak(with), [body, end].concat());
        if let Some(shorter) = body.strip_suffix(end) {
            add(Mistake::LineBreak(without), shorter.to_vec());
        }
    }
    match body.strip_prefix(MARK) {
        Some(rest) => add(Mistake::ByteOrderMark("without the byte order mark"), rest.to_vec()),
        None => {
            add(Mistake::ByteOrderMark("with a byte order mark before it"), [MARK, body].concat());
        }
    }
    let feeds: Vec<u8> = body.iter().copied().filter(|b| *b != b'\r').collect();
    let both = feeds.iter().flat_map(|b| if *b == b'\n' { vec![b'\r', *b] } else { vec![*b] });
    let both: Vec<_> = both.collect();
    if feeds != body {
        add(Mistake::LineBreaks("LF"), feeds);
    }
    if both != body {
        add(Mistake::LineBreaks("CR LF"), both);
    }
    if !body.is_empty() {
        add(Mistake::EmptyBody, Vec::new());
    }
    for (name, bytes) in recoded(body) {
        add(Mistake::Charset(name), bytes);
    }
    let json = body.strip_prefix(MARK).unwrap_or(body).trim_ascii_end();
    for (how, bytes) in respelt(json) {
        add(Mistake::BodyRespelt(how), bytes);
    }
    bodies
}

/// What may have been signed.
struct Reading<'a> {
    mistake: Option<Mistake>,
    signed: Template,
    values: Values<'a>,
}

fn readings<'a>(scheme: &Scheme, request: &Request<'a>) -> Vec<Reading<'a>> {
    let mut readings: Vec<Reading<'a>> = Vec::new();
    if let Ok(values) = scheme.values(request, false) {
        let mut add = |mistake, values| {
            readings.push(Reading { mistake, signed: scheme.signed.clone(), values });
        };
        add(None, values.clone());
        let number: Option<i64> =
            std::str::from_utf8(&values.timestamp).ok().and_then(|text| text.parse().ok());
        let other = number.into_iter().flat_map(|number| {
            [(number.checked_mul(1000), "milliseconds"), (Some(number / 1000), "seconds")]
        });
        if scheme.signed.has(&Part::Timestamp) {
            for (number, unit) in other.filter_map(|(n, unit)| n.map(|n| (n, unit))) {
                let timestamp = Cow::Owned(number.to_string().into_bytes());
                let values = Values { timestamp, ..values.clone() };
                add(Some(Mistake::SignedUnit(unit)), values);
            }
        }
        if scheme.signed.has(&Part::Url) || scheme.signed.has(&Part::UrlDecoded) {
            for url in urls(request.url) {
                let mistake = Some(Mistake::OtherUrl(url.clone()));
                add(mistake, Values { url: Cow::Owned(url), ..values.clone() });
            }
        }
    }
    for other in known::all() {
        let is_new = readings.iter().all(|reading| reading.signed != other.signed);
        let own = scheme.values(request, false).ok();
        let values = other.values(request, false).ok().or(own);
        let is_like = other.algorithm != Algorithm::Token && is_new;
        if let Some(values) = values.filter(|values| is_like && fills(values, &other.signed)) {
            let mistake = Some(Mistake::OtherParts(other.signed.to_string()));
            readings.push(Reading { mistake, signed: other.signed, values });
        }
    }
    readings
}

fn fills(values: &Values<'_>, signed: &Template) -> bool {
    signed.parts().iter().all(|part| match part {
        Part::Id => !values.id.is_empty(),
        Part::Timestamp => !values.timestamp.is_empty(),
        Part::Url | Part::UrlDecoded => !values.url.is_empty(),
        Part::Text(_) | Part::Body | Part::Method | Part::Form => true,
    })
}

/// The URL as a proxy, or a slip, may have it.
fn urls(url: &str) -> Vec<String> {
    let mut urls = Vec::new();
    let secure = url.strip_prefix("http://").map(|rest| format!("https://{rest}"));
    let plain = url.strip_prefix("https://").map(|rest| format!("http://{rest}"));
    urls.extend(secure.into_iter().chain(plain).chain(other_port(url)));
    urls.extend(url.split_once('?').map(|(bare, _)| bare.to_owned()));
    urls.push(url.strip_suffix('/').map_or_else(|| format!("{url}/"), str::to_owned));
    urls
}
