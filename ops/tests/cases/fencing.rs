//! C32, C33: what a paused or expired holder can still do to the data.

use std::thread;

use serde_json::json;

use crate::support::{Puppet, S, Storage, World, form, ms, s, wait::let_pass};

#[test]
fn c32_a_paused_holders_late_write_is_refused() {
    let world = World::start();
    let storage = Storage::start(&world, true);
    let ttl = s(2);
    let b = world.client(2).open(s(600));
    let all: Vec<String> = world.numbers().map(|member| world.http(member)).collect();
    let _b_lives = b.keep(all);
    for round in 0..form(2, 200) {
        let mut a = Puppet::start(&world, ttl, &storage.url);
        let token = a.acquire("c32");
        storage.advance("c32", token).expect(200);
        assert_eq!(storage.write("c32", "c32", token, &format!("A{round}")).status, 200);
        // Half of the rounds freeze it in the middle of a write: that one may be stored, before B's.
        let in_flight = world.record.now();
        if round % 2 == 1 {
            a.order_write("c32", "c32", token, "A-in-flight");
            let_pass(ms(round * 7 % 23));
        }
        a.pause();
        let next = thread::scope(|scope| scope.spawn(|| b.wait("c32", s(60))).join().unwrap()).token();
        storage.advance("c32", next).expect(200);
        let data = format!("B{round}");
        assert_eq!(storage.write("c32", "c32", next, &data).status, 200);
        let_pass(S.min(ms(200)));
        let sent = world.record.now();
        a.resume();
        if round % 2 == 1 {
            a.written("c32", "c32", token, in_flight);
        }
        a.order_write("c32", "c32", token, "A-late");
        let (status, answer) = a.written("c32", "c32", token, sent);
        assert_eq!((status, &answer["code"]), (412, &json!("stale_token")), "round {round}: {answer}");
        assert_eq!(answer["highest"], json!(next), "it names the newer token: {answer}");
        assert_eq!(storage.read("c32"), json!(data), "round {round}");
        b.release("c32", next).expect(200);
    }
    world.judge();
}

#[test]
fn c33_after_the_next_holders_first_contact_the_old_one_is_refused() {
    let world = World::start();
    let storage = Storage::start(&world, false);
    let (a, b) = (world.client(1).open(s(1)), world.client(2).open(s(60)));
    let token = a.try_lock("c33").token();
    assert_eq!(storage.write("c33", "c33", token, "first").status, 200);
    a.falls_silent();
    world.wait_free("c33", s(1) + S + s(1));
    // The published rule: the storage believes the highest token that it has seen.
    assert_eq!(storage.write("c33", "c33", token, "nobody took over yet").status, 200);
    let next = b.try_lock("c33").token();
    storage.advance("c33", next).expect(200);
    assert_eq!(storage.read("c33"), json!("nobody took over yet"));
    let late = storage.write("c33", "c33", token, "surprise");
    assert_eq!((late.status, &late.body["code"]), (412, &json!("stale_token")), "{}", late.body);
    assert_eq!(storage.write("c33", "c33", next, "second").status, 200);
    assert_eq!(storage.read("c33"), json!("second"));
    world.judge();
}
