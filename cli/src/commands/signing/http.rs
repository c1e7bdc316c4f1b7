//! A raw HTTP/1.1 request in a file, as a proxy or a log has it.

use crate::failure::Failure;

/// A request in parts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RawRequest {
    pub(crate) method: String,
    /// Empty if neither the target nor `Host` tells.
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
    /// What a reader should know of how it was read.
    pub(crate) note: Option<String>,
}

/// Reads a request: a line with method and target, header lines, an empty line, the body.
pub(crate) fn parse(bytes: &[u8]) -> Result<RawRequest, Failure> {
    let mut rest = bytes;
    let first = line(&mut rest).ok_or_else(|| wrong("it has no empty line before the body"))?;
    let first = std::str::from_utf8(first).map_err(|_| wrong("its first line is not text"))?;
    let mut words = first.split(' ');
    let (Some(method), Some(target)) = (words.next(), words.next()) else {
        return Err(wrong("its first line is not a method and a target"));
    };
    if method.is_empty() || !method.bytes().all(|b| b.is_ascii_uppercase()) {
        return Err(wrong("its first line does not begin with a method"));
    }
    let mut headers = Vec::new();
    // The first line is that of the method.
    for number in 2.. {
        let line = line(&mut rest).ok_or_else(|| wrong("it has no empty line before the body"))?;
        if line.is_empty() {
            break;
        }
        let header = header(line);
        headers
            .push(header.ok_or_else(|| {
                wrong(&format!("line {number}, a header, has no name and colon"))
            })?);
    }
    let (body, note) = body(&headers, rest)?;
    let host = value(&headers, "host").unwrap_or_default();
    let url = match target {
        absolute if absolute.contains("://") => absolute.to_owned(),
        path if host.is_empty() || !path.starts_with('/') => String::new(),
        path => format!("https://{host}{path}"),
    };
    Ok(RawRequest { method: method.to_owned(), url, headers, body, note })
}

/// A header as `Name: value`.
pub(crate) fn header(line: &[u8]) -> Option<(String, Vec<u8>)> {
    let colon = line.iter().position(|b| *b == b':')?;
    let name = std::str::from_utf8(&line[..colon]).ok()?;
    let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_graphic());
    is_name.then(|| (name.to_owned(), line[colon + 1..].trim_ascii().to_vec()))
}

/// The body, cut to `Content-Length`: an editor adds a line break to what it saves.
fn body(headers: &[(String, Vec<u8>)], rest: &[u8]) -> Result<(Vec<u8>, Option<String>), Failure> {
    if value(headers, "transfer-encoding").is_some() {
        return Err(wrong("its body is in chunks: put the bare body behind the headers"));
    }
    let there = rest.len();
    let Some(text) = value(headers, "content-length") else { return Ok((rest.to_vec(), None)) };
    let digits = Some(&text).filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
    let Some(length) = digits.and_then(|text| text.parse::<usize>().ok()) else {
        let text = text.escape_debug();
        return Err(wrong(&format!("its Content-Length, `{text}`, is no number of bytes")));
    };
    if length == there {
        return Ok((rest.to_vec(), None));
    }
    let body = rest.get(..length).unwrap_or(rest).to_vec();
    let note = format!("Content-Length is {length}, and the file has {there} bytes of body");
    Ok((body, Some(note)))
}

fn value(headers: &[(String, Vec<u8>)], name: &str) -> Option<String> {
    let (_, value) = headers.iter().find(|(found, _)| found.eq_ignore_ascii_case(name))?;
    String::from_utf8(value.clone()).ok()
}

/// The next line without its end, which is CR LF, or LF where an editor changed it.
fn line<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let at = rest.iter().position(|b| *b == b'\n')?;
    let line = &rest[..at];
    *rest = &rest[at + 1..];
    Some(line.strip_suffix(b"\r").unwrap_or(line))
}

fn wrong(problem: &str) -> Failure {
    Failure::usage(
        format!("the request cannot be read: {problem}"),
        "write it as HTTP/1.1 has it: POST /path HTTP/1.1, a line for each header, an empty line, \
         and the body",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_with_either_kind_of_line_end() {
        for end in ["\r\n", "\n"] {
            let text = format!(
                "POST /a?b=1 HTTP/1.1{end}Host: example.org{end}X-A:  b {end}{end}body\r\n"
            );
            let read = parse(text.as_bytes()).unwrap();
            assert_eq!(read.url, "https://example.org/a?b=1");
            assert_eq!(read.headers[1], ("X-A".to_owned(), b"b".to_vec()));
            assert_eq!(read.body, b"body\r\n");
            assert_eq!(read.note, None);
        }
    }

    #[test]
    fn a_body_ends_where_content_length_has_it() {
        let read = parse(b"POST http://a/ HTTP/1.1\nContent-Length: 2\n\n{}\n").unwrap();
        assert_eq!((read.url.as_str(), &read.body[..]), ("http://a/", &b"{}"[..]));
        assert!(read.note.is_some());
        let short = parse(b"POST / HTTP/1.1\nContent-Length: 9\n\n{}").unwrap();
        assert_eq!((short.url.as_str(), &short.body[..]), ("", &b"{}"[..]));
        assert!(short.note.is_some());
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for wrong in [
            "",
            "POST",
            "POST /\n",
            "post / HTTP/1.1\n\n",
            "{}\n\n",
            "POST / H\nnone\n\n",
            "POST / H\nContent-Length: -5\n\nhello",
            "POST / H\nContent-Length: +5\n\nhello",
            "POST / H\nContent-Length: 1e1\n\nhello",
            "POST / H\nContent-Length:\n\nhello",
            "POST / H\nTransfer-Encoding: chunked\n\n0\n\n",
        ] {
            assert!(parse(wrong.as_bytes()).is_err(), "{wrong:?}");
        }
    }
}
