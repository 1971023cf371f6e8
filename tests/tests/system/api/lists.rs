//! Lists that sets are read from, and their rules.

use testkit::{Script, Server, Stub, forwarding};

use super::{Heard, ask, get};

fn start() -> (Stub, Server) {
    let directory = tempfile::tempdir().expect("a directory");
    let names: String = (0..20_000).map(|at| format!("n{at}.example\n")).collect();
    std::fs::write(directory.path().join("block.txt"), format!("# a list\n\n{names}Ads.example"))
        .expect("written");
    let more =
        "sets: {ads: {lists: [{list: \"names:block.txt\"}, {own: mine}], rules: [\"||x.example^\"]}}\n";
    let stub = Stub::start(Script::default());
    let server = Server::start_in(directory, &forwarding(&[&stub], more));
    (stub, server)
}

fn next(heard: &Heard) -> Option<String> {
    let link = heard.header("link")?.trim_start_matches("</api/v1").to_owned();
    Some(link.split('>').next().expect("a URL").to_owned())
}

#[test]
fn lists_of_sets_are_shown_with_their_state_and_their_rules() {
    let (_stub, server) = start();
    let put = ask(&server, "PUT", "/lists/mine/content", &["If-None-Match: *"], "mine.example\n");
    assert_eq!(put.status, 200, "{put:?}");
    let all = get(&server, "/lists").json();
    for expect in [
        "\"name\": \"mine\", \"source\": \"own\"",
        "\"name\": \"ads:1\", \"source\": \"file\", \"place\": \"",
        "\"format\": \"names\", \"sets\": [ \"ads\" ], \"rules\": 20001, \"octets\": ",
    ] {
        assert!(all.contains(expect), "{expect} in {all}");
    }
    let one = get(&server, "/lists/ads:1");
    assert!(one.status == 200 && one.json().contains("\"age-s\": "), "{one:?}");
    let mut path = Some("/lists/ads:1/rules?count=10000".to_owned());
    let mut count = 0;
    while let Some(now) = path {
        let part = get(&server, &now);
        assert_eq!(part.status, 200, "{part:?}");
        count += part.body.matches("example").count();
        path = next(&part);
    }
    assert_eq!(count, 20_001);
    let found = get(&server, "/lists/ads:1/rules?contains=ADS.ex&count=5");
    assert!(found.json().contains("\"rules\": [ \"Ads.example\" ]") && next(&found).is_none(), "{found:?}");
    let own = get(&server, "/lists/mine/rules?contains=mine");
    assert!(own.json().contains("\"mine.example\""), "{own:?}");
    let lines = ["Content-Type: application/x-ndjson"];
    assert_eq!(
        ask(&server, "PATCH", "/lists/mine/content", &lines, "{\"add\": \"new.example\"}").status,
        200
    );
    let own = get(&server, "/lists/mine/rules").json();
    assert!(own.contains("\"mine.example\", \"new.example\""), "changes that are not in the file yet: {own}");
    for (path, status) in [
        ("/lists/ads:2/rules", 200),
        ("/lists/ads:3/rules", 409),
        ("/lists/ads:9/rules", 404),
        ("/lists/ads:0/rules", 404),
        ("/lists/none:1/rules", 404),
        ("/lists/none/rules", 404),
        ("/lists/ads:1/rules?after=3", 400),
        ("/lists/ads:1/rules?after=99999999", 400),
    ] {
        let heard = get(&server, path);
        assert_eq!(heard.status, status, "{path}: {heard:?}");
    }
}
