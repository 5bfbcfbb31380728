//! The time is told in both zones, as RFC 3339.

use serde_json::json;

use super::{
    super::testing::{args, failure},
    *,
};

fn at(time: &str, call: serde_json::Value) -> Result<String, ToolError> {
    current_time(time.parse().unwrap(), &args(call))
}

#[test]
fn a_named_zone() {
    for (zone, said) in [
        ("Asia/Shanghai", "Sunday 2025-11-30T19:43:21+08:00 (Asia/Shanghai)"),
        ("Asia/Kathmandu", "Sunday 2025-11-30T17:28:21+05:45 (Asia/Kathmandu)"),
        ("Pacific/Kiritimati", "Monday 2025-12-01T01:43:21+14:00 (Pacific/Kiritimati)"),
        ("America/St_Johns", "Sunday 2025-11-30T08:13:21-03:30 (America/St_Johns)"),
        ("UTC", "Sunday 2025-11-30T11:43:21+00:00 (UTC)"),
    ] {
        let told = at("2025-11-30T11:43:21.9Z", json!({"time_zone": zone})).unwrap();
        assert_eq!(told, format!("{said}\nSunday 2025-11-30T11:43:21Z (UTC)"));
    }
}

#[test]
fn the_zone_of_the_machine_is_the_default() {
    for call in [json!({}), json!({"time_zone": null}), json!({"time_zone": " "})] {
        let told = at("2025-11-30T11:43:21Z", call).unwrap();
        let local = told.split_once(' ').unwrap().1.split_once(' ').unwrap().0;
        assert_eq!(local.parse::<Timestamp>().unwrap(), "2025-11-30T11:43:21Z".parse().unwrap());
        assert!(told.ends_with("\nSunday 2025-11-30T11:43:21Z (UTC)"), "{told}");
    }
}

#[test]
fn an_unknown_zone_is_said() {
    let said = failure(at("2025-11-30T11:43:21Z", json!({"time_zone": "Moon/Tycho"})));
    assert!(said.starts_with("no time zone \"Moon/Tycho\" is known here"), "{said}");
}
