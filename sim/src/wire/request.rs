//! HTTP/1.1 requests as bytes on the wire, taken apart independently of the code that wrote them.

/// A whole request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct RawRequest {
    pub(super) path: String,
    pub(super) headers: Vec<(String, Vec<u8>)>,
    pub(super) body: Vec<u8>,
}

impl RawRequest {
    /// The request in `bytes`, once it is whole. Only what our own client writes is understood: a
    /// body with a content length.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let head_end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
        let mut lines = bytes[..head_end].split(|b| *b == b'\n').map(|l| l.trim_ascii_end());
        let request_line = std::str::from_utf8(lines.next()?).ok()?;
        let path = request_line.split(' ').nth(1)?.to_owned();
        let headers: Vec<(String, Vec<u8>)> = lines
            .filter_map(|line| {
                let colon = line.iter().position(|b| *b == b':')?;
                let name = std::str::from_utf8(&line[..colon]).ok()?.to_ascii_lowercase();
                Some((name, line[colon + 1..].trim_ascii().to_vec()))
            })
            .collect();
        let length = headers
            .iter()
            .find(|(name, _)| name == "content-length")
            .and_then(|(_, value)| std::str::from_utf8(value).ok()?.parse::<usize>().ok())
            .unwrap_or(0);
        let body = bytes[head_end + 4..].get(..length)?.to_vec();
        Some(Self { path, headers, body })
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let (_, value) = self.headers.iter().find(|(field, _)| field == name)?;
        std::str::from_utf8(value).ok()
    }
}

/// The status code at the beginning of a response.
pub(super) fn status_of(response: &[u8]) -> Option<u16> {
    let digits = response.strip_prefix(b"HTTP/1.1 ")?.get(..3)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}
