//! Network devices, as the kernel numbers them.

/// Returns the number of a network device, which is the scope of link-local addresses at it (RFC
/// 4007 §11); `None` if there is no such device now.
pub fn device_number(name: &str) -> Option<u32> {
    let is_name = !name.is_empty() && !name.contains('/') && !name.starts_with('.');
    let text = is_name.then(|| std::fs::read_to_string(format!("/sys/class/net/{name}/ifindex")))?.ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_have_numbers_and_what_is_none_has_not() {
        assert_eq!(device_number("lo"), Some(1));
        for name in ["", "nosuchdevice", ".", "..", "../net/lo"] {
            assert_eq!(device_number(name), None, "{name}");
        }
    }
}
