//! Where the measured service listens: reading the list, and asking whether anybody answers at all.

use std::time::Duration;

use tokio::{net::TcpStream, time::timeout};

use crate::failure::Failure;

/// A member on the same machine or network answers a connection much sooner.
const CONNECT_WITHIN: Duration = Duration::from_secs(3);

/// Host and port of a URL.
fn address(endpoint: &str) -> Option<&str> {
    let (_, rest) = endpoint.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let (host, port) = authority.rsplit_once(':')?;
    (!host.is_empty() && port.parse::<u16>().is_ok()).then_some(authority)
}

/// Checks the form of the endpoints: URLs with host and port, of the right scheme.
pub(crate) fn check(endpoints: &[String], schemes: &[&str]) -> Result<(), Failure> {
    if endpoints.is_empty() {
        return Err(Failure::Usage("no endpoints: give --endpoints URL,URL,…".into()));
    }
    for endpoint in endpoints {
        let scheme = endpoint.split_once("://").map_or("", |(scheme, _)| scheme);
        if !schemes.contains(&scheme) || address(endpoint).is_none() {
            let example = schemes.first().copied().unwrap_or("http");
            return Err(Failure::Usage(format!(
                "{endpoint:?} is no endpoint of this target: write {example}://HOST:PORT"
            )));
        }
    }
    Ok(())
}

/// Connects to every endpoint once, so that one that is not there is named before the run instead of bending it.
pub(crate) async fn probe(endpoints: &[String]) -> Result<(), Failure> {
    for endpoint in endpoints {
        let unreachable = |why: String| {
            Failure::Unreachable(format!(
                "{endpoint} does not answer: {why}; start the service, or name others with --endpoints"
            ))
        };
        let address = address(endpoint).unwrap_or_default();
        match timeout(CONNECT_WITHIN, TcpStream::connect(address)).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => return Err(unreachable(error.to_string())),
            Err(_) => {
                return Err(unreachable(format!("no connection within {} s", CONNECT_WITHIN.as_secs())));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_urls_with_host_and_port() {
        let ok = |text: &str| check(&[text.to_owned()], &["http", "https"]).is_ok();
        for good in ["http://127.0.0.1:7611", "https://a.example:1/", "http://user@[::1]:80"] {
            assert!(ok(good), "{good}");
        }
        for bad in ["", "127.0.0.1:7611", "redis://a:1", "http://a", "http://:80", "http://a:port"] {
            assert!(!ok(bad), "{bad}");
        }
        assert!(check(&[], &["http"]).is_err());
    }

    #[tokio::test]
    async fn a_silent_endpoint_is_named() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let there = format!("http://{}", listener.local_addr().unwrap());
        probe(std::slice::from_ref(&there)).await.unwrap();
        drop(listener);
        let failure = probe(std::slice::from_ref(&there)).await.unwrap_err();
        assert_eq!(failure.code(), 69);
        assert!(failure.to_string().contains(&there), "{failure}");
    }
}
