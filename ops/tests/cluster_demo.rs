//! The demo tells its whole story on real processes, and every step shows what it claims.

use std::process::Command;

#[test]
fn all_twelve_steps_hold() {
    let demo = Command::new(env!("CARGO_BIN_EXE_holdfast")).arg("demo").output().expect("the command runs");
    let told = String::from_utf8_lossy(&demo.stdout);
    assert!(demo.status.success(), "{told}\n{}", String::from_utf8_lossy(&demo.stderr));
    for step in 1..=12 {
        assert!(told.contains(&format!("[{step:>2}/12] ")), "no step {step} in\n{told}");
    }
    assert_eq!(told.lines().filter(|line| line.trim() == "ok").count(), 12, "{told}");
}
