//! Waits until members say that they are ready: `GET /readyz` answers 200.
//!
//! Speaks just enough HTTP for that.

use std::{io, net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{sleep, timeout},
};

/// Time between two questions to a member that is not ready.
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(50);
/// A member that takes longer to answer is asked again.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// Returns once each of these members has been ready, the first ones asked again after the last.
pub(crate) async fn all(members: Vec<SocketAddr>) {
    loop {
        let mut at_once = true;
        for member in &members {
            while !is_ready(*member).await {
                at_once = false;
                sleep(ASK_AGAIN_AFTER).await;
            }
        }
        // One whole round without waiting: all were ready together, not one after the other.
        if at_once {
            return;
        }
    }
}

async fn is_ready(member: SocketAddr) -> bool {
    matches!(timeout(ANSWER_WITHIN, status(member)).await, Ok(Ok(200)))
}

/// The status code of `GET /readyz`.
async fn status(member: SocketAddr) -> io::Result<u16> {
    let mut stream = TcpStream::connect(member).await?;
    let request = format!("GET /readyz HTTP/1.1\r\nHost: {member}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    let line = String::from_utf8_lossy(&answer);
    let code = line.split(' ').nth(1).and_then(|code| code.parse().ok());
    code.ok_or_else(|| io::Error::other("no HTTP answer"))
}
