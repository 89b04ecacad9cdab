//! The fenced resource.

use holdfast_sim::check::fence::Resource;

#[test]
fn a_lower_token_is_refused_for_its_lock_only() {
    let resource = Resource::default();
    assert!(resource.write("a", 5) && resource.write("a", 5));
    assert!(!resource.write("a", 4));
    assert!(resource.write("b", 1));
}
