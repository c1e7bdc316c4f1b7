//! Headers that are written a little otherwise than the scheme has them, mended; and signatures that are
//! none, but a hash.

use sha2::{Digest as _, Sha256};

use super::diagnose::Mistake;
use super::key::{Key, Material};
use super::mac::decode;
use super::{Algorithm, Place, Request, Scheme, TimestampUnit};
use crate::time::Timestamp;

/// What separates the items of a list, in one sender or another.
const MARKS: [char; 4] = [',', ';', '&', '|'];

/// A number of more digits than this is in milliseconds: as seconds it would be in the year 5138.
const SECONDS_DIGITS_MAX: usize = 11;

/// The one thing that makes the request right if it is mended.
pub(crate) fn mended(
    scheme: &Scheme,
    keys: &[Key],
    request: &Request<'_>,
    now: Timestamp,
) -> Option<Mistake> {
    let is_right = |scheme: &Scheme, headers: &[(String, Vec<u8>)]| {
        let request = Request { headers, ..*request };
        scheme.verify(keys, &request, now, None).is_ok()
    };
    let quotes = |c: char| c == '"' || c == '\'';
    let unquoted = rewritten(scheme, request, |text| text.replace(quotes, ""));
    if is_right(scheme, &unquoted) {
        return Some(Mistake::Quoted);
    }
    let separators = places(scheme).filter_map(|place| place.separator.as_deref());
    for separator in separators {
        for mark in MARKS.into_iter().filter(|mark| !separator.contains(*mark)) {
            let listed = rewritten(scheme, request, |text| text.replace(mark, separator));
            if is_right(scheme, &listed) {
                let expected = separator.to_owned();
                return Some(Mistake::Separator { found: mark, expected });
            }
        }
    }
    let digits = scheme.values(request, false).ok()?.timestamp.len();
    let number = match digits <= SECONDS_DIGITS_MAX {
        true => TimestampUnit::Seconds,
        false => TimestampUnit::Milliseconds,
    };
    let of_unit = |unit: TimestampUnit| Scheme { timestamp_unit: unit, ..scheme.clone() };
    [(number, number.as_str()), (TimestampUnit::Rfc3339, "RFC 3339")]
        .into_iter()
        .find(|(unit, _)| {
            *unit != scheme.timestamp_unit && is_right(&of_unit(*unit), request.headers)
        })
        .map(|(_, name)| Mistake::TimestampUnit(name))
}

/// A signature that stands alone where the scheme has it among other fields. Since the rest is lost,
/// nobody can tell whether it is right.
pub(crate) fn bare(scheme: &Scheme, request: &Request<'_>) -> Option<Mistake> {
    let Place { header: Some(name), prefix, separator: Some(separator), .. } = &scheme.signature
    else {
        return None;
    };
    let is_here = |place: &&Place| place.header.as_ref() == Some(name);
    let timestamp = scheme.timestamp.as_ref().filter(is_here)?;
    let (_, value) = request.headers.iter().find(|(found, _)| found.eq_ignore_ascii_case(name))?;
    let value = value.strip_prefix(prefix.as_bytes()).unwrap_or(value).trim_ascii();
    let signature = decode(scheme.encoding, value)?;
    let form = format!("{}…{separator}{prefix}…", timestamp.prefix);
    scheme.algorithm.fits(signature.len()).then_some(Mistake::BareSignature(form))
}

/// Whether a signature is a plain SHA-256: of what is signed, alone or beside the secret.
pub(crate) fn hashed(
    scheme: &Scheme,
    keys: &[Key],
    request: &Request<'_>,
    claimed: &[Vec<u8>],
) -> Option<Mistake> {
    if scheme.algorithm != Algorithm::HmacSha256 {
        return None;
    }
    let signed = scheme.values(request, false).ok()?.signed_bytes(&scheme.signed);
    let is = |pieces: &[&[u8]]| {
        let hash = pieces.iter().fold(Sha256::new(), |hash, piece| hash.chain_update(piece));
        claimed.iter().any(|claim| claim[..] == hash.clone().finalize()[..])
    };
    if is(&[&signed]) || is(&[request.body]) {
        return Some(Mistake::PlainHash("without any secret, so that anybody can make it"));
    }
    keys.iter().find_map(|key| {
        let Material::Bytes(key) = &key.0 else { return None };
        let how = [
            (is(&[key, &signed]), "of the secret and what is signed"),
            (is(&[&signed, key]), "of what is signed and the secret"),
        ];
        how.into_iter().find(|(is, _)| *is).map(|(_, how)| Mistake::PlainHash(how))
    })
}

fn places(scheme: &Scheme) -> impl Iterator<Item = &Place> {
    [Some(&scheme.signature), scheme.id.as_ref(), scheme.timestamp.as_ref()].into_iter().flatten()
}

/// The headers with those of the scheme changed; what is not text is left as it is.
fn rewritten(
    scheme: &Scheme,
    request: &Request<'_>,
    change: impl Fn(&str) -> String,
) -> Vec<(String, Vec<u8>)> {
    let is_of_scheme = |name: &str| {
        let headers = places(scheme).filter_map(|place| place.header.as_deref());
        headers.into_iter().any(|header| header.eq_ignore_ascii_case(name))
    };
    let rewritten = |(name, value): &(String, Vec<u8>)| {
        let text = std::str::from_utf8(value).ok().filter(|_| is_of_scheme(name));
        (name.clone(), text.map_or_else(|| value.clone(), |text| change(text).into_bytes()))
    };
    request.headers.iter().map(rewritten).collect()
}
