//! Whatever passes as a message can be walked, shown, put into the cache's form, and cut.
#![no_main]

use wire::{Message, rdata, reply};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(message) = Message::parse(bytes) else { return };
    let header = message.header;
    let counted = usize::from(header.answers) + usize::from(header.authorities) + usize::from(header.additionals);
    assert_eq!(message.records().count(), counted);
    for record in message.records() {
        record.owner.expand().expect("a checked owner");
        let range = record.rdata_at..record.end();
        let shown = rdata::display(record.rtype, bytes, range.clone()).to_string();
        if rdata::check(record.rtype, bytes, range.clone()).is_ok() {
            // What has the form of its type has a text that reads back as the same octets, names in full.
            let (mut plain, mut read) = (Vec::new(), Vec::new());
            rdata::write_plain(record.rtype, bytes, range.clone(), &mut plain).expect("checked data");
            rdata::parse_text(record.rtype, &shown, None, &mut read).expect("our own text");
            assert_eq!(plain, read, "{shown}");
            rdata::write_canonical(record.rtype, bytes, range, &mut read).expect("checked data");
        }
    }
    let (mut out, mut ttl_offsets) = (vec![0; 65_535], vec![0; 4096]);
    if let Ok(done) = reply::normalise(&message, &mut out, &mut ttl_offsets) {
        assert!(done.ttl_count <= counted);
    }
    let mut cut = bytes.to_vec();
    let length = reply::truncate(&mut cut);
    assert!(length <= cut.len());
});
