//! HTTP/1.1 messages as bytes on the wire, taken apart independently of the code that wrote them.

use std::borrow::Cow;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::OnceLock;

use bytes::Bytes;

use super::witness::AttemptName;

/// The most header fields that a message may have: more than any client or server here accepts.
const FIELDS_MAX: usize = 256;

/// A whole request.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct RawRequest {
    /// As it was on the wire, but for the names of the fields, which are in lower case.
    whole: Bytes,
    path: Range<usize>,
    /// Where the names and the values of the fields are.
    fields: Vec<(Range<usize>, Range<usize>)>,
    body: Range<usize>,
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
        let mut fields = [const { MaybeUninit::uninit() }; FIELDS_MAX];
        let mut head = httparse::Request::new(&mut []);
        let parsed = head.parse_with_uninit_headers(bytes, &mut fields).ok()?;
        let httparse::Status::Complete(end) = parsed else { return None };
        let at = |part: &[u8]| {
            let from = part.as_ptr().addr() - bytes.as_ptr().addr();
            from..from + part.len()
        };
        let is_length =
            |field: &&httparse::Header<'_>| field.name.eq_ignore_ascii_case("content-length");
        let length = head.headers.iter().find(is_length);
        let length = length.and_then(|field| std::str::from_utf8(field.value).ok()?.parse().ok());
        let body = end..end.checked_add(length.unwrap_or(0)).filter(|end| *end <= bytes.len())?;
        let path = at(head.path?.as_bytes());
        let fields: Vec<_> =
            head.headers.iter().map(|field| (at(field.name.as_bytes()), at(field.value))).collect();
        let mut whole = bytes.to_vec();
        for (name, _) in &fields {
            whole[name.clone()].make_ascii_lowercase();
        }
        Some(Self { whole: whole.into(), path, fields, body, ..Self::default() })
    }

    /// The target of the request line.
    pub(super) fn path(&self) -> &str {
        std::str::from_utf8(&self.whole[self.path.clone()]).unwrap_or_default()
    }

    /// The integration of the receiver that it is for: the end of its path.
    pub(super) fn source(&self) -> &str {
        self.path().rsplit('/').next().unwrap_or_default()
    }

    pub(super) fn body(&self) -> &[u8] {
        &self.whole[self.body.clone()]
    }

    /// The fields of its head, in their order: the names in lower case, and the values.
    pub(super) fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let at = |range: &Range<usize>| &self.whole[range.clone()];
        self.fields.iter().map(move |(name, value)| (at(name), at(value)))
    }

    /// The value of the first field of that name.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let (_, value) = self.fields().find(|(field, _)| *field == name.as_bytes())?;
        std::str::from_utf8(value).ok()
    }

    /// The id of the delivery that it says it is an attempt of.
    pub(super) fn delivery(&self) -> &str {
        self.header("hookproof-delivery").unwrap_or_default()
    }

    /// The same with other values in the fields of that name.
    pub(super) fn with(&self, name: &str, change: impl Fn(&str) -> String) -> Self {
        let fields = self.fields().map(|(field, value)| {
            let is_it = field == name.as_bytes();
            let changed = || change(&String::from_utf8_lossy(value)).into_bytes();
            (field, if is_it { Cow::Owned(changed()) } else { Cow::Borrowed(value) })
        });
        Self::of(self.path(), fields, self.body())
    }

    /// The same without the fields of that name.
    pub(super) fn without(&self, name: &str) -> Self {
        let left = self.fields().filter(|(field, _)| *field != name.as_bytes());
        Self::of(self.path(), left.map(|(field, value)| (field, Cow::Borrowed(value))), self.body())
    }

    /// The same with another body, and its length.
    pub(super) fn with_body(&self, body: &[u8]) -> Self {
        let other = self.with("content-length", |_| body.len().to_string());
        let fields = other.fields().map(|(field, value)| (field, Cow::Borrowed(value)));
        Self::of(other.path(), fields, body)
    }

    fn of<'a>(
        path: &str,
        fields: impl Iterator<Item = (&'a [u8], Cow<'a, [u8]>)>,
        body: &[u8],
    ) -> Self {
        let mut whole = Vec::new();
        let mut put = |bytes: &[u8]| {
            let from = whole.len();
            whole.extend_from_slice(bytes);
            from..whole.len()
        };
        put(b"POST ");
        let path = put(path.as_bytes());
        put(b" HTTP/1.1\r\n");
        let mut put_field = |(name, value): (&[u8], Cow<'_, [u8]>)| {
            let name = put(name);
            put(b": ");
            let value = put(&value);
            put(b"\r\n");
            (name, value)
        };
        let fields = fields.map(&mut put_field).collect();
        put(b"\r\n");
        let body = put(body);
        Self { whole: whole.into(), path, fields, body, ..Self::default() }
    }

    /// The request as bytes on the wire.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        self.whole.to_vec()
    }
}

/// What is to be known of the head of a response.
pub(super) struct ResponseHead {
    /// Where the body begins.
    pub(super) end: usize,
    pub(super) status: u16,
    /// How many seconds its `Retry-After` asks for. Our receiver writes no other form.
    pub(super) retry_after: Option<u64>,
}

impl ResponseHead {
    /// The head of the response that begins with `bytes`, once it is whole.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut fields = [const { MaybeUninit::uninit() }; FIELDS_MAX];
        let mut head = httparse::Response::new(&mut []);
        let config = httparse::ParserConfig::default();
        let parsed = config.parse_response_with_uninit_headers(&mut head, bytes, &mut fields);
        let httparse::Status::Complete(end) = parsed.ok()? else { return None };
        let named = |field: &&httparse::Header<'_>| field.name.eq_ignore_ascii_case("retry-after");
        let asked = head.headers.iter().find(named);
        let seconds = |field: &httparse::Header<'_>| {
            std::str::from_utf8(field.value).ok()?.trim().parse().ok()
        };
        Some(Self { end, status: head.code?, retry_after: asked.and_then(seconds) })
    }
}

/// The status code at the beginning of a response, of which there may be no more.
pub(super) fn status_of(response: &[u8]) -> Option<u16> {
    let digits = response.strip_prefix(b"HTTP/1.1 ")?.get(..3)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{RawRequest, ResponseHead};

    const REQUEST: &[u8] =
        b"POST /hooks/shop-1 HTTP/1.1\r\nWebhook-Id: msg_1\r\nhookproof-delivery: \
msg_1~ep_1\r\nhookproof-attempt: 3\r\ncontent-length: 4\r\n\r\nbody";

    fn request() -> RawRequest {
        RawRequest::parse(REQUEST).unwrap()
    }

    #[test]
    fn a_request_is_known_once_it_is_whole() {
        for end in 0..REQUEST.len() {
            assert_eq!(RawRequest::parse(&REQUEST[..end]), None, "{end}");
        }
        let request = request();
        assert_eq!((request.path(), request.source()), ("/hooks/shop-1", "shop-1"));
        assert_eq!(request.header("webhook-id"), Some("msg_1"));
        assert_eq!(request.header("webhook-timestamp"), None);
        assert_eq!(request.delivery(), "msg_1~ep_1");
        assert_eq!(request.body(), b"body");
        assert_eq!(
            request.to_bytes(),
            String::from_utf8_lossy(REQUEST).replace("Webhook-Id", "webhook-id").into_bytes()
        );
    }

    #[test]
    fn what_is_changed_is_one_message_again() {
        let (request, parsed) =
            (request(), |request: &RawRequest| RawRequest::parse(&request.to_bytes()));
        let other = request.with("webhook-id", |id| format!("{id}0"));
        assert_eq!(other.header("webhook-id"), Some("msg_10"));
        assert_eq!(parsed(&other).as_ref(), Some(&other));
        let other = request.with_body(b"another one");
        assert_eq!(
            (other.body(), other.header("content-length")),
            (&b"another one"[..], Some("11"))
        );
        assert_eq!(parsed(&other).as_ref(), Some(&other));
        let other = request.without("hookproof-attempt");
        assert_eq!(parsed(&other).as_ref(), Some(&other));
        assert_eq!(other.header("hookproof-attempt"), None);
        assert_eq!(request.with("absent", |_| String::new()).to_bytes(), request.to_bytes());
    }

    #[test]
    fn the_head_of_a_response_is_known_once_it_is_whole() {
        let response = b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 120\r\n\r\nbody";
        let head_end = response.len() - 4;
        for end in 0..head_end {
            assert!(ResponseHead::parse(&response[..end]).is_none(), "{end}");
        }
        let head = ResponseHead::parse(response).unwrap();
        assert_eq!((head.end, head.status, head.retry_after), (head_end, 429, Some(120)));
        let head = ResponseHead::parse(b"HTTP/1.1 503 \r\nretry-after: soon\r\n\r\n").unwrap();
        assert_eq!((head.status, head.retry_after), (503, None));
    }
}
