//! `current_time`: now, here and in UTC.

use cepa::ToolError;
use jiff::{Timestamp, ZonedDateTime, tz::TimeZone};
use schemars::JsonSchema;
use serde::Deserialize;

use super::root::refused;

// The arguments of `current_time`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CurrentTime {
    /// Another time zone by its IANA name, for example `Asia/Shanghai`. Default: the zone of this machine.
    #[serde(default)]
    time_zone: Option<String>,
}

/// Tells the time.
pub(super) fn current_time(now: Timestamp, args: &CurrentTime) -> Result<String, ToolError> {
    let zone = match args.time_zone.as_deref().map(str::trim).filter(|name| !name.is_empty()) {
        Some(name) => TimeZone::get(name).map_err(|_| {
            refused(format!("no time zone {name:?} is known here: give an IANA name such as Europe/Berlin, or none"))
        })?,
        None => TimeZone::system(),
    };
    Ok(tell(&now.to_zoned_datetime(zone)))
}

/// Both forms are RFC 3339.
fn tell(now: &ZonedDateTime) -> String {
    let utc = now.with_time_zone(TimeZone::UTC);
    let name = now.time_zone().iana_name().unwrap_or("local time");
    format!("{} ({name})\n{} (UTC)", now.strftime("%A %Y-%m-%dT%H:%M:%S%:z"), utc.strftime("%A %Y-%m-%dT%H:%M:%SZ"))
}

#[cfg(test)]
#[path = "time_tests.rs"]
mod tests;
