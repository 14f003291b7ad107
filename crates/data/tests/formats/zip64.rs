//! Archives with numbers of eight bytes (Zip64), which Python writes for members above 2 GiB. The
//! fixture is Python's, with a lower limit.

use estimand_data::{Limits, zip};
use estimand_fixture::cases;

#[test]
fn archives_of_python_are_read() {
    let cases = cases("zip64");
    assert_eq!(cases.len(), 4);
    for case in &cases {
        let bytes = case.bytes("file");
        let members = zip::members(&bytes, &Limits::default()).unwrap();
        let names: Vec<String> = members.iter().map(|member| member.name.to_string()).collect();
        let contents: Vec<String> =
            members.iter().map(|member| String::from_utf8(member.unpack().unwrap()).unwrap()).collect();
        let expected = |key: &str| case.setting::<Vec<String>>(key);
        assert_eq!((names, contents), (expected("names"), expected("contents")), "{}", case.name());
        assert_eq!(members[0].size(), 72);
    }
}

/// Bytes changed in turn, and the large numbers set to values that no file has.
#[test]
fn damaged_archives_are_refused() {
    let mut n_refused = 0;
    for case in cases("zip64") {
        let good = case.bytes("file");
        let mut read = |bytes: &[u8]| {
            let found = zip::members(bytes, &Limits::default());
            let unpacked =
                found.and_then(|members| members.iter().map(zip::Member::unpack).collect::<Result<Vec<_>, _>>());
            n_refused += usize::from(unpacked.is_err());
        };
        for at in 0..good.len() {
            for new in [0, 1, 0x7f, 0xff] {
                let mut bytes = good.clone();
                bytes[at] = new;
                read(&bytes);
            }
            for value in [u64::MAX, 1 << 63, good.len() as u64, u64::from(u32::MAX)] {
                let mut bytes = good.clone();
                let end = (at + 8).min(bytes.len());
                bytes[at..end].copy_from_slice(&value.to_le_bytes()[..end - at]);
                read(&bytes);
            }
            read(&good[..at]);
        }
    }
    assert!(n_refused > 3000, "{n_refused}");
}

#[test]
fn the_help_names_no_other_kind_of_file() {
    let error = zip::members(b"PK", &Limits::default()).map(drop).unwrap_err().to_string();
    assert!(error.contains("no end of a zip archive") && !error.contains("numpy"), "{error}");
}
