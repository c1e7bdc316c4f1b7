//! HTTP/1.1 requests as bytes on the wire, taken apart independently of the code that wrote them.

use std::sync::OnceLock;

use bytes::Bytes;

use super::witness::AttemptName;

/// As many header fields as a request of a sender has, and a few more.
const HEADERS_USUAL: usize = 16;

/// A whole request.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct RawRequest {
    pub(super) path: String,
    /// The names, in lower case, and the values: parts of what was on the wire.
    pub(super) headers: Vec<(Bytes, Bytes)>,
    pub(super) body: Bytes,
    /// Whether its signature holds by the keys after so many changes of them, once that was found out:
    /// it is asked three times.
    pub(super) is_signed: OnceLock<(u64, bool)>,
    /// The attempt that it says it is, once that was read: it is asked as often.
    pub(super) attempt: OnceLock<AttemptName>,
}

impl RawRequest {
    /// The request in `bytes`, once it is whole. Only what our own client writes is understood: a
    /// body with a content length.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let head_end = head_end(bytes)?;
        let mut whole = bytes.to_vec();
        for line in whole[..head_end].split_mut(|b| *b == b'\n').skip(1) {
            let colon = line.iter().position(|b| *b == b':').unwrap_or(0);
            line[..colon].make_ascii_lowercase();
        }
        let whole = Bytes::from(whole);
        let mut lines = whole[..head_end - 4].split(|b| *b == b'\n').map(|l| l.trim_ascii_end());
        let request_line = std::str::from_utf8(lines.next()?).ok()?;
        let path = request_line.split(' ').nth(1)?.to_owned();
        let mut headers = Vec::with_capacity(HEADERS_USUAL);
        headers.extend(lines.filter_map(|line| {
            let colon = line.iter().position(|b| *b == b':')?;
            let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
            Some((whole.slice_ref(name), whole.slice_ref(value)))
        }));
        let length = headers
            .iter()
            .find(|(name, _)| name == "content-length")
            .and_then(|(_, value)| std::str::from_utf8(value).ok()?.parse::<usize>().ok())
            .unwrap_or(0);
        let body = whole.slice_ref(whole[head_end..].get(..length)?);
        Some(Self { path, headers, body, ..Self::default() })
    }

    /// The attempt that it says it is.
    pub(super) fn attempt(&self) -> &AttemptName {
        self.attempt.get_or_init(|| {
            let delivery = self.header("hookproof-delivery").unwrap_or_default().into();
            let number = self.header("hookproof-attempt").and_then(|text| text.parse().ok());
            AttemptName { delivery, number: number.unwrap_or(0) }
        })
    }

    /// Changes the value of a header field.
    pub(super) fn change(&mut self, name: &str, change: impl Fn(&str) -> String) {
        (self.is_signed, self.attempt) = (OnceLock::new(), OnceLock::new());
        for (field, value) in &mut self.headers {
            if field == name {
                *value = change(&String::from_utf8_lossy(value)).into();
            }
        }
    }

    /// The request as bytes on the wire.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = format!("POST {} HTTP/1.1\r\n", self.path).into_bytes();
        for (name, value) in &self.headers {
            bytes.extend_from_slice(name);
            bytes.extend_from_slice(b": ");
            bytes.extend_from_slice(value);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(&self.body);
        bytes
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let (_, value) = self.headers.iter().find(|(field, _)| field == name)?;
        std::str::from_utf8(value).ok()
    }
}

/// The end of a message's head, the empty line included, once that is there.
pub(super) fn head_end(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|window| window == b"\r\n\r\n").map(|at| at + 4)
}

/// How many seconds the `Retry-After` in the head of a response asks for. Our receiver writes no
/// other form.
pub(super) fn retry_after_of(head: &[u8]) -> Option<u64> {
    let mut fields = std::str::from_utf8(head).ok()?.lines().filter_map(|l| l.split_once(':'));
    fields.find_map(|(name, value)| match name.eq_ignore_ascii_case("retry-after") {
        true => value.trim().parse().ok(),
        false => None,
    })
}

/// The status code at the beginning of a response.
pub(super) fn status_of(response: &[u8]) -> Option<u16> {
    let digits = response.strip_prefix(b"HTTP/1.1 ")?.get(..3)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}
