//! Views of an `unbound.conf`, changed over the control channel.

use crate::unbound_control::{Control, NXDOMAIN, Running};

#[test]
fn data_that_is_added_to_a_view_is_for_its_clients_alone() {
    let all = " local-zone: v.example static\n";
    for (clients, is_theirs) in [("", false), (" access-control-view: 127.0.0.0/8 v\n", true)] {
        let server = format!("{all}{clients}");
        let running =
            Running::start(&Control::Unix, &server, "view:\n name: v\n local-zone: w.example static\n");
        running.says("view_local_zone v v.example static", 0, "ok\n");
        running.says("view_local_data v a.v.example A 192.0.2.9", 0, "ok\n");
        running.says("local_data b.v.example A 192.0.2.8", 0, "ok\n");
        let seen = |name: &str| match running.ask(name) {
            (0, address) => Some(address[3]),
            (code, _) => {
                assert_eq!(code, NXDOMAIN, "{name}");
                None
            }
        };
        let expect = if is_theirs { (Some(9), None) } else { (None, Some(8)) };
        assert_eq!((seen("a.v.example"), seen("b.v.example")), expect);
    }
}
