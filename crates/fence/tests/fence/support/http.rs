//! A minimal HTTP/1.1 client that sends exactly what it is told: raw paths, odd headers, broken bodies.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl Answer {
    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    fn is_complete(&self) -> bool {
        self.header("content-length").is_some_and(|bytes| bytes.parse() == Ok(self.body.len()))
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Checks that this is a well-formed problem and returns its status and code.
    pub(crate) fn problem(&self) -> (u16, String) {
        let problem = self.json();
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        assert_eq!(problem["status"], self.status, "{self:?}");
        for field in ["type", "title", "detail", "code"] {
            assert!(problem[field].as_str().is_some_and(|text| !text.is_empty()), "{field}: {self:?}");
        }
        (self.status, problem["code"].as_str().unwrap().to_owned())
    }
}

/// Sends a request with these header lines and reads the answer; an error if the connection breaks first.
pub(crate) async fn send(
    addr: SocketAddr,
    method: &str,
    path: &str,
    headers: &[&str],
    body: &[u8],
) -> std::io::Result<Answer> {
    let mut stream = TcpStream::connect(addr).await?;
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: storage\r\nConnection: close\r\n");
    for header in headers {
        head.push_str(header);
        head.push_str("\r\n");
    }
    if !headers
        .iter()
        .any(|header| header.starts_with("Transfer-Encoding") || header.starts_with("Content-Length"))
    {
        head.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).await?;
    // A server that refuses early may stop reading; its answer counts, not the failed write.
    let _ = stream.write_all(body).await;
    let mut text = Vec::new();
    loop {
        let ended = stream.read_buf(&mut text).await? == 0;
        let answer = parse(&String::from_utf8_lossy(&text));
        match answer {
            Some(answer) if ended || answer.is_complete() => return Ok(answer),
            None if ended => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            Some(_) | None => {}
        }
    }
}

fn parse(text: &str) -> Option<Answer> {
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some(Answer { status, head: head.to_owned(), body: body.to_owned() })
}

/// A request with a JSON body, or without one for `Value::Null`.
pub(crate) async fn call(addr: SocketAddr, method: &str, path: &str, body: Value) -> Answer {
    let sent = match &body {
        Value::Null => send(addr, method, path, &[], b"").await,
        body => {
            send(addr, method, path, &["Content-Type: application/json"], body.to_string().as_bytes()).await
        }
    };
    sent.unwrap_or_else(|error| panic!("{method} {path}: {error}"))
}
