//! What the operator has done to zones of the running server.

use testkit::eventually;

use super::*;

#[test]
fn the_operator_has_zones_frozen_compared_and_taken_anew() {
    let server = primary(&format!("update: [\"key {KEY}\"], transfer: [loopback]"), "");
    let say = |arguments: &[&str]| {
        let output = server.command(arguments);
        (
            output.status.success(),
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr),
        )
    };
    assert_eq!(say(&["zone", "diff", "example.org"]), (true, String::new()));
    assert!(say(&["zone", "freeze", "example.org"]).0);
    let (is_done, said) = nsupdate(&server, "update add new.example.org 60 A 192.0.2.99");
    assert!(!is_done && said.contains("REFUSED"), "{said}");
    assert!(say(&["zone", "status"]).1.contains("frozen"));
    assert!(say(&["zone", "thaw", "example.org"]).0);
    let (is_done, said) = nsupdate(&server, "update add new.example.org 60 A 192.0.2.99");
    assert!(is_done, "{said}");
    let (_, diff) = say(&["zone", "diff", "example.org"]);
    assert!(diff.contains("+ new.example.org. 60 IN A 192.0.2.99\n"), "{diff}");
    assert_eq!(diff.lines().count(), 3, "{diff}");
    let (is_fine, said) = say(&["zone", "retransfer", "example.org"]);
    assert!(!is_fine && said.contains("comes from no other server"), "{said}");
    let (is_fine, said) = say(&["zone", "status", "example.net"]);
    assert!(!is_fine && said.contains("there is no zone"), "{said}");
    let follower = secondary(&format!("\"{}\"", server.address()), "");
    eventually("the zone", || follower.dig(&["new.example.org", "A"]).contains("192.0.2.99"));
    assert!(follower.command(&["zone", "retransfer", "example.org"]).status.success());
    let mut follower = follower;
    follower.wait_for_log("transferred by AXFR");
}
