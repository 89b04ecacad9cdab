//! Links do to bytes what they say, each direction by itself.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    time::{Duration, Instant},
};

use holdfast_faults::{Flow, Link, Network, Way, wait_for};

const SOON: Duration = Duration::from_secs(10);
const A_WHILE: Duration = Duration::from_millis(200);

/// A network, a link to a listener, and the listener.
fn linked() -> (Network, Link, TcpListener) {
    let network = Network::start().unwrap();
    let target = TcpListener::bind("127.0.0.1:0").unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let link = network.link(free, target.local_addr().unwrap()).unwrap();
    (network, link, target)
}

fn pair(link: &Link, target: &TcpListener) -> (TcpStream, TcpStream) {
    let near = connect(link.address());
    let (far, _) = target.accept().unwrap();
    far.set_read_timeout(Some(A_WHILE)).unwrap();
    (near, far)
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(A_WHILE)).unwrap();
    stream
}

/// The next byte, unless none comes for a while.
fn next(stream: &mut TcpStream) -> Option<u8> {
    let mut byte = [0];
    stream.read_exact(&mut byte).ok().map(|()| byte[0])
}

#[test]
fn a_held_direction_keeps_its_bytes_and_gives_them_when_it_heals() {
    let (_network, link, target) = linked();
    let (mut near, mut far) = pair(&link, &target);
    near.write_all(b"a").unwrap();
    assert_eq!(next(&mut far), Some(b'a'));
    link.set(Way::There, Flow::Hold);
    near.write_all(b"b").unwrap();
    far.write_all(b"c").unwrap();
    assert_eq!((next(&mut far), next(&mut near)), (None, Some(b'c')), "only one direction is held");
    link.heal().unwrap();
    assert_eq!(next(&mut far), Some(b'b'));
}

#[test]
fn an_end_does_not_travel_through_a_held_direction() {
    let (_network, link, target) = linked();
    let (near, mut far) = pair(&link, &target);
    link.hold();
    drop(near);
    let error = far.read(&mut [0]).unwrap_err();
    assert!(matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut), "{error}");
    link.heal().unwrap();
    far.set_read_timeout(Some(SOON)).unwrap();
    assert_eq!(far.read(&mut [0]).unwrap(), 0);
}

#[test]
fn a_refusing_link_resets_refuses_and_comes_back() {
    let (_network, link, target) = linked();
    let (mut near, _far) = pair(&link, &target);
    link.refuse().unwrap();
    let refused = TcpStream::connect(link.address()).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    near.set_read_timeout(Some(SOON)).unwrap();
    assert!(near.read(&mut [0]).is_err(), "the old connection was reset");
    link.heal().unwrap();
    let (mut near, mut far) = pair(&link, &target);
    near.write_all(b"x").unwrap();
    assert_eq!(next(&mut far), Some(b'x'));
}

#[test]
fn a_delay_is_a_delay_of_each_byte_and_not_of_the_next() {
    let (_network, link, target) = linked();
    let (mut near, mut far) = pair(&link, &target);
    far.set_read_timeout(Some(SOON)).unwrap();
    link.delay(A_WHILE);
    let began = Instant::now();
    for _ in 0..5 {
        near.write_all(b"x").unwrap();
    }
    (0..5).for_each(|_| assert_eq!(next(&mut far), Some(b'x')));
    let took = began.elapsed();
    assert!(took >= A_WHILE, "{took:?}");
    // A delay taken back ends for what is on its way, too.
    link.delay(Duration::from_secs(600));
    near.write_all(b"y").unwrap();
    link.heal().unwrap();
    assert_eq!(next(&mut far), Some(b'y'));
}

#[test]
fn a_connection_asked_for_during_a_hold_is_made_when_it_heals() {
    let (_network, link, target) = linked();
    link.hold();
    let mut near = connect(link.address());
    near.write_all(b"z").unwrap();
    target.set_nonblocking(true).unwrap();
    assert!(next(&mut near).is_none() && target.accept().is_err());
    link.heal().unwrap();
    let (mut far, _) = wait_for("the connection is made", SOON, || target.accept().ok()).unwrap();
    far.set_nonblocking(false).unwrap();
    assert_eq!(next(&mut far), Some(b'z'));
}
