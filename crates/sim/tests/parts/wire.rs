//! Connections that carry bytes: what a cut does to them, and the end of either end.

use std::{cell::RefCell, io::ErrorKind, rc::Rc};

use holdfast_sim::{
    entropy::dice,
    host::Host,
    network::{Network, Way, wire::Wire},
    trace::Trace,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A network, and somebody who runs while its time passes.
fn passes(network: &Network, host: &Host, ms: std::ops::Range<u64>) {
    for now in ms {
        network.advance(now);
        host.run(1);
    }
}

#[test]
fn a_cut_holds_bytes_back_and_the_order_stays() {
    let (network, host) = (Network::new(dice(1, 1), Trace::new(false)), Host::start(1).unwrap());
    let (mut near, mut far) = Wire::pair(&network, (100, 101));
    let read = Rc::new(RefCell::new(Vec::new()));
    let reader = read.clone();
    host.spawn(async move {
        while let Ok(byte) = far.read_u8().await {
            reader.borrow_mut().push(byte);
        }
    });
    host.spawn(async move {
        for byte in 0..50 {
            near.write_u8(byte).await.unwrap();
            near.flush().await.unwrap();
        }
        std::future::pending::<()>().await;
    });
    network.set_way(100, 101, Some(Way { cut: true, ..Way::default() }));
    passes(&network, &host, 1..5_000);
    assert!(read.borrow().is_empty());
    network.set_way(100, 101, None);
    passes(&network, &host, 5_000..5_020);
    assert_eq!(*read.borrow(), (0..50).collect::<Vec<u8>>());
}

#[test]
fn whoever_sends_to_an_end_that_is_gone_is_told() {
    let (network, host) = (Network::new(dice(1, 1), Trace::new(false)), Host::start(1).unwrap());
    let (mut near, far) = Wire::pair(&network, (100, 101));
    let told = Rc::new(RefCell::new(None));
    let teller = told.clone();
    // What the other end says of its end does not get through.
    network.set_way(101, 100, Some(Way { cut: true, ..Way::default() }));
    drop(far);
    passes(&network, &host, 1..50);
    host.spawn(async move {
        near.write_u8(1).await.unwrap();
        near.flush().await.unwrap();
        *teller.borrow_mut() = Some(near.read_u8().await.map_err(|error| error.kind()));
    });
    passes(&network, &host, 50..100);
    assert_eq!(*told.borrow(), None);
    network.set_way(101, 100, None);
    passes(&network, &host, 100..150);
    let told = told.borrow().clone();
    assert!(matches!(told, Some(Err(ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof))), "{told:?}");
}
